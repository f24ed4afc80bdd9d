//! Weights of floats that are used from where a file is mapped.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use graphable::{
    DType, Error, ParamVisitor, Runtime, Weight,
    load::{HostTensor, Loader, MappedFile, TensorSource},
    ops,
    prelude::*,
};
use half::{bf16, f16};
use rand::{Rng as _, SeedableRng, rngs::StdRng};

use super::{is_cpu, mapped::mapped};
use crate::harness::device;

/// Tensors of a mapped file.
struct Source {
    file: Arc<MappedFile>,
    tensors: BTreeMap<String, (DType, Vec<usize>, Range<usize>)>,
}

impl TensorSource for Source {
    fn name(&self) -> String {
        "floats".into()
    }

    fn names(&self) -> Vec<String> {
        self.tensors.keys().cloned().collect()
    }

    fn tensor(&self, name: &str) -> Result<Option<HostTensor<'_>>> {
        Ok(self.tensors.get(name).map(|(dtype, shape, range)| HostTensor {
            dtype: *dtype,
            shape: shape.clone(),
            bytes: self.file.bytes()[range.clone()].into(),
            file: Some(&self.file),
        }))
    }
}

#[graphable]
fn product(w: &Weight<f32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::linear(x, w)
}

/// A value that all three types have.
fn value(rng: &mut StdRng) -> f32 {
    f32::from(rng.random_range(-64i8..64)) / 8.0
}

/// Tensors of every float type at any offset, beside parameters of the same values.
#[test]
fn floats_are_used_where_they_are_aligned_and_of_the_type_of_the_model() {
    let rng = &mut StdRng::seed_from_u64(2);
    let (mut bytes, mut tensors, mut values) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    for i in 0..60 {
        bytes.resize(bytes.len() + rng.random_range(0..6), 0xFF);
        let (name, shape) = (format!("w{i}"), vec![rng.random_range(1..6), rng.random_range(1..70)]);
        let data: Vec<f32> = (0..shape[0] * shape[1]).map(|_| value(rng)).collect();
        let start = bytes.len();
        let dtype = [DType::F32, DType::F32, DType::F16, DType::Bf16][i % 4];
        match dtype {
            DType::F32 => bytes.extend(data.iter().flat_map(|v| v.to_le_bytes())),
            DType::F16 => bytes.extend(data.iter().flat_map(|v| f16::from_f32(*v).to_le_bytes())),
            _ => bytes.extend(data.iter().flat_map(|v| bf16::from_f32(*v).to_le_bytes())),
        }
        values.insert(name.clone(), data);
        tensors.insert(name, (dtype, shape, start..bytes.len()));
    }
    let source = Source { file: mapped("floats", &bytes), tensors };
    let mut rt = Runtime::new(device()).unwrap();
    let (before, mut owned, mut in_place) = (rt.memory().owned_bytes, 0, 0);
    let mut loader = Loader::new(&rt, &source).cast_floats(true);
    let mut weights = Vec::new();
    for (name, (dtype, shape, range)) in &source.tensors {
        let weight = loader.weight::<f32>(name, shape).unwrap();
        let is_aligned = source.file.bytes()[range.start..].as_ptr().addr().is_multiple_of(4);
        let is_mapped = is_cpu() && *dtype == DType::F32 && is_aligned;
        assert_eq!(weight.is_mapped(), is_mapped, "{name} in {dtype} at {range:?}");
        let tied = loader.param::<f32>(name, shape).unwrap();
        assert_eq!(
            ParamVisitor::list(&tied)[0].id,
            ParamVisitor::list(&weight)[0].id,
            "{name} is loaded once"
        );
        (owned, in_place) = (owned + weight.bytes(), in_place + usize::from(is_mapped));
        weights.push((name, weight));
    }
    drop(loader);
    assert_eq!(in_place > 5, is_cpu());
    assert_eq!(rt.memory().owned_bytes - before, owned, "each is counted once");
    let graph = ProductGraph::builder().build(&mut rt).unwrap();
    for (name, weight) in weights {
        let (shape, data) = (&source.tensors[name].1, &values[name]);
        let own = Weight::from(Param::new(&rt, shape, data).unwrap());
        let x: Vec<f32> = (0..3 * shape[1]).map(|_| value(rng)).collect();
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let x = step.tensor(&[3, shape[1]], &x).unwrap();
            let (found, expected) =
                (graph.call(&step, &weight, &x).unwrap(), graph.call(&step, &own, &x).unwrap());
            assert_eq!(step.read(&found).unwrap(), step.read(&expected).unwrap(), "{name}");
        }
    }
    rt.step().unwrap().synchronize().unwrap();
    drop((rt, graph));
    assert_eq!(Arc::strong_count(&source.file), 1, "the file goes with its last weight");
}

/// Nothing writes the file: a parameter of the same tensor, loaded first, has memory of its own.
#[test]
fn what_is_mapped_is_read_only() {
    let bytes: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let file = mapped("read-only-floats", &bytes);
    let source = Source { file, tensors: [("w".into(), (DType::F32, vec![2, 2], 0..16))].into() };
    let mut rt = Runtime::new(device()).unwrap();
    let weight = Loader::new(&rt, &source).weight::<f32>("w", &[2, 2]).unwrap();
    let mut other = Loader::new(&rt, &source);
    let param = other.param::<f32>("w", &[2, 2]).unwrap();
    let later = other.weight::<f32>("w", &[2, 2]).unwrap();
    drop(other);
    assert_eq!((weight.is_mapped(), later.is_mapped()), (is_cpu(), false));
    let step = rt.step().unwrap();
    let new = [5.0f32; 4];
    param.write(&step, &new).unwrap();
    match weight.param().unwrap().write(&step, &new) {
        Err(Error::ReadOnly { .. }) => assert!(is_cpu()),
        written => {
            written.unwrap();
            assert!(!is_cpu());
        }
    }
    let read = |param: &Param<f32>| param.read(&step).unwrap().wait().unwrap();
    assert_eq!(read(later.param().unwrap()), new);
    assert_eq!(read(weight.param().unwrap()), if is_cpu() { [1.0, 2.0, 3.0, 4.0] } else { new });
    assert_eq!(source.file.bytes(), bytes);
}

/// Bytes that are lent go to the device in pieces, whose last one may have any length.
#[test]
fn large_tensors_arrive_whole() {
    for count in [(1 << 20) - 1, 1 << 20, (1 << 20) + 1, (5 << 19) + 3] {
        let data: Vec<f32> = (0..count as u32).map(|i| (i.wrapping_mul(0x9E37_79B9) >> 8) as f32).collect();
        let bytes: Vec<u8> = data.iter().flat_map(|v| v.to_le_bytes()).collect();
        let tensors = [("w".into(), (DType::F32, vec![count], 0..bytes.len()))].into();
        let source = Source { file: mapped("large-floats", &bytes), tensors };
        let mut rt = Runtime::new(device()).unwrap();
        let param = Loader::new(&rt, &source).param::<f32>("w", &[count]).unwrap();
        let step = rt.step().unwrap();
        let read = param.read(&step).unwrap().wait().unwrap();
        assert!(read == data, "{count}");
    }
}
