// Pinned by macro-tests/tests/expansions. `p::` stands for `::graphable::__private::`, `site!(n)` for the
// place of the n-th segment or boundary in the source.

#[allow(single_use_lifetimes, mismatched_lifetime_syntaxes, clippy::needless_lifetimes)]
#[allow(clippy::extra_unused_lifetimes, clippy::multiple_bound_locations)]
pub fn project<'s>(
    x: &Tensor<'s, f32>,
    limit: usize,
    model: &Model,
) -> Result<Tensor<'s, f32>> {
    let y = ops::linear(x, &model.w)?;
    ops::scale(&y, limit as f32)
}
///The graph of `project`: its recordings, and the memory of its inputs.
#[allow(dead_code, unreachable_pub)]
#[derive(p::Graph)]
pub struct ProjectGraph(::graphable::GraphObject);
#[allow(dead_code, unreachable_pub, mismatched_lifetime_syntaxes)]
#[allow(clippy::all, clippy::pedantic)]
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
    ///Returns the options of a graph of `project`.
    #[inline]
    pub fn builder() -> ::graphable::GraphBuilder<Self> {
        ::graphable::GraphBuilder::new(
            "project",
            &Self::PLAN,
            &["B"],
            const {
                &[
                    p::InputSpec::host::<f32>("x")
                        .dims(&[p::Dim::Symbol(0usize), p::Dim::Const(4)]),
                ]
            },
            Self,
        )
    }
    /// Returns the memory of the tensor inputs, to fill it in place.
    #[inline]
    pub fn buffers(&self) -> ProjectBuffers<'_> {
        ProjectBuffers {
            x: ::graphable::StaticInput::new(self, 0usize),
        }
    }
    ///Calls `project`: replays the segments that are recorded, and records the others.
    ///
    /// # Errors
    /// Returns the errors of the function, and those of the device.
    #[inline]
    pub fn call<'s, '__h0>(
        &self,
        step: &::graphable::Step<'s>,
        x: impl ::core::convert::Into<::graphable::HostSlice<'__h0, f32>>,
        limit: usize,
        model: &Model,
    ) -> Result<Tensor<'s, f32>> {
        let mut __inputs = p::Inputs::new(step, self);
        __inputs.host(0usize, ::core::convert::Into::into(x));
        p::call(
            __inputs
                .enter((
                    <usize as p::GraphKey>::enter(&limit),
                    <Model as p::GraphParams>::enter(model),
                )),
            p::UserError::convert,
            |__call| {
                let x = &__call.tensor::<f32>(0usize);
                p::UserError::whole(
                    __call.body(),
                    __call.piecewise(),
                    site!(0usize),
                    (
                        x,
                        <usize as p::GraphKey>::enter(&limit),
                        <Model as p::GraphParams>::enter(model),
                    ),
                    |__k| <Tensor<
                        's,
                        f32,
                    > as p::GraphResult<
                        's,
                        _,
                    >>::leave(project(__k.0, __k.1.copy(), __k.2.get())),
                )
            },
        )
    }
    /// Records for every combination of bucket sizes, largest first: segments, then whole calls. Restores written state.
    ///
    /// # Errors
    /// Returns an error if a dimension has no buckets, errors that earlier calls left unread, and those of the calls.
    #[inline]
    pub fn capture_all(
        &self,
        rt: &mut ::graphable::Runtime,
        limit: usize,
        model: &Model,
    ) -> ::graphable::Result<()> {
        self.capture_all_with(rt, limit, model, p::silent)
    }
    /// Captures like `capture_all`, with the same errors, and reports its progress.
    #[inline]
    pub fn capture_all_with(
        &self,
        rt: &mut ::graphable::Runtime,
        limit: usize,
        model: &Model,
        mut progress: impl ::core::ops::FnMut(::graphable::CaptureProgress<'_>),
    ) -> ::graphable::Result<()> {
        p::capture_all(
            self,
            rt,
            &mut |__given, __synthetic| {
                let x = __synthetic.host::<f32>(0usize)?;
                p::CaptureFailed::check(
                    self
                        .call(
                            __given,
                            &x,
                            <usize as p::GraphKey>::enter(&limit).copy(),
                            model,
                        ),
                )
            },
            &mut progress,
        )
    }
}
///The memory of the tensor inputs of `project`; see [`ProjectGraph::buffers`].
#[allow(dead_code, unreachable_pub)]
#[derive(::core::fmt::Debug)]
pub struct ProjectBuffers<'g> {
    ///The memory of `x`.
    pub x: ::graphable::StaticInput<'g, f32>,
}
///Options of a graph of `project`; made by [`ProjectGraph::builder`].
#[allow(dead_code, unreachable_pub)]
pub type ProjectGraphBuilder = ::graphable::GraphBuilder<ProjectGraph>;
