/// The bits of an element, from the number of the program, of the parameter and of the element. Special values are common.
pub(crate) fn bits(seed: u64, parameter: usize, element: usize, ty: &str) -> u32 {
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
                0..12 => special[pick].to_bits(),
                12..14 => low,
                14..16 => f32::NAN.to_bits(),
                _ => ((low as i32 as f32) / 1.0e8).to_bits(),
            }
        }
        "i32" | "u32" => match pick {
            0..5 => 0,
            5 => 1,
            6..8 => u32::MAX,
            8 => 1 << 31,
            9 => i32::MAX as u32,
            10..22 => (low % 64).wrapping_sub(20),
            _ => low,
        },
        "u8" => match pick {
            0..4 => 0,
            4..8 => 255,
            _ => low & 255,
        },
        _ => low & 1,
    }
}
