//! Weights in blocks that are overwritten in place, and read back.

use graphable::{BlockFormat, Runtime, Weight, ops, prelude::*};
use rand::{Rng as _, SeedableRng, rngs::StdRng};

use super::{
    blocks, is_cpu,
    mapped::{TwoGraph, mapped},
};
use crate::harness::device;

/// In every format, a product with blocks that were written is that with blocks which were there from the start.
#[test]
fn blocks_that_are_written_are_multiplied() {
    let rng = &mut StdRng::seed_from_u64(7);
    let x: Vec<f32> = (0..512).map(|_| rng.random_range(-1.0..1.0)).collect();
    for &format in BlockFormat::ALL {
        let mut rt = Runtime::new(device()).unwrap();
        let graph = TwoGraph::builder().build(&mut rt).unwrap();
        let changing = Weight::<f32>::blocks(&rt, &[5, 256], format, blocks(rng, format, 5, 256)).unwrap();
        for round in 0..5 {
            let next = blocks(rng, format, 5, 256);
            let fresh = Weight::<f32>::blocks(&rt, &[5, 256], format, &next[..]).unwrap();
            let step = rt.step().unwrap();
            changing.write_blocks(&step, format, &next).unwrap();
            let (x, ids) = (step.tensor(&[2, 256], &x).unwrap(), step.tensor(&[3], &[4u32, 0, 2]).unwrap());
            let (a, b) = graph.call(&step, &changing, &x, &ids).unwrap();
            let (c, d) = (ops::linear(&x, &fresh).unwrap(), ops::embedding(&ids, &fresh).unwrap());
            assert_eq!(step.read(&a).unwrap(), step.read(&c).unwrap(), "{format}, round {round}");
            assert_eq!(step.read(&b).unwrap(), step.read(&d).unwrap(), "{format}, round {round}");
        }
        assert_eq!(rt.stats().recordings, 1, "{format}");
    }
}

/// Rows that are whole tiles of any device are written alone, and read back as a file has them.
#[test]
fn tiles_of_rows_are_written_and_read() {
    let rng = &mut StdRng::seed_from_u64(11);
    for &format in BlockFormat::ALL {
        for (rows, width) in [(21, 3 * format.elements()), (16, 256), (3, 512)] {
            let mut rt = Runtime::new(device()).unwrap();
            let row = format.row_bytes(width).unwrap();
            let mut expected = blocks(rng, format, rows, width);
            let weight = Weight::<f32>::blocks(&rt, &[rows, width], format, &expected[..]).unwrap();
            let step = rt.step().unwrap();
            assert_eq!(weight.read_blocks(&step).unwrap().wait().unwrap(), expected, "{format}");
            for range in [0..rows.min(8), 8.min(rows)..rows, rows / 8 * 8..rows, 0..0] {
                let next = blocks(rng, format, range.len(), width);
                weight.write_block_rows(&step, range.clone(), format, &next).unwrap();
                expected[range.start * row..range.end * row].copy_from_slice(&next);
                let read = weight.read_blocks(&step).unwrap().wait().unwrap();
                assert_eq!(read, expected, "{format} {rows} {range:?}");
            }
        }
    }
}

/// What only the host can put in order is refused where it has to be.
#[test]
fn tiles_are_not_written_in_part_or_from_the_device() {
    let (format, row) = (BlockFormat::Q8_0, 34);
    let mut rt = Runtime::new(device()).unwrap();
    let weight = Weight::<f32>::blocks(&rt, &[20, 32], format, vec![0; 20 * row]).unwrap();
    let step = rt.step().unwrap();
    let tensor = step.tensor(&[20, row], &vec![1u8; 20 * row]).unwrap();
    let of_device = weight.write_blocks(&step, format, &tensor);
    let parts = [(1..8, "write 0..8"), (8..15, "write 8..16"), (3..19, "write 0..20")];
    if is_cpu() {
        of_device.unwrap();
    } else {
        let refused = of_device.unwrap_err().to_string();
        assert!(refused.contains("pass the bytes from the host"), "{refused}");
    }
    for (rows, remedy) in parts {
        let written = weight.write_block_rows(&step, rows.clone(), format, &vec![2u8; rows.len() * row]);
        if is_cpu() {
            written.unwrap();
        } else {
            let refused = written.unwrap_err().to_string();
            assert!(refused.contains(remedy), "{refused}");
        }
    }
}

#[test]
fn bytes_of_another_place_are_refused() {
    let stored = BlockFormat::Q8_0.quantize(&[2.0; 64]).unwrap();
    let (file, other) = (mapped("own", &stored), mapped("other", &stored));
    let rt = Runtime::new(device()).unwrap();
    let make = |blocks: &[u8]| Weight::<f32>::mapped(&rt, &[2, 32], BlockFormat::Q8_0, &file, blocks);
    for foreign in [&stored[..], other.bytes()] {
        let refused = make(foreign).unwrap_err().to_string();
        assert!(refused.contains("not a part of the file's bytes"), "{refused}");
    }
    let refused = make(&file.bytes()[1..]).unwrap_err().to_string();
    assert!(refused.contains("takes 68 bytes, not 67"), "{refused}");
    make(file.bytes()).unwrap();
}
