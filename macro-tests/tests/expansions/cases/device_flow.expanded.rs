// Pinned by macro-tests/tests/expansions. `p::` stands for `::graphable::__private::`, `site!(n)` for the
// place of the n-th segment or boundary in the source.

#[allow(single_use_lifetimes, mismatched_lifetime_syntaxes, clippy::needless_lifetimes)]
#[allow(clippy::extra_unused_lifetimes, clippy::multiple_bound_locations)]
fn decode<'__a0, 's: '__a0>(
    n: impl p::NeedsPiecewise<'s, DecodeGraph, &'__a0 Scalar<'s, u32>>,
    p: &Scalar<'s, bool>,
    x: &Tensor<'s, f32>,
) -> Result<Tensor<'s, f32>> {
    let (__cx, n) = p::NeedsPiecewise::open(n);
    #[allow(unused_mut)]
    let (p::Leaving(mut pair, _),) = {
        let __outputs1 = p::UserError::segment_into(
            __cx,
            site!(0usize),
            ((p::EntersSegment::enter(&x), p::EntersSegment::enter(&n)),),
            |__k: &_, __given: &mut _| -> p::Ran<Result<Tensor<'s, f32>>> {
                let x = __k.0.0.copy();
                let n = __k.0.1.copy();
                let mut i = ops::zeros(x.scope(), ())?;
                let mut pair = (ops::neg(x)?, ops::exp(x)?);
                {
                    let __before0;
                    let (
                        (p::Carrying(__o0, _), (p::Carrying(__o1, _), ())),
                        __closures,
                    ) = match p::UserError::device_while(
                        const {
                            let limit: u32 = 20;
                            p::limit(limit)
                        },
                        p::place(),
                        (
                            p::CarriedByDevice::carry(
                                (::core::clone::Clone::clone(&pair.0),).0,
                            ),
                            (
                                p::CarriedByDevice::carry(
                                    (::core::clone::Clone::clone(&i),).0,
                                ),
                                (),
                            ),
                        ),
                        {
                            __before0 = {
                                #[allow(unused_imports)]
                                use p::{
                                    CopyOfAnything as _, CopyOfReferent as _, CopyOfValue as _,
                                };
                                (&&&p::Own(&pair)).to_change()
                            };
                            |
                                __carried: &_,
                                __given: &mut _,
                            | -> p::Ran<Result<Tensor<'s, f32>>> {
                                let (p::Carrying(__o0, _), (p::Carrying(__o1, _), ())) = ::core::clone::Clone::clone(
                                    __carried,
                                );
                                #[allow(unused_variables)]
                                let mut pair = ::core::clone::Clone::clone(&__before0);
                                pair.0 = __o0;
                                #[allow(unused_variables)]
                                let pair = pair;
                                #[allow(unused_mut, unused_variables)]
                                let i = __o1;
                                #[allow(unused_variables)]
                                let n = ::core::clone::Clone::clone(&n);
                                *__given = ::core::option::Option::Some(
                                    p::DevicePredicate::predicate(&(ops::lt(&i, n)?)),
                                );
                                ::core::result::Result::Ok(())
                            }
                        },
                        |__carried, __given: &mut _| -> p::Ran<Result<Tensor<'s, f32>>> {
                            let (p::Carrying(__o0, _), (p::Carrying(__o1, _), ())) = __carried;
                            #[allow(unused_variables)]
                            let mut pair = ::core::clone::Clone::clone(&__before0);
                            pair.0 = __o0;
                            #[allow(unused_mut, unused_variables)]
                            let mut i = __o1;
                            let mut __round = p::Round::first();
                            while p::Round::begins(&mut __round) {
                                pair.0 = ops::scale(&pair.0, 2.0)?;
                                i = ops::add(&i, 1)?;
                            }
                            *__given = ::core::option::Option::Some((
                                p::CarriedByDevice::carry(
                                    (::core::clone::Clone::clone(&pair.0),).0,
                                ),
                                (p::CarriedByDevice::carry((i,).0), ()),
                            ));
                            ::core::result::Result::Ok(())
                        },
                    ) {
                        ::core::result::Result::Ok(__carried) => __carried,
                        ::core::result::Result::Err(__error) => {
                            return ::core::result::Result::Err(__error);
                        }
                    };
                    #[allow(unused_assignments)]
                    {
                        pair.0 = __o0;
                        i = __o1;
                    }
                    p::end(__closures);
                };
                *__given = ::core::option::Option::Some((
                    p::LeavesSegment::leave((pair,).0),
                ));
                ::core::result::Result::Ok(())
            },
        )?;
        {
            let _moved = (x, n);
        }
        __outputs1
    };
    let y = {
        #[allow(unused_imports)]
        use p::{EagerOther as _, EagerResult as _, EagerTensors as _};
        let __region = p::UserError::of(__cx.eager(site!(1usize), p::Support::Never))?;
        #[allow(unreachable_code, clippy::let_unit_value)]
        let __value = ops::neg(&pair.0)?;
        p::UserError::of((&&&p::RegionResult::new(__value)).finish(__region))?
    };
    p::UserError::segment(
        __cx,
        site!(2usize),
        (
            (
                p::EntersSegment::enter(&n),
                p::EntersSegment::enter(&x),
                p::EagerEntersSegment::enter(&y),
                p::EntersSegment::enter(&p),
                p::EntersSegment::enter(&pair),
            ),
        ),
        |__k: &_| -> Result<Tensor<'s, f32>> {
            let n = __k.0.0.copy();
            let x = __k.0.1.copy();
            #[allow(unused_mut, unused_assignments, unused_variables)]
            let z;
            let y = __k.0.2.copy();
            let p = __k.0.3.copy();
            let pair = __k.0.4.copy();
            let chosen = {
                #[allow(clippy::let_unit_value)]
                let ((p::Carrying(__o0, _), (p::Carrying(__value, _), ())), __closure) = match p::UserError::device_match(
                    &p::DeviceIndex::index(&(n)),
                    &[&[0], &[1, const { LAST }]],
                    {
                        |
                            __arm: usize,
                            __given: &mut _,
                        | -> p::Ran<Result<Tensor<'s, f32>>> {
                            #[allow(unused_mut)]
                            let mut z;
                            #[allow(unused_variables)]
                            let x = ::core::clone::Clone::clone(&x);
                            #[allow(unused_variables)]
                            let y = ::core::clone::Clone::clone(&y);
                            #[allow(unused_variables)]
                            let pair = {
                                #[allow(unused_imports)]
                                use p::{OwnCopy as _, OwnReborrow as _, OwnReference as _};
                                (&&&p::Own(&pair)).own()
                            };
                            #[allow(clippy::let_unit_value, unreachable_code)]
                            let __value = match __arm {
                                0usize => {
                                    z = ops::neg(x)?;
                                    keep(y)
                                }
                                1usize => {
                                    z = ops::exp(x)?;
                                    y
                                }
                                _ => {
                                    z = x.clone();
                                    {
                                        #[allow(clippy::let_unit_value)]
                                        let ((p::Carrying(__value, _), ()), __closure) = match p::UserError::device_if(
                                            &p::DevicePredicate::predicate(&(p)),
                                            {
                                                |
                                                    __arm: bool,
                                                    __given: &mut _,
                                                | -> p::Ran<Result<Tensor<'s, f32>>> {
                                                    #[allow(unused_variables)]
                                                    let y = ::core::clone::Clone::clone(&y);
                                                    #[allow(unused_variables)]
                                                    let pair = {
                                                        #[allow(unused_imports)]
                                                        use p::{OwnCopy as _, OwnReborrow as _, OwnReference as _};
                                                        (&&&p::Own(&pair)).own()
                                                    };
                                                    #[allow(clippy::let_unit_value, unreachable_code)]
                                                    let __value = if __arm { pair.1 } else { y };
                                                    #[allow(unreachable_code)]
                                                    let __value = match p::LeavesArm::leave((__value,).0) {
                                                        ::core::result::Result::Ok(__value) => __value,
                                                        ::core::result::Result::Err(__error) => {
                                                            return ::core::result::Result::Err(__error);
                                                        }
                                                    };
                                                    #[allow(unreachable_code)]
                                                    {
                                                        *__given = ::core::option::Option::Some((__value, ()));
                                                        ::core::result::Result::Ok(())
                                                    }
                                                }
                                            },
                                        ) {
                                            ::core::result::Result::Ok(__value) => __value,
                                            ::core::result::Result::Err(__error) => {
                                                return ::core::result::Result::Err(__error);
                                            }
                                        };
                                        p::end(__closure);
                                        {
                                            let _moved = (y,);
                                        }
                                        __value
                                    }
                                }
                            };
                            #[allow(unreachable_code)]
                            let __value = match p::LeavesArm::leave((__value,).0) {
                                ::core::result::Result::Ok(__value) => __value,
                                ::core::result::Result::Err(__error) => {
                                    return ::core::result::Result::Err(__error);
                                }
                            };
                            #[allow(unreachable_code)]
                            {
                                *__given = ::core::option::Option::Some((
                                    p::CarriedByDevice::carry((z,).0),
                                    (__value, ()),
                                ));
                                ::core::result::Result::Ok(())
                            }
                        }
                    },
                ) {
                    ::core::result::Result::Ok(__value) => __value,
                    ::core::result::Result::Err(__error) => {
                        return ::core::result::Result::Err(__error);
                    }
                };
                #[allow(unused_assignments)]
                {
                    z = __o0;
                }
                p::end(__closure);
                {
                    let _moved = (x, y);
                }
                __value
            };
            ops::add(&chosen, &z)
        },
    )
}
///The graph of `decode`: its recordings, and the memory of its inputs.
#[allow(dead_code, unreachable_pub)]
#[derive(p::Graph)]
struct DecodeGraph(::graphable::GraphObject);
#[allow(dead_code, unreachable_pub, mismatched_lifetime_syntaxes)]
#[allow(clippy::all, clippy::pedantic)]
impl DecodeGraph {
    ///Segments and boundaries of `decode`. Print it.
    pub const PLAN: p::Plan = p::Plan {
        function: "decode",
        file: ::core::file!(),
        items: &[
            p::PlanItem::Segment {
                site: site!(0usize),
                live_ins: &["x", "n"],
                live_outs: &["pair"],
            },
            p::PlanItem::Boundary {
                site: site!(1usize),
                call: "ops::neg(&pair.0)?",
                support: p::Support::Never,
                moved: ::core::option::Option::None,
            },
            p::PlanItem::Segment {
                site: site!(2usize),
                live_ins: &["n", "x", "y", "p", "pair"],
                live_outs: &["the result"],
            },
        ],
        host_statement: ::core::option::Option::None,
    };
    ///Returns the options of a graph of `decode`.
    #[inline]
    pub fn builder() -> ::graphable::GraphBuilder<Self> {
        ::graphable::GraphBuilder::new(
            "decode",
            &Self::PLAN,
            &[],
            const {
                &[p::InputSpec::scalar::<u32>("n"), p::InputSpec::device::<f32>("x")]
            },
            Self,
        )
    }
    /// Returns the memory of the tensor inputs, to fill it in place.
    #[inline]
    pub fn buffers(&self) -> DecodeBuffers<'_> {
        DecodeBuffers {
            x: ::graphable::StaticInput::new(self, 1usize),
        }
    }
    ///Calls `decode`: replays the segments that are recorded, and records the others.
    ///
    /// # Errors
    /// Returns the errors of the function, and those of the device.
    #[inline]
    pub fn call<'s>(
        &self,
        step: &::graphable::Step<'s>,
        n: u32,
        p: &Scalar<'s, bool>,
        x: &Tensor<'s, f32>,
    ) -> Result<Tensor<'s, f32>> {
        let mut __inputs = p::Inputs::new(step, self);
        __inputs.scalar(0usize, n);
        __inputs.device(1usize, x);
        p::call(
            __inputs.enter((<Scalar<'s, bool> as p::GraphInput>::enter(p),)),
            p::UserError::convert,
            |__call| {
                let n = &__call.host_scalar::<u32>(0usize);
                let x = &__call.tensor::<f32>(1usize);
                let __cx = __call.piecewise();
                <Tensor<
                    's,
                    f32,
                > as p::GraphResult<
                    's,
                    _,
                >>::leave(decode(p::OnlyForFunctionsWithBoundaries(__cx, n), p, x))
            },
        )
    }
}
///The memory of the tensor inputs of `decode`; see [`DecodeGraph::buffers`].
#[allow(dead_code, unreachable_pub)]
#[derive(::core::fmt::Debug)]
struct DecodeBuffers<'g> {
    ///The memory of `x`.
    pub x: ::graphable::StaticInput<'g, f32>,
}
///Options of a graph of `decode`; made by [`DecodeGraph::builder`].
#[allow(dead_code, unreachable_pub)]
type DecodeGraphBuilder = ::graphable::GraphBuilder<DecodeGraph>;
