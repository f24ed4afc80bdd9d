// Pinned by macro-tests/tests/expansions. `p::` stands for `::graphable::__private::`, `site!(n)` for the
// place of the n-th segment or boundary in the source.

impl Model {
    #[allow(
        clippy::needless_lifetimes,
        clippy::extra_unused_lifetimes,
        single_use_lifetimes
    )]
    fn forward<'__a0, 's>(
        &self,
        h: impl ModelForwardNeedsPiecewise<'s, &'__a0 Tensor<'s, f32>>,
    ) -> Result<Tensor<'s, f32>>
    where
        's: '__a0,
    {
        let (__cx, h) = ModelForwardNeedsPiecewise::open(h);
        #[allow(unused_mut)]
        let (h,) = {
            let __outputs2 = __cx
                .segment(
                    site!(0usize),
                    ((&self.norm, &h),),
                    |
                        __k: &_,
                    | -> ::core::result::Result<
                        _,
                        <Result<Tensor<'s, f32>> as p::TryError>::Error,
                    > {
                        let __f1 = __k.0.0;
                        let h = ::core::clone::Clone::clone(__k.0.1);
                        #[allow(unused_variables)]
                        let norm = |t: &Tensor<'s, f32>| ops::rms_norm(t, &*__f1, 1e-5);
                        let h = norm(h)?;
                        ::core::result::Result::Ok((h,))
                    },
                )?;
            {
                let _moved = (h,);
            }
            __outputs2
        };
        let h = self.block.forward(p::InDriver(__cx, &h))?;
        __cx.segment(
            site!(2usize),
            ((&h, &self),),
            |
                __k: &_,
            | -> ::core::result::Result<
                _,
                <Result<Tensor<'s, f32>> as p::TryError>::Error,
            > {
                let h = ::core::clone::Clone::clone(__k.0.0);
                let __self = ::core::clone::Clone::clone(__k.0.1);
                #[allow(unused_variables)]
                let norm = |t: &Tensor<'s, f32>| ops::rms_norm(t, &__self.norm, 1e-5);
                ops::linear(&norm(&h)?, &__self.head)
            },
        )
    }
}
