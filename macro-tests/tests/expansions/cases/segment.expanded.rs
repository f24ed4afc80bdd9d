// Pinned by macro-tests/tests/expansions. `p::` stands for `::graphable::__private::`, `site!(n)` for the
// place of the n-th segment or boundary in the source.

#[allow(
    clippy::needless_lifetimes,
    clippy::extra_unused_lifetimes,
    clippy::multiple_bound_locations,
    single_use_lifetimes
)]
pub fn project<'s>(
    x: &Tensor<'s, f32>,
    limit: usize,
    model: &Model,
) -> Result<Tensor<'s, f32>> {
    let y = ops::linear(x, &model.w)?;
    ops::scale(&y, limit as f32)
}
///The graph of `project`: its recordings, and the memory of its inputs.
#[allow(
    dead_code,
    unreachable_pub,
    unused_mut,
    unused_variables,
    clippy::all,
    clippy::pedantic
)]
pub struct ProjectGraph {
    function: p::Function,
    buffers: ProjectBuffers,
    _types: ::core::marker::PhantomData<fn() -> ()>,
}
impl ::core::fmt::Debug for ProjectGraph {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        ::core::fmt::Formatter::debug_struct(f, "ProjectGraph").finish_non_exhaustive()
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
impl ProjectGraph {
    ///Segments and boundaries of `project`. Print it.
    pub const PLAN: p::Plan = p::Plan {
        function: "project",
        file: ::core::file!(),
        items: &[
            p::PlanItem::Segment {
                site: site!(0usize),
                live_ins: &["x", "limit", "model"],
                live_outs: &["the result"],
            },
        ],
        host_statement: ::core::option::Option::None,
    };
    ///Options of a graph of `project`.
    pub fn builder() -> ProjectGraphBuilder {
        ProjectGraphBuilder {
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
    pub fn buffers(&self) -> &ProjectBuffers {
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
    ///Calls `project`: replays what is recorded, and records what is not.
    ///
    /// # Errors
    /// Those of the function, and what goes wrong on the device.
    pub fn call<'s, '__h0>(
        &self,
        step: &::graphable::Step<'s>,
        x: impl ::core::convert::Into<::graphable::HostSlice<'__h0, f32>>,
        limit: usize,
        model: &Model,
    ) -> Result<Tensor<'s, f32>>
    where
        for<'__t> usize: p::Key,
        for<'__t> Model: p::LiveIn,
        for<'__t> Tensor<'s, f32>: p::LiveOut<'s>,
    {
        self.__call(step, ::core::convert::Into::into(x), limit, model)
    }
    fn __call<'s, '__h0>(
        &self,
        step: &::graphable::Step<'s>,
        x: ::graphable::HostSlice<'__h0, f32>,
        limit: usize,
        model: &Model,
    ) -> Result<Tensor<'s, f32>>
    where
        for<'__t> usize: p::Key,
        for<'__t> Model: p::LiveIn,
        for<'__t> Tensor<'s, f32>: p::LiveOut<'s>,
    {
        let mut __inputs = self.function.inputs(step)?;
        __inputs.host::<f32>(0usize, x)?;
        let __block = ProjectHostBlock {
            len_b: p::HostSlot::of(__inputs.symbol(0usize)? as u32),
        };
        let __frame = __inputs.enter(p::bytemuck::bytes_of(&__block), (&limit, &model))?;
        let x = &__frame.tensor::<f32>(0usize, &self.buffers.x)?;
        __frame
            .run::<
                Tensor<'s, f32>,
                _,
                _,
            >(|__cx| {
                __cx
                    .segment(
                        site!(0usize),
                        (&x, &limit, &model),
                        |__k| project(
                            ::core::clone::Clone::clone(__k.0),
                            ::core::clone::Clone::clone(__k.1),
                            ::core::clone::Clone::clone(__k.2),
                        ),
                    )
            })
    }
    /// Records for every combination of bucket sizes, largest first, so that no later call has to: the
    /// segments, then whole calls, as far as the mode has them.
    /// State that is written on the way is put back.
    ///
    /// # Errors
    /// Dimensions that have no buckets, and what calls say.
    pub fn capture_all(
        &self,
        rt: &mut ::graphable::Runtime,
        limit: usize,
        model: &Model,
    ) -> ::graphable::Result<()>
    where
        for<'__t> usize: p::Key,
        for<'__t> Model: p::LiveIn,
        for<'s> Tensor<'s, f32>: p::LiveOut<'s>,
    {
        self.capture_all_with(rt, limit, model, |_| {})
    }
    /// As `capture_all`, and tells how far it is.
    ///
    /// # Errors
    /// As `capture_all`.
    pub fn capture_all_with(
        &self,
        rt: &mut ::graphable::Runtime,
        limit: usize,
        model: &Model,
        progress: impl ::core::ops::FnMut(::graphable::CaptureProgress<'_>),
    ) -> ::graphable::Result<()>
    where
        for<'__t> usize: p::Key,
        for<'__t> Model: p::LiveIn,
        for<'s> Tensor<'s, f32>: p::LiveOut<'s>,
    {
        self.function
            .capture_all(
                rt,
                |__given, __synthetic| {
                    let x = __synthetic.host::<f32>(0usize)?;
                    match self
                        .call(__given, &x, ::core::clone::Clone::clone(&limit), model)
                    {
                        ::core::result::Result::Ok(_) => ::core::result::Result::Ok(()),
                        ::core::result::Result::Err(error) => {
                            ::core::result::Result::Err(
                                p::CaptureFailed::from_user(error),
                            )
                        }
                    }
                },
                progress,
            )
    }
}
///Memory of the inputs of `project`.
#[allow(
    dead_code,
    unreachable_pub,
    unused_mut,
    unused_variables,
    clippy::all,
    clippy::pedantic
)]
pub struct ProjectBuffers {
    ///Memory of `x`.
    pub x: p::StaticInput<f32>,
    _types: ::core::marker::PhantomData<fn() -> ()>,
}
impl ::core::fmt::Debug for ProjectBuffers {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        ::core::fmt::Formatter::debug_struct(f, "ProjectBuffers").finish_non_exhaustive()
    }
}
///Host scalars and sizes of `project`, as they travel to the device.
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
pub struct ProjectHostBlock {
    ///Size of `B`, without padding.
    pub len_b: p::HostSlot,
}
///Options of a graph of `project`; made by [`ProjectGraph::builder`].
#[must_use]
#[allow(
    dead_code,
    unreachable_pub,
    unused_mut,
    unused_variables,
    clippy::all,
    clippy::pedantic
)]
pub struct ProjectGraphBuilder {
    options: p::Options,
    _types: ::core::marker::PhantomData<fn() -> ()>,
}
impl ::core::fmt::Debug for ProjectGraphBuilder {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        ::core::fmt::Formatter::debug_struct(f, "ProjectGraphBuilder")
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
impl ProjectGraphBuilder {
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
    pub fn build(
        self,
        rt: &mut ::graphable::Runtime,
    ) -> ::graphable::Result<ProjectGraph> {
        let function = p::Function::new(
            rt,
            p::FunctionSpec {
                name: "project",
                plan: const { &ProjectGraph::PLAN },
                symbols: &["B"],
                inputs: ::std::vec![
                    p::InputSpec { name : "x", kind : p::InputKind::HostTensor, dtype : <
                    f32 as ::graphable::Element > ::DTYPE, dims : p::DimsSpec::Some(const
                    { & [p::Dim::Symbol(0usize), p::Dim::Const(4)] }) }
                ],
            },
            self.options,
        )?;
        ::core::result::Result::Ok(ProjectGraph {
            buffers: ProjectBuffers {
                x: p::StaticInput::new(&function, 0usize),
                _types: ::core::marker::PhantomData,
            },
            function,
            _types: ::core::marker::PhantomData,
        })
    }
}
