//! Philox 4x32 with ten rounds, by Salmon, Moraes, Dror and Shaw ("Parallel Random Numbers: As Easy as 1, 2, 3"): a
//! function from a key and a counter to 128 bits.
//!
//! `random.cuh` computes the same on GPUs.

const ROUNDS: usize = 10;
const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
/// The constants that each round adds to the key.
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

/// The four words that belong to `counter`.
#[inline]
pub(crate) fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..ROUNDS {
        if round > 0 {
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        let (high0, low0) = product(MULTIPLIERS[0], counter[0]);
        let (high1, low1) = product(MULTIPLIERS[1], counter[2]);
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0];
    }
    counter
}

/// Both halves.
#[inline]
fn product(a: u32, b: u32) -> (u32, u32) {
    let product = u64::from(a) * u64::from(b);
    ((product >> 32) as u32, product as u32)
}

/// A 64-bit number as its lower and its upper word.
#[inline]
pub(crate) fn words(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors that Random123 publishes for `philox4x32 10` (`kat_vectors`).
    #[test]
    fn published_vectors() {
        let vectors = [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (counter, key, expected) in vectors {
            assert_eq!(philox(counter, key), expected);
        }
    }

    #[test]
    fn numbers_are_two_words() {
        assert_eq!(words(0x1_0000_0002), [2, 1]);
        assert_eq!(words(u64::MAX), [u32::MAX; 2]);
    }
}
