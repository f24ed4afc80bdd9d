// Pinned by macro-tests/tests/expansions. `p::` stands for `::graphable::__private::`, `site!(n)` for the
// place of the n-th segment or boundary in the source.

impl Model {
    #[allow(
        single_use_lifetimes,
        mismatched_lifetime_syntaxes,
        clippy::needless_lifetimes
    )]
    #[allow(clippy::extra_unused_lifetimes, clippy::multiple_bound_locations)]
    fn forward<'__a0, 's: '__a0>(
        &self,
        h: impl p::NeedsPiecewise<'s, ModelForwardGraph, &'__a0 Tensor<'s, f32>>,
    ) -> Result<Tensor<'s, f32>> {
        let (__cx, h) = p::NeedsPiecewise::open(h);
        #[allow(unused_mut)]
        let (p::Leaving(h, _),) = {
            let __outputs2 = p::UserError::segment_into(
                __cx,
                site!(0usize),
                (
                    (
                        p::FieldEntersSegment::enter(&self.norm),
                        p::EntersSegment::enter(&h),
                    ),
                ),
                |__k: &_, __given: &mut _| -> p::Ran<Result<Tensor<'s, f32>>> {
                    let __f1 = __k.0.0.get();
                    let h = __k.0.1.copy();
                    let norm = |t: &Tensor<'s, f32>| ops::rms_norm(t, &*__f1, 1e-5);
                    let h = norm(h)?;
                    *__given = ::core::option::Option::Some((
                        p::LeavesSegment::leave((h,).0),
                    ));
                    ::core::result::Result::Ok(())
                },
            )?;
            {
                let _moved = (h,);
            }
            __outputs2
        };
        let h = self.block.forward(p::OnlyForFunctionsWithBoundaries(__cx, &h))?;
        p::UserError::segment(
            __cx,
            site!(2usize),
            ((p::EntersSegment::enter(&h), p::EntersSegment::enter(&self)),),
            |__k: &_| -> Result<Tensor<'s, f32>> {
                let h = __k.0.0.copy();
                let __self = __k.0.1.copy();
                #[allow(unused_variables)]
                let norm = |t: &Tensor<'s, f32>| ops::rms_norm(t, &__self.norm, 1e-5);
                ops::linear(&norm(&h)?, &__self.head)
            },
        )
    }
    #[doc(hidden)]
    #[allow(dead_code, unreachable_pub, clippy::all, clippy::pedantic)]
    fn __graphable_forward_piecewise<'s>(
        &self,
        h: &Tensor<'s, f32>,
        __cx: p::Piecewise<'s>,
    ) -> Result<Tensor<'s, f32>> {
        <Model>::forward(self, p::OnlyForFunctionsWithBoundaries(__cx, h))
    }
}
