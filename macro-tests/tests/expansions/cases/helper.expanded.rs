// Pinned by macro-tests/tests/expansions. `p::` stands for `::graphable::__private::`, `site!(n)` for the
// place of the n-th segment or boundary in the source.

#[allow(
    clippy::needless_lifetimes,
    clippy::extra_unused_lifetimes,
    clippy::multiple_bound_locations,
    single_use_lifetimes,
    mismatched_lifetime_syntaxes
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
    mismatched_lifetime_syntaxes,
    clippy::all,
    clippy::pedantic
)]
struct SiluGraph {
    function: p::GraphObject,
    buffers: SiluBuffers,
    _types: ::core::marker::PhantomData<fn() -> ()>,
}
impl ::core::fmt::Debug for SiluGraph {
    #[inline]
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        ::core::fmt::Formatter::write_str(f, "SiluGraph { .. }")
    }
}
#[allow(
    dead_code,
    unreachable_pub,
    unused_mut,
    unused_variables,
    mismatched_lifetime_syntaxes,
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
    #[inline]
    pub fn builder() -> SiluGraphBuilder {
        ::core::default::Default::default()
    }
    /// Whether calls become graphs, where mode and scope allow it.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.function.is_enabled()
    }
    /// Switches graphs on or off, from the next call on.
    #[inline]
    pub fn set_enabled(&self, on: bool) {
        self.function.set_enabled(on);
    }
    /// The memory of the inputs, which keeps its address from call to call.
    #[inline]
    pub fn buffers(&self) -> &SiluBuffers {
        &self.buffers
    }
    /// Which graph a batch gets, and what became of the builder's mode.
    #[inline]
    pub fn dispatcher(&self) -> &::graphable::Dispatcher {
        self.function.dispatcher()
    }
    /// By which the runtime's hooks know this object.
    #[inline]
    pub fn id(&self) -> ::graphable::GraphId {
        self.function.id()
    }
    ///Calls `silu`: replays what is recorded, and records what is not.
    ///
    /// # Errors
    /// Those of the function, and what goes wrong on the device.
    #[inline]
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
        let __block: SiluHostBlock = [];
        let __call = __inputs.enter(p::bytemuck::bytes_of(&__block), (&rows,))?;
        let x = &__call.tensor::<f32>(0usize, &self.buffers.x)?;
        __call
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
    mismatched_lifetime_syntaxes,
    clippy::all,
    clippy::pedantic
)]
struct SiluBuffers {
    ///Memory of `x`.
    pub x: p::StaticInput<f32>,
    _types: ::core::marker::PhantomData<fn() -> ()>,
}
impl ::core::fmt::Debug for SiluBuffers {
    #[inline]
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        ::core::fmt::Formatter::write_str(f, "SiluBuffers { .. }")
    }
}
///Host scalars and sizes of `silu`, as they travel to the device: none.
#[allow(
    dead_code,
    unreachable_pub,
    unused_mut,
    unused_variables,
    mismatched_lifetime_syntaxes,
    clippy::all,
    clippy::pedantic
)]
type SiluHostBlock = [p::HostSlot; 0usize];
///Options of a graph of `silu`; made by [`SiluGraph::builder`].
#[allow(
    dead_code,
    unreachable_pub,
    unused_mut,
    unused_variables,
    mismatched_lifetime_syntaxes,
    clippy::all,
    clippy::pedantic
)]
type SiluGraphBuilder = ::graphable::GraphBuilder<SiluGraph>;
#[allow(
    dead_code,
    unreachable_pub,
    unused_mut,
    unused_variables,
    mismatched_lifetime_syntaxes,
    clippy::all,
    clippy::pedantic
)]
impl p::BuildGraph for SiluGraph {
    #[inline]
    fn build(
        rt: &mut ::graphable::Runtime,
        options: p::Options,
    ) -> ::graphable::Result<Self> {
        let function = p::GraphObject::new(
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
            options,
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
