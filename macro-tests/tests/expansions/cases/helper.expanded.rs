// Pinned by macro-tests/tests/expansions. `p::` stands for `::graphable::__private::`, `site!(n)` for the
// place of the n-th segment or boundary in the source.

#[allow(
    clippy::needless_lifetimes,
    clippy::extra_unused_lifetimes,
    clippy::multiple_bound_locations,
    single_use_lifetimes
)]
fn silu<'s>(x: &Tensor<'s, f32>, rows: &[Tensor<'s, f32>]) -> Result<Out<'s>> {
    ops::mul(x, &ops::sigmoid(&rows[0])?)
}
///The graph of `silu`: its recordings, and the memory of its inputs.
#[allow(
    dead_code,
    unreachable_pub,
    unused_mut,
    unused_variables,
    clippy::all,
    clippy::pedantic
)]
struct SiluGraph {
    function: p::Function,
    buffers: SiluBuffers,
    _types: ::core::marker::PhantomData<fn() -> ()>,
}
impl ::core::fmt::Debug for SiluGraph {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        ::core::fmt::Formatter::debug_struct(f, "SiluGraph").finish_non_exhaustive()
    }
}
#[allow(
    dead_code,
    unreachable_pub,
    unused_mut,
    unused_variables,
    clippy::all,
    clippy::pedantic
)]
impl SiluGraph {
    ///Segments and boundaries of `silu`. Print it.
    pub const PLAN: p::Plan = p::Plan {
        function: "silu",
        file: ::core::file!(),
        items: &[
            p::PlanItem::Segment {
                site: site!(0usize),
                live_ins: &["x", "rows"],
                live_outs: &["the result"],
            },
        ],
        host_statement: ::core::option::Option::None,
    };
    ///Options of a graph of `silu`.
    pub fn builder() -> SiluGraphBuilder {
        SiluGraphBuilder {
            options: ::core::default::Default::default(),
            _types: ::core::marker::PhantomData,
        }
    }
    /// Whether calls become graphs, where mode and scope allow it.
    pub fn is_enabled(&self) -> bool {
        self.function.is_enabled()
    }
    /// Switches graphs on or off, from the next call on.
    pub fn set_enabled(&self, on: bool) {
        self.function.set_enabled(on);
    }
    /// The memory of the inputs, which keeps its address from call to call.
    pub fn buffers(&self) -> &SiluBuffers {
        &self.buffers
    }
    /// Which graph a batch gets, and what became of the builder's mode.
    pub fn dispatcher(&self) -> &::graphable::Dispatcher {
        self.function.dispatcher()
    }
    /// By which the runtime's hooks know this object.
    pub fn id(&self) -> ::graphable::GraphId {
        self.function.id()
    }
    ///Calls `silu`: replays what is recorded, and records what is not.
    ///
    /// # Errors
    /// Those of the function, and what goes wrong on the device.
    pub fn call<'s>(
        &self,
        step: &::graphable::Step<'s>,
        x: &Tensor<'s, f32>,
        rows: &[Tensor<'s, f32>],
    ) -> Result<Out<'s>>
    where
        for<'__t> [Tensor<'s, f32>]: p::LiveIn,
        for<'__t> <Result<
            Out<'s>,
        > as p::TryError>::Error: ::core::convert::From<::graphable::Error>,
        for<'__t> Out<'s>: p::LiveOut<'s>,
    {
        let mut __inputs = self.function.inputs(step)?;
        __inputs.device::<f32>(0usize, x)?;
        let __block = SiluHostBlock {};
        let __frame = __inputs.enter(p::bytemuck::bytes_of(&__block), (&rows,))?;
        let x = &__frame.tensor::<f32>(0usize, &self.buffers.x)?;
        __frame
            .run::<
                Out<'s>,
                _,
                _,
            >(|__cx| {
                __cx
                    .segment(
                        site!(0usize),
                        (&x, &rows),
                        |__k| silu(
                            ::core::clone::Clone::clone(__k.0),
                            ::core::clone::Clone::clone(__k.1),
                        ),
                    )
            })
    }
}
///Memory of the inputs of `silu`.
#[allow(
    dead_code,
    unreachable_pub,
    unused_mut,
    unused_variables,
    clippy::all,
    clippy::pedantic
)]
struct SiluBuffers {
    ///Memory of `x`.
    pub x: p::StaticInput<f32>,
    _types: ::core::marker::PhantomData<fn() -> ()>,
}
impl ::core::fmt::Debug for SiluBuffers {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        ::core::fmt::Formatter::debug_struct(f, "SiluBuffers").finish_non_exhaustive()
    }
}
///Host scalars and sizes of `silu`, as they travel to the device.
#[allow(
    dead_code,
    unreachable_pub,
    unused_mut,
    unused_variables,
    clippy::all,
    clippy::pedantic
)]
#[derive(
    ::core::clone::Clone,
    ::core::marker::Copy,
    ::core::fmt::Debug,
    p::bytemuck::Pod,
    p::bytemuck::Zeroable,
)]
#[bytemuck(crate = "::graphable::__private::bytemuck")]
#[repr(C)]
struct SiluHostBlock {}
///Options of a graph of `silu`; made by [`SiluGraph::builder`].
#[must_use]
#[allow(
    dead_code,
    unreachable_pub,
    unused_mut,
    unused_variables,
    clippy::all,
    clippy::pedantic
)]
struct SiluGraphBuilder {
    options: p::Options,
    _types: ::core::marker::PhantomData<fn() -> ()>,
}
impl ::core::fmt::Debug for SiluGraphBuilder {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        ::core::fmt::Formatter::debug_struct(f, "SiluGraphBuilder")
            .finish_non_exhaustive()
    }
}
#[allow(
    dead_code,
    unreachable_pub,
    unused_mut,
    unused_variables,
    clippy::all,
    clippy::pedantic
)]
impl SiluGraphBuilder {
    /// Rounds a `#[dims]` symbol up to these sizes.
    pub fn bucket(
        mut self,
        symbol: &'static str,
        schedule: ::graphable::Schedule,
    ) -> Self {
        self.options.bucket(symbol, schedule);
        self
    }
    /// How much becomes graphs; at first `Mode::Piecewise`.
    pub fn mode(mut self, mode: ::graphable::Mode) -> Self {
        self.options.mode(mode);
        self
    }
    /// How calls are batches, for modes that tell these apart.
    pub fn batch(mut self, batching: ::graphable::Batching) -> Self {
        self.options.batch(batching);
        self
    }
    /// Compares every `n`-th replay with what the code computes; 0, as at first, never.
    pub fn audit_every(mut self, n: u32) -> Self {
        self.options.audit_every(n);
        self
    }
    /// Makes errors of what would run without a graph otherwise.
    pub fn or_error(mut self, on: bool) -> Self {
        self.options.or_error(on);
        self
    }
    /// How often one segment is recorded for one shape before it runs without a graph.
    pub fn max_recordings(mut self, n: usize) -> Self {
        self.options.max_recordings(n);
        self
    }
    /// Sets limits: `.limits(|l| l.max_moves = 2)`.
    pub fn limits(
        mut self,
        set: impl ::core::ops::FnOnce(&mut ::graphable::Limits),
    ) -> Self {
        self.options.limits(set);
        self
    }
    /// Who decides what becomes a graph, in place of the limits alone.
    pub fn policy(mut self, policy: impl ::graphable::Policy + 'static) -> Self {
        self.options.policy(policy);
        self
    }
    /// Only these sizes of some `#[dims]` symbols become graphs, after rounding up to buckets:
    /// `.capture_only(["B", "T"], [[1, 128], [8, 128]])`. All else runs without.
    pub fn capture_only<const __N: usize>(
        mut self,
        symbols: [&'static str; __N],
        sizes: impl ::core::iter::IntoIterator<Item = [usize; __N]>,
    ) -> Self {
        self.options.capture_only(symbols, sizes);
        self
    }
    /// Whether calls become graphs at first; `set_enabled` changes it later.
    pub fn enabled(mut self, on: bool) -> Self {
        self.options.enabled(on);
        self
    }
    /// The graph, with memory for its inputs. Nothing is captured yet.
    ///
    /// # Errors
    /// Buckets and modes that do not fit the function, and what the device says.
    pub fn build(self, rt: &mut ::graphable::Runtime) -> ::graphable::Result<SiluGraph> {
        let function = p::Function::new(
            rt,
            p::FunctionSpec {
                name: "silu",
                plan: const { &SiluGraph::PLAN },
                symbols: &[],
                inputs: ::std::vec![
                    p::InputSpec { name : "x", kind : p::InputKind::DeviceTensor, dtype :
                    < f32 as ::graphable::Element > ::DTYPE, dims :
                    p::DimsSpec::Unspecified }
                ],
            },
            self.options,
        )?;
        ::core::result::Result::Ok(SiluGraph {
            buffers: SiluBuffers {
                x: p::StaticInput::new(&function, 0usize),
                _types: ::core::marker::PhantomData,
            },
            function,
            _types: ::core::marker::PhantomData,
        })
    }
}
