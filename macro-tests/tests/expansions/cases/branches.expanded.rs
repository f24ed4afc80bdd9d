// Pinned by macro-tests/tests/expansions. `p::` stands for `::graphable::__private::`, `site!(n)` for the
// place of the n-th segment or boundary in the source.

#[allow(single_use_lifetimes, mismatched_lifetime_syntaxes, clippy::needless_lifetimes)]
#[allow(clippy::extra_unused_lifetimes, clippy::multiple_bound_locations)]
fn sample<'__a0, 's: '__a0>(
    x: impl p::NeedsPiecewise<'s, SampleGraph, &'__a0 Tensor<'s, f32>>,
    greedy: bool,
) -> Result<Tensor<'s, u32>> {
    let (__cx, x) = p::NeedsPiecewise::open(x);
    #[allow(unused_mut)]
    let (p::Leaving(y, _),) = {
        let __outputs1 = p::UserError::segment_into(
            __cx,
            site!(0usize),
            ((p::EntersSegment::enter(&x),),),
            |__k: &_, __given: &mut _| -> p::Ran<Result<Tensor<'s, u32>>> {
                let x = __k.0.0.copy();
                let y = ops::softmax(x, 1)?;
                *__given = ::core::option::Option::Some((
                    p::LeavesSegment::leave((y,).0),
                ));
                ::core::result::Result::Ok(())
            },
        )?;
        {
            let _moved = (x,);
        }
        __outputs1
    };
    let n = {
        #[allow(unused_imports)]
        use p::{EagerOther as _, EagerResult as _, EagerTensors as _};
        let __region = p::UserError::of(__cx.eager(site!(1usize), p::Support::Never))?;
        let cx: &::graphable::Eager<'s> = &__region;
        #[allow(unreachable_code, clippy::let_unit_value)]
        let __value = cx.item(&ops::max(&y)?)?;
        p::UserError::of((&&&p::RegionResult::new(__value)).finish(__region))?
    };
    if n == 0 {
        return {
            p::UserError::segment(
                __cx,
                site!(2usize),
                ((p::EntersSegment::enter(&y),),),
                |__k: &_| -> Result<Tensor<'s, u32>> {
                    let y = __k.0.0.copy();
                    ops::argmax(&y, 1)
                },
            )
        };
    }
    let Some(k) = ({
        #[allow(unused_imports)]
        use p::{EagerOther as _, EagerResult as _, EagerTensors as _};
        let __region = p::UserError::of(__cx.eager(site!(3usize), p::Support::Never))?;
        #[allow(unreachable_code, clippy::let_unit_value)]
        let __value = pick(n);
        p::UserError::of((&&&p::RegionResult::new(__value)).finish(__region))?
    }) else { return Err(Error::Empty) };
    p::UserError::segment(
        __cx,
        site!(4usize),
        (
            (
                p::EntersSegment::enter(&greedy),
                p::EntersSegment::enter(&y),
                p::EagerEntersSegment::enter(&k),
            ),
        ),
        |__k: &_| -> Result<Tensor<'s, u32>> {
            let greedy = __k.0.0.copy();
            let y = __k.0.1.copy();
            let k = __k.0.2.copy();
            let top = if greedy { ops::argmax(&y, 1)? } else { ops::top(&y, k)? };
            ops::copy(&top)
        },
    )
}
