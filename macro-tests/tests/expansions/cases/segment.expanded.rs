// Pinned by macro-tests/tests/expansions. `p::` stands for `::graphable::__private::`, `site!(n)` for the
// place of the n-th segment or boundary in the source.

#[allow(
    clippy::needless_lifetimes,
    clippy::extra_unused_lifetimes,
    clippy::multiple_bound_locations,
    single_use_lifetimes,
    mismatched_lifetime_syntaxes
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
    mismatched_lifetime_syntaxes,
    clippy::all,
    clippy::pedantic
)]
pub struct ProjectGraph {
    function: p::GraphObject,
    buffers: ProjectBuffers,
    _types: ::core::marker::PhantomData<fn() -> ()>,
}
impl ::core::fmt::Debug for ProjectGraph {
    #[inline]
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        ::core::fmt::Formatter::write_str(f, "ProjectGraph { .. }")
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
    #[inline]
    pub fn builder() -> ProjectGraphBuilder {
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
    pub fn buffers(&self) -> &ProjectBuffers {
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
    ///Calls `project`: replays what is recorded, and records what is not.
    ///
    /// # Errors
    /// Those of the function, and what goes wrong on the device.
    #[inline]
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
    #[inline]
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
        let __block: ProjectHostBlock = [
            p::HostSlot::of(__inputs.symbol(0usize)? as u32),
        ];
        let __call = __inputs.enter(p::bytemuck::bytes_of(&__block), (&limit, &model))?;
        let x = &__call.tensor::<f32>(0usize, &self.buffers.x)?;
        __call
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
    #[inline]
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
        self.capture_all_with(rt, limit, model, p::untold)
    }
    /// As `capture_all`, and tells how far it is.
    ///
    /// # Errors
    /// As `capture_all`.
    #[inline]
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
                    p::CaptureFailed::told(
                        self
                            .call(
                                __given,
                                &x,
                                ::core::clone::Clone::clone(&limit),
                                model,
                            ),
                    )
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
    mismatched_lifetime_syntaxes,
    clippy::all,
    clippy::pedantic
)]
pub struct ProjectBuffers {
    ///Memory of `x`.
    pub x: p::StaticInput<f32>,
    _types: ::core::marker::PhantomData<fn() -> ()>,
}
impl ::core::fmt::Debug for ProjectBuffers {
    #[inline]
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        ::core::fmt::Formatter::write_str(f, "ProjectBuffers { .. }")
    }
}
///Host scalars and sizes of `project`, as they travel to the device: the size of `B`, without padding.
#[allow(
    dead_code,
    unreachable_pub,
    unused_mut,
    unused_variables,
    mismatched_lifetime_syntaxes,
    clippy::all,
    clippy::pedantic
)]
pub type ProjectHostBlock = [p::HostSlot; 1usize];
///Options of a graph of `project`; made by [`ProjectGraph::builder`].
#[allow(
    dead_code,
    unreachable_pub,
    unused_mut,
    unused_variables,
    mismatched_lifetime_syntaxes,
    clippy::all,
    clippy::pedantic
)]
pub type ProjectGraphBuilder = ::graphable::GraphBuilder<ProjectGraph>;
#[allow(
    dead_code,
    unreachable_pub,
    unused_mut,
    unused_variables,
    mismatched_lifetime_syntaxes,
    clippy::all,
    clippy::pedantic
)]
impl p::BuildGraph for ProjectGraph {
    #[inline]
    fn build(
        rt: &mut ::graphable::Runtime,
        options: p::Options,
    ) -> ::graphable::Result<Self> {
        let function = p::GraphObject::new(
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
            options,
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
