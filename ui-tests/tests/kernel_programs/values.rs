/// The bits of an element, from the number of the program, of the parameter and of the element. Special values are common.
pub(crate) fn bits(seed: u64, parameter: usize, element: usize, ty: &str) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (parameter as u64) << 40 ^ element as u64;
    for _ in 0..3 {
        x ^= x >> 31;
        x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
    let (pick, low) = ((x >> 59) as usize, x as u32);
    match ty {
        "f32" => {
            let special = [
                0.0,
                -0.0,
                1.0,
                -1.0,
                f32::INFINITY,
                f32::NEG_INFINITY,
                f32::NAN,
                1e-40,
                3.0e38,
                2147483648.0,
                0.5,
                255.5,
            ];
            match pick {
                0..12 => special[pick].to_bits().into(),
                12..14 => low.into(),
                14..16 => f32::NAN.to_bits().into(),
                _ => ((low as i32 as f32) / 1.0e8).to_bits().into(),
            }
        }
        "f64" => {
            let special = [
                0.0,
                -0.0,
                1.0,
                -1.0,
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::NAN,
                1e-310,
                1.0e308,
                9223372036854775808.0,
                0.5,
                16777217.0,
            ];
            match pick {
                0..12 => f64::to_bits(special[pick]),
                12..14 => x,
                14..16 => f64::NAN.to_bits(),
                _ => ((x as i64 as f64) / 1.0e18).to_bits(),
            }
        }
        "i64" => match pick {
            0..5 => 0,
            5 => 1,
            6..8 => u64::MAX,
            8 => 1 << 63,
            9 => i64::MAX as u64,
            10..22 => (x % 64).wrapping_sub(20),
            22..26 => x & 0xffff_ffff,
            _ => x,
        },
        "i32" | "u32" => u64::from(match pick {
            0..5 => 0,
            5 => 1,
            6..8 => u32::MAX,
            8 => 1 << 31,
            9 => i32::MAX as u32,
            10..22 => (low % 64).wrapping_sub(20),
            _ => low,
        }),
        "u8" | "i8" => match pick {
            0..4 => 0,
            4..8 => 255,
            8..10 => 127,
            10..12 => 128,
            _ => x & 255,
        },
        _ => x & 1,
    }
}
