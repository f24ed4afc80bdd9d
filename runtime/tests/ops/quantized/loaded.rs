//! Models that load weights in blocks from a source, mapped or not.

use std::sync::Arc;

use graphable::{
    BlockFormat, DType, Error, ParamVisitor, Runtime, Weight,
    load::{self, HostBlocks, HostTensor, MappedFile, TensorSource},
    prelude::*,
};

use super::{mapped::mapped, stored};
use crate::harness::device;

/// A source whose weights are all in blocks of a format, mapped or not.
struct Source {
    format: BlockFormat,
    width: usize,
    file: Option<Arc<MappedFile>>,
    bytes: Vec<u8>,
}

impl TensorSource for Source {
    fn name(&self) -> String {
        "blocks".into()
    }

    fn names(&self) -> Vec<String> {
        vec!["up".into(), "norm".into()]
    }

    fn tensor(&self, name: &str) -> Result<Option<HostTensor<'_>>> {
        let tensor = |shape: Vec<usize>| HostTensor {
            dtype: DType::F32,
            bytes: vec![1.0f32; shape.iter().product()].into_iter().flat_map(f32::to_le_bytes).collect(),
            shape,
            file: None,
        };
        Ok(match name {
            "norm" => Some(tensor(vec![2])),
            "up" => Some(tensor(vec![2, self.width])),
            _ => None,
        })
    }

    fn blocks(&self, name: &str) -> Result<Option<HostBlocks<'_>>> {
        let bytes = self.file.as_ref().map_or(&self.bytes[..], |file| file.bytes());
        Ok((name == "up").then(|| HostBlocks {
            format: self.format,
            shape: vec![2, self.width],
            bytes: bytes.into(),
            file: self.file.as_ref(),
        }))
    }
}

#[derive(Params)]
#[params(config = usize)]
struct Loaded {
    #[param("up", shape = [2, *config])]
    up: Weight<f32>,
    #[param("up", shape = [2, *config])]
    tied: Weight<f32>,
    #[param("norm", shape = [2])]
    norm: Weight<f32>,
}

/// Every device computes with them.
#[test]
fn weights_are_loaded_as_they_are_stored() {
    let rt = Runtime::new(device()).unwrap();
    let (format, size) = (Some(BlockFormat::Q4_0), stored(BlockFormat::Q4_0, 2, 32));
    let bytes = BlockFormat::Q4_0.quantize(&[1.0; 64]).unwrap();
    for file in [None, Some(mapped("loaded", &bytes))] {
        let source = Source { format: BlockFormat::Q4_0, width: 32, file, bytes: bytes.clone() };
        let loaded: Loaded = load::load(&rt, &source, &32).unwrap();
        assert_eq!((loaded.up.format(), loaded.norm.format()), (format, None));
        let listed = ParamVisitor::list(&loaded);
        assert_eq!((listed[0].id, listed[0].bytes), (listed[1].id, size), "tied weights are one");
    }
    let problems = |source: Source, config: usize| match load::load::<Loaded>(&rt, &source, &config) {
        Err(Error::Load { problems, .. }) => problems.join("\n"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("loaded"),
    };
    let source = |format, width, bytes: &[u8]| Source { format, width, file: None, bytes: bytes.to_vec() };
    let text = problems(source(BlockFormat::Q4_0, 32, &bytes), 64);
    assert!(text.contains("`up` has shape [2, 32], the model needs [2, 64]"), "{text}");
    let text = problems(source(BlockFormat::Q4_0, 32, &bytes[1..]), 32);
    assert!(text.contains("`up`: Weight::blocks: [2, 32] in Q4_0 takes 36 bytes, not 35"), "{text}");
    let text = problems(source(BlockFormat::Q4_K, 32, &bytes), 32);
    assert!(text.contains("which the 256 elements of a block of Q4_K do not divide"), "{text}");
}
