//! Weights in blocks that are used from where a file is mapped.

use std::sync::Arc;

use graphable::{BlockFormat, Error, ParamVisitor, Runtime, Weight, load::MappedFile, ops, prelude::*};
use rand::{Rng as _, SeedableRng, rngs::StdRng};

use super::{blocks, is_cpu, stored};
use crate::harness::device;

/// A file of these bytes, mapped, which is not there under a name.
pub(super) fn mapped(name: &str, bytes: &[u8]) -> Arc<MappedFile> {
    let path = std::env::temp_dir().join(format!("graphable-{name}-{}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    // SAFETY: nobody else knows the file, and nothing writes to it from here on.
    let file = unsafe { MappedFile::open(&path) }.unwrap();
    std::fs::remove_file(&path).unwrap();
    Arc::new(file)
}

/// Weights of a mapped file at any offsets, some of them equal, beside the same weights as blocks of their own.
#[test]
fn mapped_weights_are_those_of_their_blocks() {
    let rng = &mut StdRng::seed_from_u64(1);
    let mut all = vec![7; 3];
    let mut parts = Vec::new();
    for &format in BlockFormat::ALL {
        let blocks = blocks(rng, format, 5, 256);
        parts.push((format, all.len()..all.len() + blocks.len()));
        all.extend(blocks);
        all.resize(all.len() + rng.random_range(0..9), 7);
    }
    let file = mapped("weights", &all);
    let mut rt = Runtime::new(device()).unwrap();
    let before = rt.memory().owned_bytes;
    let weights: Vec<[Weight<f32>; 3]> = parts
        .iter()
        .map(|(format, range)| {
            let mapped =
                || Weight::mapped(&rt, &[5, 256], *format, &file, &file.bytes()[range.clone()]).unwrap();
            [mapped(), mapped(), Weight::blocks(&rt, &[5, 256], *format, &all[range.clone()]).unwrap()]
        })
        .collect();
    {
        let bytes: u64 = parts.iter().map(|(format, _)| stored(*format, 5, 256)).sum();
        assert_eq!(
            rt.memory().owned_bytes - before,
            if is_cpu() { 2 } else { 3 } * bytes,
            "each once where it is mapped, and once of its own; a GPU has a copy for each"
        );
    }
    for [one, other, own] in &weights {
        let id = |weight: &Weight<f32>| ParamVisitor::list(weight)[0].id;
        assert_eq!((id(one) == id(other), id(one) == id(own)), (is_cpu(), false));
    }
    let graph = TwoGraph::builder().build(&mut rt).unwrap();
    let x: Vec<f32> = (0..512).map(|_| rng.random_range(-1.0..1.0)).collect();
    for (i, [one, other, own]) in weights.into_iter().enumerate() {
        drop(other);
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let (x, ids) = (step.tensor(&[2, 256], &x).unwrap(), step.tensor(&[3], &[4u32, 0, 2]).unwrap());
            let (a, b) = graph.call(&step, &one, &x, &ids).unwrap();
            let (c, d) = graph.call(&step, &own, &x, &ids).unwrap();
            assert_eq!(step.read(&a).unwrap(), step.read(&c).unwrap(), "{:?}", parts[i]);
            assert_eq!(step.read(&b).unwrap(), step.read(&d).unwrap(), "{:?}", parts[i]);
        }
    }
    // The recordings of dropped weights go with the next step, and the file with its last weight.
    rt.step().unwrap().synchronize().unwrap();
    drop(rt);
    assert_eq!(Arc::strong_count(&file), 1);
}

#[graphable]
pub(super) fn two(w: &Weight<f32>, x: &Tensor<f32>, ids: &Tensor<u32>) -> Result<(Tensor<f32>, Tensor<f32>)> {
    Ok((ops::linear(x, w)?, ops::embedding(ids, w)?))
}

#[test]
fn a_mapped_weight_outlives_the_handle_of_its_file() {
    let stored = BlockFormat::Q8_0.quantize(&[2.0; 64]).unwrap();
    let file = mapped("outlives", &stored);
    let mut rt = Runtime::new(device()).unwrap();
    let weight = Weight::<f32>::mapped(&rt, &[2, 32], BlockFormat::Q8_0, &file, file.bytes()).unwrap();
    // One row of them begins where the others do.
    let first = Weight::<f32>::mapped(&rt, &[1, 32], BlockFormat::Q8_0, &file, &file.bytes()[..34]).unwrap();
    // And one in their middle.
    let second = Weight::<f32>::mapped(&rt, &[1, 32], BlockFormat::Q8_0, &file, &file.bytes()[34..]).unwrap();
    let none = Weight::<f32>::mapped(&rt, &[0, 32], BlockFormat::Q8_0, &file, &[]).unwrap();
    drop(file);
    let step = rt.step().unwrap();
    let ids = step.tensor(&[1], &[0u32]).unwrap();
    for weight in [&weight, &first, &second] {
        let row = step.read(&ops::embedding(&ids, weight).unwrap()).unwrap();
        assert!(row.iter().all(|v| (v - 2.0).abs() < 1e-2), "{row:?}");
    }
    let nothing = ops::linear(&step.tensor(&[1, 32], &[1.0f32; 32]).unwrap(), &none).unwrap();
    assert_eq!(nothing.shape(), [1, 0]);
}

/// Nothing writes a file that is mapped; a device that copies it has memory of its own.
#[test]
fn a_mapped_weight_is_read_only() {
    let format = BlockFormat::Q8_0;
    let stored = format.quantize(&[2.0; 64]).unwrap();
    let file = mapped("read-only", &stored);
    let mut rt = Runtime::new(device()).unwrap();
    let weight = Weight::<f32>::mapped(&rt, &[2, 32], format, &file, file.bytes()).unwrap();
    let empty = Weight::<f32>::mapped(&rt, &[0, 32], format, &file, &[]).unwrap();
    assert_eq!((weight.is_mapped(), empty.is_mapped()), (rt.device() == "cpu", false));
    let step = rt.step().unwrap();
    let rows = weight.write_block_rows(&step, 0..1, format, &stored[..34]);
    // A device that has a copy has it in tiles, of which the first row is a part.
    match (weight.write_blocks(&step, format, &stored), rows) {
        (Err(Error::ReadOnly { .. }), Err(Error::ReadOnly { .. })) => assert!(weight.is_mapped()),
        (written, rows) => {
            written.unwrap();
            assert!(matches!(rows, Err(Error::Argument { .. })), "{rows:?}");
        }
    }
    assert_eq!(weight.read_blocks(&step).unwrap().wait().unwrap(), stored);
    assert_eq!(file.bytes(), stored);
    empty.write_blocks(&step, format, &[]).unwrap();
}
