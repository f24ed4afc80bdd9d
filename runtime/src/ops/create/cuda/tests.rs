use super::{
    super::operation::{Arange, Fill},
    *,
};
use crate::{
    Element,
    backend::cuda::kernels::testing::{Recorder, whole},
    bf16, f16,
};

#[test]
fn fills_carry_the_bits_of_the_element() {
    fn bits<T: Element>(value: T) -> (u64, u64) {
        let run = Recorder::of(Fill::of(value), &[], &[whole(0x1000, T::DTYPE, &[7])]);
        let params: FillParams = run.params(0);
        (params.pattern, params.bytes)
    }
    assert_eq!(bits(1.0f32), (0x3f80_0000_3f80_0000, 28));
    assert_eq!(bits(f16::ONE), (0x3c00_3c00_3c00_3c00, 14));
    assert_eq!(bits(bf16::NEG_INFINITY).0, 0xff80_ff80_ff80_ff80);
    assert_eq!(bits(i32::MIN).0, 0x8000_0000_8000_0000);
    assert_eq!(bits(-2i64), (0xffff_ffff_ffff_fffe, 56));
    assert_eq!(bits(1.5f64).0, 0x3ff8_0000_0000_0000);
    assert_eq!(bits(-2i8), (0xfefe_fefe_fefe_fefe, 7));
    assert_eq!(bits(3u8).0, 0x0303_0303_0303_0303);
    assert_eq!(bits(true), (0x0101_0101_0101_0101, 7));
}

#[test]
fn aranges_pass_their_values_on() {
    let run = Recorder::of(Arange { start: 100.0, step: -0.75 }, &[], &[whole(0x1000, DType::Bf16, &[9])]);
    let p: ArangeParams = run.params(0);
    assert_eq!((run.calls[0].0.name, p.to, p.count), ("arange_bf16", 0x1000, 9));
    assert_eq!((p.start, p.step), (100.0, -0.75));
}
