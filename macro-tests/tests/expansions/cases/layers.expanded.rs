// Pinned by macro-tests/tests/expansions. `p::` stands for `::graphable::__private::`, `site!(n)` for the
// place of the n-th segment or boundary in the source.

#[allow(single_use_lifetimes, mismatched_lifetime_syntaxes, clippy::needless_lifetimes)]
#[allow(clippy::extra_unused_lifetimes, clippy::multiple_bound_locations)]
fn decode<'__a0, 's: '__a0>(
    tokens: impl p::NeedsPiecewise<'s, DecodeGraph, &'__a0 Tensor<'s, u32>>,
    limit: usize,
    model: &Model,
) -> Result<Tensor<'s, f32>> {
    let (__cx, tokens) = p::NeedsPiecewise::open(tokens);
    #[allow(unused_mut)]
    let (p::Leaving(mut h, _),) = {
        let __outputs2 = p::UserError::segment_into(
            __cx,
            site!(0usize),
            (
                (
                    p::EntersSegment::enter(&tokens),
                    p::FieldEntersSegment::enter(&model.embed),
                ),
            ),
            |__k: &_, __given: &mut _| -> p::Ran<Result<Tensor<'s, f32>>> {
                let tokens = __k.0.0.copy();
                let __f1 = __k.0.1.get();
                let mut h = ops::embedding(tokens, &*__f1)?;
                *__given = ::core::option::Option::Some((
                    p::LeavesSegment::leave((h,).0),
                ));
                ::core::result::Result::Ok(())
            },
        )?;
        {
            let _moved = (tokens,);
        }
        __outputs2
    };
    for (i, layer) in model.layers.iter().enumerate() {
        if i == limit {
            break;
        }
        #[allow(unused_mut)]
        let (p::Leaving(q, _),) = p::UserError::segment_into(
            __cx,
            site!(1usize),
            (
                (
                    p::EntersSegment::enter(&h),
                    p::FieldEntersSegment::enter(&layer.eps),
                    p::FieldEntersSegment::enter(&layer.norm),
                    p::FieldEntersSegment::enter(&layer.wqkv),
                ),
            ),
            |__k: &_, __given: &mut _| -> p::Ran<Result<Tensor<'s, f32>>> {
                let h = __k.0.0.copy();
                let __f3 = __k.0.1.get();
                let __f4 = __k.0.2.get();
                let __f5 = __k.0.3.get();
                let q = ops::linear(
                    &ops::rms_norm(&h, &*__f4, ::core::clone::Clone::clone(__f3))?,
                    &*__f5,
                )?;
                *__given = ::core::option::Option::Some((
                    p::LeavesSegment::leave((q,).0),
                ));
                ::core::result::Result::Ok(())
            },
        )?;
        let a = {
            #[allow(unused_imports)]
            use p::{EagerOther as _, EagerResult as _, EagerTensors as _};
            let __region = p::UserError::of(
                __cx.eager(site!(2usize), p::Support::UniformBatch),
            )?;
            #[allow(unreachable_code, clippy::let_unit_value)]
            let __value = attention(&q, layer)?;
            p::UserError::of((&&&p::RegionResult::new(__value)).finish(__region))?
        };
        #[allow(unused_mut)]
        let (p::Leaving(__o7, _),) = p::UserError::segment_into(
            __cx,
            site!(3usize),
            (
                (
                    p::EntersSegment::enter(&h),
                    p::EagerEntersSegment::enter(&a),
                    p::FieldEntersSegment::enter(&layer.wo),
                ),
            ),
            |__k: &_, __given: &mut _| -> p::Ran<Result<Tensor<'s, f32>>> {
                #[allow(unused_mut, unused_assignments)]
                let mut h = __k.0.0.copy();
                let a = __k.0.1.copy();
                let __f6 = __k.0.2.get();
                h = ops::add(&h, &ops::linear(&a, &*__f6)?)?;
                *__given = ::core::option::Option::Some((
                    p::LeavesSegment::leave((h,).0),
                ));
                ::core::result::Result::Ok(())
            },
        )?;
        #[allow(unused_assignments)]
        {
            h = __o7;
        }
    }
    p::UserError::segment(
        __cx,
        site!(4usize),
        ((p::EntersSegment::enter(&h), p::FieldEntersSegment::enter(&model.head)),),
        |__k: &_| -> Result<Tensor<'s, f32>> {
            let h = __k.0.0.copy();
            let __f8 = __k.0.1.get();
            ops::linear(&h, &*__f8)
        },
    )
}
