// Pinned by macro-tests/tests/expansions. `p::` stands for `::graphable::__private::`, `site!(n)` for the
// place of the n-th segment or boundary in the source.

#[allow(single_use_lifetimes, mismatched_lifetime_syntaxes, clippy::needless_lifetimes)]
#[allow(clippy::extra_unused_lifetimes, clippy::multiple_bound_locations)]
fn silu<'s>(x: &Tensor<'s, f32>, rows: &[Tensor<'s, f32>]) -> Result<Out<'s>> {
    ops::mul(x, &ops::sigmoid(&rows[0])?)
}
///The graph of `silu`: its recordings, and the memory of its inputs.
#[allow(dead_code, unreachable_pub)]
#[derive(p::Graph)]
struct SiluGraph(::graphable::GraphObject);
#[allow(dead_code, unreachable_pub, mismatched_lifetime_syntaxes)]
#[allow(clippy::all, clippy::pedantic)]
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
    ///Returns the options of a graph of `silu`.
    #[inline]
    pub fn builder() -> ::graphable::GraphBuilder<Self> {
        ::graphable::GraphBuilder::new(
            "silu",
            &Self::PLAN,
            &[],
            const { &[p::InputSpec::device::<f32>("x")] },
            Self,
        )
    }
    /// Returns the memory of the tensor inputs, to fill it in place.
    #[inline]
    pub fn buffers(&self) -> SiluBuffers<'_> {
        SiluBuffers {
            x: ::graphable::StaticInput::new(self, 0usize),
        }
    }
    ///Calls `silu`: replays the segments that are recorded, and records the others.
    ///
    /// # Errors
    /// Returns the errors of the function, and those of the device.
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
        let mut __inputs = p::Inputs::new(step, self);
        __inputs.device(0usize, x);
        p::call(
            __inputs.enter((<[Tensor<'s, f32>] as p::GraphInput>::enter(rows),)),
            p::UserError::convert,
            |__call| {
                let x = &__call.tensor::<f32>(0usize);
                p::UserError::whole(
                    __call.body(),
                    __call.piecewise(),
                    site!(0usize),
                    (x, <[Tensor<'s, f32>] as p::GraphInput>::enter(rows)),
                    |__k| <Out<
                        's,
                    > as p::GraphResult<'s, _>>::leave(silu(__k.0, __k.1.get())),
                )
            },
        )
    }
}
///The memory of the tensor inputs of `silu`; see [`SiluGraph::buffers`].
#[allow(dead_code, unreachable_pub)]
#[derive(::core::fmt::Debug)]
struct SiluBuffers<'g> {
    ///The memory of `x`.
    pub x: ::graphable::StaticInput<'g, f32>,
}
///Options of a graph of `silu`; made by [`SiluGraph::builder`].
#[allow(dead_code, unreachable_pub)]
type SiluGraphBuilder = ::graphable::GraphBuilder<SiluGraph>;
