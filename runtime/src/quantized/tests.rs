use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{BlockFormat, Parts, testing::blocks};
use crate::Error;

/// The formats whose scales follow from the smallest and the largest value; `quantize/tests.rs` has the others.
const MADE: [BlockFormat; 5] =
    [BlockFormat::Q4_0, BlockFormat::Q4_1, BlockFormat::Q5_0, BlockFormat::Q5_1, BlockFormat::Q8_0];

fn read(format: BlockFormat, blocks: &[u8]) -> Vec<f32> {
    let mut values = vec![f32::NAN; blocks.len() / format.bytes() * format.elements()];
    format.dequantize(blocks, &mut values).unwrap();
    values
}

/// `tests/all/gguf.rs` of the examples compares the values with those of the package `gguf`, bit by bit.
#[test]
fn parts_have_the_values_of_a_block() {
    let mut rng = StdRng::seed_from_u64(1);
    for &format in BlockFormat::ALL.iter().filter(|format| !format.has_floats()) {
        let stored = blocks(&mut rng, format, 20);
        let mut parts = Parts::new();
        for (block, values) in
            stored.chunks_exact(format.bytes()).zip(read(format, &stored).chunks_exact(format.elements()))
        {
            parts.read(format, block);
            for (i, value) in values.iter().enumerate() {
                let of_parts = parts.scales[i / 16] * f32::from(parts.integers[i]) - parts.minima[i / 16];
                assert_eq!(of_parts.to_bits(), value.to_bits(), "{format} {i}");
            }
            assert!(format.has_minima() || parts.minima == [0.0; 16], "{format}");
        }
    }
}

/// A value is off by at most half a step, and what half precision loses of scale and minimum; the value at the end that the
/// format does not reach by a whole one.
#[test]
fn quantised_values_are_near() {
    let mut rng = StdRng::seed_from_u64(2);
    for case in 0..200 {
        let size = 10f32.powi(rng.random_range(-3..3));
        let shift = if case % 3 == 0 { size } else { 0.0 };
        let values: Vec<f32> = (0..96).map(|_| shift + rng.random_range(-size..size)).collect();
        for format in MADE {
            let steps = match format {
                BlockFormat::Q8_0 => 254.0,
                BlockFormat::Q5_0 | BlockFormat::Q5_1 => 31.0,
                _ => 15.0,
            };
            let reads = read(format, &format.quantize(&values).unwrap());
            for (block, (values, reads)) in values.chunks(32).zip(reads.chunks(32)).enumerate() {
                let most = values.iter().fold(0.0f32, |most, v| most.max(v.abs()));
                let bound = match format.has_minima() {
                    true => (2.0 * most / steps) * 0.51,
                    false => 2.0 * most / (steps + 1.0) * 1.01,
                } + most * 2e-3;
                for (value, read) in values.iter().zip(reads) {
                    assert!((value - read).abs() <= bound, "{format} {case} {block}: {value} {read} {bound}");
                }
            }
        }
    }
}

#[test]
fn what_was_quantised_stays() {
    let mut rng = StdRng::seed_from_u64(3);
    for format in MADE {
        let zeros = format.quantize(&[0.0; 64]).unwrap();
        assert_eq!(read(format, &zeros), [0.0; 64], "{format}");
        // The largest value has the largest integer, so a block that uses it has the same scale again.
        let values: Vec<f32> = (0..64).map(|_| rng.random_range(-1.0f32..1.0)).collect();
        let once = read(format, &format.quantize(&values).unwrap());
        let twice = read(format, &format.quantize(&once).unwrap());
        for (a, b) in once.iter().zip(&twice) {
            assert!((a - b).abs() <= 2e-3, "{format}: {a} {b}");
        }
    }
}

#[test]
fn wrong_arguments_are_errors() {
    let reason = |result: Result<_, Error>| match result {
        Err(Error::Argument { reason, .. }) => reason,
        Err(other) => panic!("{other:?}"),
        Ok(()) => panic!("accepted"),
    };
    let quantize = |format: BlockFormat, values: &[f32]| reason(format.quantize(values).map(drop));
    assert!(quantize(BlockFormat::Q6_K, &[0.0; 128]).contains("128 values are not whole blocks"));
    assert!(quantize(BlockFormat::Q4_0, &[0.0; 33]).contains("33 values are not whole blocks"));
    for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -f32::MAX] {
        for &format in BlockFormat::ALL {
            let block = format.elements();
            for at in [0, block - 1] {
                let mut values = vec![0.5; 2 * block];
                values[block + at] = wrong;
                if format.has_floats() && wrong.is_finite() {
                    // The scale is an f32, not a number in half precision.
                    format.quantize(&values).unwrap();
                    continue;
                }
                assert!(quantize(format, &values).contains("block 1"), "{format} {wrong}");
            }
        }
    }
    let dequantize = |bytes: usize, places: usize| {
        reason(BlockFormat::Q8_0.dequantize(&vec![0; bytes], &mut vec![0.0; places]))
    };
    for (bytes, places) in [(33, 32), (34, 31), (34, 64), (68, 32), (0, 32), (34, 0)] {
        assert!(dequantize(bytes, places).contains("a block of Q8_0 is 34 bytes"), "{bytes} {places}");
    }
    BlockFormat::Q8_0.dequantize(&[], &mut []).unwrap();
    assert_eq!(BlockFormat::Q4_K.row_bytes(128), None);
    assert_eq!(BlockFormat::Q4_K.row_bytes(512), Some(288));
    assert_eq!(BlockFormat::Q8_0.row_bytes(usize::MAX - 31), None, "a size that overflows");
}

/// The largest value of a block becomes the largest float, and what is near zero a multiple of the smallest one: nothing is off by more
/// than a 16th of itself, or half of the smallest.
#[test]
fn floats_of_eight_bits_are_near() {
    let mut rng = StdRng::seed_from_u64(5);
    for _ in 0..200 {
        let size = 10f32.powi(rng.random_range(-30..30));
        let values: Vec<f32> = (0..128)
            .map(|_| size * rng.random_range(-1.0f32..1.0) * 10f32.powi(rng.random_range(-6..1)))
            .collect();
        let reads = read(BlockFormat::F8_E4M3, &BlockFormat::F8_E4M3.quantize(&values).unwrap());
        for (values, reads) in values.chunks(64).zip(reads.chunks(64)) {
            let most = values.iter().fold(0.0f32, |most, v| most.max(v.abs()));
            for (value, read) in values.iter().zip(reads) {
                let bound = (value.abs() / 16.0).max(most / 448.0 / 1024.0) * 1.0001;
                assert!((value - read).abs() <= bound, "{value} {read} of {most}");
            }
        }
    }
}

/// NaN is a value of its element alone, whatever its sign.
#[test]
fn nan_stays_where_it_is() {
    let mut block = BlockFormat::F8_E4M3.quantize(&[2.0; 64]).unwrap();
    block[4 + 7] = 0x7f;
    block[4 + 63] = 0xff;
    let values = read(BlockFormat::F8_E4M3, &block);
    assert!(
        values
            .iter()
            .enumerate()
            .all(|(i, v)| v.is_nan() == [7, 63].contains(&i) && (v.is_nan() || *v == 2.0))
    );
}
