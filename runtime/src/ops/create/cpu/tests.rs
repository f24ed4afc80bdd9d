use super::super::operation::{Arange, Fill};
use crate::{DType, backend::cpu::kernels::testing::*};

#[test]
fn fill_and_arange_round_once() {
    for dtype in ALL {
        for n in [0, 1, 700, 40_000] {
            for (start, step) in [(0.0, 1.0), (-3.0, 0.37), (5.5, 0.0), (250.0, 1.0), (1.0039062500001, 0.0)]
            {
                let expected = |v: f64| match dtype {
                    DType::Bool => f64::from(u8::from(v != 0.0)),
                    _ if dtype.is_float() => nearest(dtype, v),
                    DType::I64 => v as i64 as f64,
                    DType::I8 => f64::from(v as i8),
                    DType::I32 => f64::from(v as i32),
                    DType::U32 => f64::from(v as u32),
                    _ => f64::from(v as u8),
                };
                let mut y = Array::output(dtype, &[n]);
                run(Arange { start, step }, &[], &mut y).unwrap();
                let values: Vec<f64> = (0..n).map(|i| expected(start + i as f64 * step)).collect();
                assert_exact(&y.values(), &values, &format!("arange {dtype}"));
                let element = encode(dtype, start);
                let bits = element.iter().rev().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
                run(Fill(bits), &[], &mut y).unwrap();
                assert_exact(&y.values(), &vec![decode(dtype, &element); n], &format!("fill {dtype}"));
            }
        }
    }
}
