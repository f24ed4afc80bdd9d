// Pinned by macro-tests/tests/expansions. `p::` stands for `::graphable::__private::`, `site!(n)` for the
// place of the n-th segment or boundary in the source.

#[allow(single_use_lifetimes, mismatched_lifetime_syntaxes, clippy::needless_lifetimes)]
#[allow(clippy::extra_unused_lifetimes, clippy::multiple_bound_locations)]
fn decode<'__a0, 's: '__a0>(
    x: impl p::NeedsPiecewise<'s, DecodeGraph, &'__a0 Tensor<'s, f32>>,
    model: &Model,
) -> Result<Tensor<'s, f32>> {
    let (__cx, x) = p::NeedsPiecewise::open(x);
    let bias = {
        #[allow(unused_imports)]
        use p::{EagerOther as _, EagerResult as _, EagerTensors as _};
        let __region = p::UserError::of(__cx.eager(site!(0usize), p::Support::Never))?;
        #[allow(unreachable_code, clippy::let_unit_value)]
        let __value = table(x)?;
        p::UserError::of((&&&p::RegionResult::new(__value)).finish(__region))?
    };
    #[allow(unused_mut)]
    let (p::Leaving(b, _), p::Leaving(__value1, _)) = {
        let __outputs4 = p::UserError::segment_into(
            __cx,
            site!(1usize),
            (
                (
                    p::EntersSegment::enter(&x),
                    p::FieldEntersSegment::enter(&model.down),
                    p::FieldEntersSegment::enter(&model.up),
                    p::EagerEntersSegment::enter(&bias),
                ),
            ),
            |__k: &_, __given: &mut _| -> p::Ran<Result<Tensor<'s, f32>>> {
                let x = __k.0.0.copy();
                let __f2 = __k.0.1.get();
                let __f3 = __k.0.2.get();
                let bias = __k.0.3.copy();
                let a = ops::mul(x, &*__f3)?;
                let b = ops::add(&a, &bias)?;
                let __value1 = {
                    let __result: ::core::result::Result<
                        _,
                        <Result<Tensor<'s, f32>> as p::TryError>::Error,
                    > = ops::mul(&b, &*__f2);
                    __result?
                };
                *__given = ::core::option::Option::Some((
                    p::LeavesSegment::leave((b,).0),
                    p::LeavesSegment::leave((__value1,).0),
                ));
                ::core::result::Result::Ok(())
            },
        )?;
        {
            let _moved = (x,);
        }
        __outputs4
    };
    {
        #[allow(unused_imports)]
        use p::{EagerOther as _, EagerResult as _, EagerTensors as _};
        let __region = p::UserError::of(__cx.eager(site!(2usize), p::Support::Never))?;
        let cx: &::graphable::Eager<'s> = &__region;
        #[allow(unreachable_code, clippy::let_unit_value)]
        let __value = look(cx, &b)?;
        p::UserError::of((&&&p::RegionResult::new(__value)).finish(__region))?
    };
    ::core::result::Result::<
        _,
        <Result<Tensor<'s, f32>> as p::TryError>::Error,
    >::Ok(__value1)
}
