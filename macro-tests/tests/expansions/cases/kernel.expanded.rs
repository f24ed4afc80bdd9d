// Pinned by macro-tests/tests/expansions. `p::` stands for `::graphable::__private::`, `site!(n)` for the
// place of the n-th segment or boundary in the source.

///The operation of the kernel [`swish`](enum@swish).
#[allow(dead_code, clippy::too_many_arguments)]
pub fn swish<'s, __Element: ::graphable::Float>(
    gate: &::graphable::Tensor<'s, __Element>,
    up: impl p::kernel::Argument<'s, __Element>,
    steps: impl p::kernel::Argument<'s, ::core::primitive::u32>,
    keep: impl p::kernel::Argument<'s, ::core::primitive::bool>,
) -> ::graphable::Result<
    (::graphable::Tensor<'s, __Element>, ::graphable::Tensor<'s, ::core::primitive::u32>),
> {
    let mut __call = p::kernel::Call::new(
        <swish as p::kernel::Kernel>::DEFINITION,
        gate,
    )?;
    __call.argument(up)?;
    __call.argument(steps)?;
    __call.argument(keep)?;
    __call.launch()
}
///The kernel of the operation [`swish()`], for one element and as text.
#[allow(
    non_camel_case_types,
    dead_code,
    missing_debug_implementations,
    missing_copy_implementations
)]
pub enum swish {}
#[allow(
    dead_code,
    unreachable_pub,
    unused_parens,
    unused_braces,
    unused_labels,
    clippy::all,
    clippy::pedantic
)]
const _: () = {
    type Callee0 = sigmoid;
    type Callee1 = crate::bounds;
    const SLOPE: f32 = 0.25;
    impl swish {
        ///One element of each result from one element of each parameter.
        #[inline(always)]
        pub fn scalar(
            gate: ::core::primitive::f32,
            up: ::core::primitive::f32,
            mut steps: ::core::primitive::u32,
            keep: ::core::primitive::bool,
        ) -> (::core::primitive::f32, ::core::primitive::u32) {
            let mut y: ::core::primitive::f32 = ((Callee0::scalar(gate)) * (up));
            'loop_0: for i in ((0i32)..(4i32)) {
                'loop_1: for j in ::core::iter::Iterator::rev(((0i32)..=(i))) {
                    (if ((((j) as ::core::primitive::f32)) > (y)) {
                        break 'loop_0;
                    });
                    y = {
                        let __value = ((f32::consts::PI) * (SLOPE));
                        ((y) - (__value))
                    };
                }
                steps = {
                    let __value = p::kernel::lang::shl(1u32, i);
                    p::kernel::lang::add(steps, __value)
                };
            }
            let sign: ::core::primitive::f32 = (match p::kernel::lang::rem(steps, 7u32) {
                0u32 | 3u32..=5u32 => -1.0f32,
                _ => 1.0f32,
            });
            (if (!(keep)) {
                return (f32::NAN, (steps).leading_zeros());
            });
            let (low, high) = Callee1::scalar(p::kernel::lang::max(y, ALPHA), 2);
            let y: ::core::primitive::f32 = {
                let y: ::core::primitive::f32 = (y).mul_add(sign, low);
                (if ((y) > (high)) { high } else { { (y).tanh() } })
            };
            (y, steps)
        }
        /// The source for NVIDIA GPUs: what a kernel becomes before it is compiled for the types of tensors.
        pub fn cuda_source() -> ::std::string::String {
            p::kernel::cuda_source(<swish as p::kernel::Kernel>::DEFINITION)
        }
    }
    impl p::kernel::Kernel for swish {
        const DEFINITION: &'static p::kernel::Definition = &p::kernel::Definition {
            id: ::core::any::TypeId::of::<swish>(),
            name: "swish",
            kind: p::kernel::Kind::Elements,
            inputs: &[
                ("gate", p::kernel::Compute::F32),
                ("up", p::kernel::Compute::F32),
                ("steps", p::kernel::Compute::U32),
                ("keep", p::kernel::Compute::Bool),
            ],
            outputs: &[p::kernel::Compute::F32, p::kernel::Compute::U32],
            text: "DEVICE Tuple2<f32, u32> ${f}(f32 gate_0, f32 up_1, u32 steps_2, bool keep_3) {\n    f32 y_4 = (${c0}(gate_0) * up_1);\n    for (i64 i0 = (i64)0; i0 < (i64)4; ++i0) {\n        const i32 i_5 = (i32)i0;\n        {\n            for (i64 i1 = (i64)i_5; i1 >= (i64)0; --i1) {\n                const i32 j_6 = (i32)i1;\n                {\n                    if ((lang::to_f32(j_6) > y_4)) {\n                        goto break_0;\n                    }\n                    y_4 = (y_4 - (${k0} * ${k1}));\n                }\n            }\n            steps_2 = lang::add(steps_2, lang::shl(1u, lang::to_u32(i_5)));\n        }\n    }\n    break_0:;\n    f32 sign_7;\n    const u32 t1 = lang::rem(steps_2, 7u);\n    if (t1 == 0u || (t1 >= 3u && t1 <= 5u)) {\n        sign_7 = (-1.0f);\n    } else {\n        sign_7 = 1.0f;\n    }\n    if (lang::bit_not(keep_3)) {\n        return Tuple2<f32, u32>{${k2}, lang::leading_zeros(steps_2)};\n    }\n    const Tuple2<f32, f32> t2 = ${c1}(lang::max(y_4, ${k3}), (${p1.1})(2ll));\n    f32 low_8 = t2.v0;\n    f32 high_9 = t2.v1;\n    f32 y_11;\n    {\n        f32 y_10 = lang::mul_add(y_4, sign_7, low_8);\n        y_11 = ((y_10 > high_9) ? high_9 : lang::tanh(y_10));\n    }\n    return Tuple2<f32, u32>{y_11, steps_2};\n}\n",
            further: false,
            uses: |uses| {
                uses.kernel(<Callee0 as p::kernel::Kernel>::DEFINITION);
                uses.kernel(<Callee1 as p::kernel::Kernel>::DEFINITION);
                uses.constant(f32::consts::PI);
                uses.constant(SLOPE);
                uses.constant(f32::NAN);
                uses.constant(ALPHA);
            },
            block: {
                fn of_block(block: &mut p::kernel::Block<'_>) {
                    let x0 = block.input_f32(0usize);
                    let x1 = block.input_f32(1usize);
                    let x2 = block.input_u32(2usize);
                    let x3 = block.input_u8(3usize);
                    let y0 = block.output_f32(0usize);
                    let y1 = block.output_u32(1usize);
                    for (((((y0, y1), x0), x1), x2), x3) in ::core::iter::Iterator::zip(
                        ::core::iter::Iterator::zip(
                            ::core::iter::Iterator::zip(
                                ::core::iter::Iterator::zip(
                                    ::core::iter::Iterator::zip(y0.iter_mut(), y1.iter_mut()),
                                    x0.iter(),
                                ),
                                x1.iter(),
                            ),
                            x2.iter(),
                        ),
                        x3.iter(),
                    ) {
                        let (r0, r1) = swish::scalar(*x0, *x1, *x2, *x3 != 0);
                        *y0 = r0;
                        *y1 = r1;
                    }
                }
                of_block
            },
        };
        const DEPTH: ::core::primitive::usize = p::kernel::above(
            &[
                <Callee0 as p::kernel::Kernel>::DEPTH,
                <Callee1 as p::kernel::Kernel>::DEPTH,
            ],
        );
    }
    const _: ::core::primitive::usize = <swish as p::kernel::Kernel>::DEPTH;
};
