use super::{
    super::operation::{Arange, Fill},
    *,
};
use crate::backend::cuda::kernels::testing::{Recorder, whole};

#[test]
fn fills_carry_the_bits_of_the_element() {
    let bits =
        |dtype, value| Recorder::of(Fill(value), &[], &[whole(0x1000, dtype, &[7])]).params::<FillParams>(0);
    assert_eq!(bits(DType::F32, 1.0).pattern, 0x3f80_0000);
    assert_eq!(bits(DType::F16, 1.0).pattern, 0x3c00_3c00);
    assert_eq!(bits(DType::Bf16, f64::NEG_INFINITY).pattern, 0xff80_ff80);
    // Just above the tie between 1 and the next bf16.
    assert_eq!(bits(DType::Bf16, 1.0 + f64::powi(2.0, -8) + 1e-12).pattern, 0x3f81_3f81);
    assert_eq!(bits(DType::I32, -1e300).pattern, 0x8000_0000);
    assert_eq!(bits(DType::U32, f64::NAN).pattern, 0);
    assert_eq!(bits(DType::U8, 3.9).pattern, 0x0303_0303);
    assert_eq!((bits(DType::Bool, 2.0).pattern, bits(DType::Bool, 2.0).bytes), (0x0101_0101, 7));
}

#[test]
fn aranges_pass_their_values_on() {
    let run = Recorder::of(Arange { start: 100.0, step: -0.75 }, &[], &[whole(0x1000, DType::Bf16, &[9])]);
    let p: ArangeParams = run.params(0);
    assert_eq!((run.calls[0].0.name, p.to, p.count), ("arange_bf16", 0x1000, 9));
    assert_eq!((p.start, p.step), (100.0, -0.75));
}
