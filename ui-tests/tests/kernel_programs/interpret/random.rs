//! What random numbers are: Philox 4x32-10, written once more from the paper (Salmon et al., "Parallel Random Numbers: As Easy as
//! 1, 2, 3"), with the seed as its key, and the number of the element and of the call as its counter.

use crate::program::{Program, Value};

/// Numbers that were drawn from each generator before the kernel runs, each by a call.
pub(crate) const BEFORE: [u64; 2] = [0, 3];

/// The seed of a generator.
pub(crate) fn seed(program: &Program, generator: usize) -> u64 {
    program.seed.wrapping_mul(0x1_0000_0007) ^ generator as u64
}

/// What a method of a random number returns for an element.
pub(super) fn method(program: &Program, at: usize, element: u64, name: &str, bound: Option<u32>) -> Value {
    let randoms = &program.last().randoms;
    let generator = randoms[at];
    let ahead = randoms[..at].iter().filter(|other| **other == generator).count() as u64;
    let words = philox(element / 2, BEFORE[generator] + ahead, seed(program, generator));
    let [first, second] = if element.is_multiple_of(2) { [words[0], words[1]] } else { [words[2], words[3]] };
    match (name, bound) {
        ("bits", _) => Value::U32(first),
        ("more_bits", _) => Value::U32(second),
        ("uniform", _) => Value::F32((first >> 8) as f32 / 16_777_216.0),
        // The upper part of the product of all 64 bits.
        ("below", Some(bound)) => {
            let bits = (u128::from(first) << 32) | u128::from(second);
            Value::U32(((bits * u128::from(bound)) >> 64) as u32)
        }
        other => panic!("{other:?}"),
    }
}

fn philox(element: u64, call: u64, seed: u64) -> [u32; 4] {
    let low = |x: u64| x & 0xffff_ffff;
    let mut c = [low(element), element >> 32, low(call), call >> 32];
    let mut k = [low(seed), seed >> 32];
    for _ in 0..10 {
        let (p, q) = (0xd251_1f53 * c[0], 0xcd9e_8d57 * c[2]);
        c = [(q >> 32) ^ c[1] ^ k[0], low(q), (p >> 32) ^ c[3] ^ k[1], low(p)];
        k = [low(k[0] + 0x9e37_79b9), low(k[1] + 0xbb67_ae85)];
    }
    c.map(|word| word as u32)
}
