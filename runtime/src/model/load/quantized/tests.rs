use std::collections::BTreeMap;

use ::safetensors::{
    serialize,
    tensor::{Dtype, TensorView},
};
use half::{bf16, f16};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::*;
use crate::Error;

/// Tensors of a file: type, shape, bytes.
type Tensors = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

fn file(tensors: &Tensors) -> SafeTensors {
    let views = tensors.iter().map(|(name, (dtype, shape, bytes))| {
        (name.as_str(), TensorView::new(*dtype, shape.clone(), bytes).unwrap())
    });
    SafeTensors::from_bytes("m", serialize(views, None).unwrap()).unwrap()
}

fn config(text: &str) -> Option<Quantization> {
    Quantization::from_config("config.json", format!(r#"{{"quantization_config":{text}}}"#).as_bytes())
        .unwrap()
}

fn words(of: impl IntoIterator<Item = u32>) -> Vec<u8> {
    of.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// The values of a weight: as floats, and those of its blocks if it has some.
fn values(source: &QuantizedTensors, name: &str) -> (Vec<usize>, Vec<f32>, Option<Vec<f32>>) {
    let tensor = source.tensor(name).unwrap().unwrap();
    assert_eq!(tensor.dtype, DType::F32);
    let floats = tensor.bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    let blocks = source.blocks(name).unwrap().map(|blocks| {
        assert_eq!(Some(blocks.format), source.format(name));
        assert_eq!(blocks.shape, tensor.shape);
        let mut values = vec![f32::NAN; blocks.shape.iter().product()];
        blocks.format.dequantize(&blocks.bytes, &mut values).unwrap();
        values
    });
    assert_eq!(source.shape(name).unwrap(), tensor.shape);
    (tensor.shape, floats, blocks)
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

/// A weight of random floats of 8 bits; scales for each tensor, row or block, in every type.
#[test]
fn floats_of_eight_bits_have_the_scales_of_their_rows() {
    let mut rng = StdRng::seed_from_u64(1);
    for case in 0..40 {
        let (rows, width): (usize, usize) = (rng.random_range(1..9), 32 * rng.random_range(1..9));
        let block = [rng.random_range(1..4), 64 * rng.random_range(1..3)];
        let kind = case % 5;
        let scale_shape = match kind {
            0 => vec![],
            1 => vec![1],
            2 => vec![rows],
            3 => vec![rows, 1],
            _ => vec![rows.div_ceil(block[0]), width.div_ceil(block[1])],
        };
        let scales: Vec<f32> =
            (0..scale_shape.iter().product()).map(|_| rng.random_range(0.01..2.0)).collect();
        let (dtype, scales, bytes): (_, Vec<f32>, Vec<u8>) = match rng.random_range(0..3) {
            0 => (Dtype::F32, scales.clone(), scales.iter().flat_map(|v| v.to_le_bytes()).collect()),
            1 => {
                let halves: Vec<_> = scales.iter().map(|v| f16::from_f32(*v)).collect();
                (
                    Dtype::F16,
                    halves.iter().map(|v| v.to_f32()).collect(),
                    halves.iter().flat_map(|v| v.to_le_bytes()).collect(),
                )
            }
            _ => {
                let halves: Vec<_> = scales.iter().map(|v| bf16::from_f32(*v)).collect();
                (
                    Dtype::BF16,
                    halves.iter().map(|v| v.to_f32()).collect(),
                    halves.iter().flat_map(|v| v.to_le_bytes()).collect(),
                )
            }
        };
        let elements: Vec<u8> = (0..rows * width).map(|_| rng.random()).collect();
        let mut tensors = Tensors::new();
        tensors.insert("l.weight".into(), (Dtype::F8_E4M3, vec![rows, width], elements.clone()));
        let name = if kind == 4 { "l.weight_scale_inv" } else { "l.weight_scale" };
        tensors.insert(name.into(), (dtype, scale_shape, bytes));
        tensors.insert("l.input_scale".into(), (Dtype::F32, vec![], 1f32.to_le_bytes().into()));
        tensors.insert("l.bias".into(), (Dtype::F32, vec![1], 1f32.to_le_bytes().into()));
        let quantization = match kind {
            4 => config(&format!(
                r#"{{"quant_method":"fp8","weight_block_size":[{},{}]}}"#,
                block[0], block[1]
            )),
            2 => None,
            _ => config(r#"{"quant_method":"fp8"}"#),
        };
        let source = QuantizedTensors::new(file(&tensors), quantization).unwrap();
        assert_eq!(source.names(), ["l.bias", "l.weight"]);
        let (shape, floats, blocks) = values(&source, "l.weight");
        assert_eq!(shape, [rows, width]);
        let scale = |i: usize| match kind {
            0 | 1 => scales[0],
            2 | 3 => scales[i / width],
            _ => scales[i / width / block[0] * width.div_ceil(block[1]) + i % width / block[1]],
        };
        for (i, (value, bits)) in floats.iter().zip(&elements).enumerate() {
            let expected = scale(i) * crate::quantized::float8::value(*bits);
            assert!(
                value.to_bits() == expected.to_bits() || value.is_nan() && expected.is_nan(),
                "{case} {i}"
            );
        }
        assert_eq!(blocks.is_some(), width % 64 == 0, "{case}");
        for (value, of_block) in floats.iter().zip(blocks.iter().flatten()) {
            assert!(value.to_bits() == of_block.to_bits() || value.is_nan() && of_block.is_nan(), "{case}");
        }
    }
}

/// A random weight of 4 bits.
struct Integers {
    rows: usize,
    width: usize,
    group: usize,
    q: Vec<u8>,
    /// Of each row and group.
    zeros: Vec<u8>,
    scales: Vec<f16>,
}

impl Integers {
    fn new(rng: &mut StdRng, zeros: std::ops::Range<u8>) -> Self {
        let (rows, group) = (8 * rng.random_range(1..20), 32 * rng.random_range(1..4));
        let width = group * rng.random_range(1..4);
        let groups = rows * (width / group);
        Self {
            rows,
            width,
            group,
            q: (0..rows * width).map(|_| rng.random_range(0..16)).collect(),
            zeros: (0..groups).map(|_| rng.random_range(zeros.clone())).collect(),
            scales: (0..groups).map(|_| f16::from_f32(rng.random_range(-0.5..0.5))).collect(),
        }
    }

    fn groups(&self) -> usize {
        self.width / self.group
    }

    fn values(&self, group_of: impl Fn(usize) -> usize) -> Vec<f32> {
        let value = |i: usize| {
            let at = i / self.width * self.groups() + group_of(i % self.width);
            self.scales[at].to_f32() * (f32::from(self.q[i]) - f32::from(self.zeros[at]))
        };
        (0..self.q.len()).map(value).collect()
    }

    /// Words of eight integers: of each, its row and column or group.
    fn pack(
        &self,
        count: usize,
        of: &[u8],
        columns: usize,
        at: impl Fn(usize, usize) -> (usize, usize),
    ) -> Vec<u8> {
        let word = |word: usize| {
            (0..8).fold(0, |bits, place| {
                let (row, column) = at(word, place);
                bits | u32::from(of[row * columns + column] & 0xF) << (4 * place)
            })
        };
        words((0..count).map(word))
    }

    fn scales_by_group(&self) -> Vec<u8> {
        let scale = |i: usize| self.scales[i % self.rows * self.groups() + i / self.rows];
        (0..self.scales.len()).map(scale).flat_map(f16::to_le_bytes).collect()
    }

    fn awq(&self) -> Tensors {
        let each = self.rows / 8;
        let order = [0, 2, 4, 6, 1, 3, 5, 7];
        let at = |word: usize, place: usize| (word % each * 8 + order[place], word / each);
        let q = self.pack(each * self.width, &self.q, self.width, at);
        let zeros = self.pack(each * self.groups(), &self.zeros, self.groups(), at);
        Tensors::from([
            ("l.qweight".into(), (Dtype::I32, vec![self.width, each], q)),
            ("l.qzeros".into(), (Dtype::I32, vec![self.groups(), each], zeros)),
            ("l.scales".into(), (Dtype::F16, vec![self.groups(), self.rows], self.scales_by_group())),
        ])
    }

    fn gptq(&self, less_one: bool) -> Tensors {
        let each = self.rows / 8;
        let q = self.pack(self.width / 8 * self.rows, &self.q, self.width, |word, place| {
            (word % self.rows, word / self.rows * 8 + place)
        });
        let zeros = self.pack(each * self.groups(), &self.zeros, self.groups(), |word, place| {
            (word % each * 8 + place, word / each)
        });
        // As GPTQModel does it: from words, whatever the zero points in them.
        let less = if less_one { 0x1111_1111 } else { 0 };
        let zeros =
            words(zeros.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word).wrapping_sub(less)));
        Tensors::from([
            ("l.qweight".into(), (Dtype::I32, vec![self.width / 8, self.rows], q)),
            ("l.qzeros".into(), (Dtype::I32, vec![self.groups(), each], zeros)),
            ("l.scales".into(), (Dtype::F16, vec![self.groups(), self.rows], self.scales_by_group())),
        ])
    }

    fn indices(&self, group_of: impl Fn(usize) -> usize) -> (Dtype, Vec<usize>, Vec<u8>) {
        (Dtype::I32, vec![self.width], words((0..self.width).map(|i| group_of(i) as u32)))
    }
}

fn awq(group: usize) -> Option<Quantization> {
    config(&format!(
        r#"{{"quant_method":"awq","bits":4,"group_size":{group},"zero_point":true,"version":"gemm"}}"#
    ))
}

fn gptq(group: usize, format: &str) -> Option<Quantization> {
    config(&format!(
        r#"{{"quant_method":"gptq","bits":4,"group_size":{group},"checkpoint_format":"{format}"}}"#
    ))
}

#[test]
fn integers_in_the_layout_of_awq() {
    let mut rng = StdRng::seed_from_u64(2);
    for _ in 0..20 {
        let weight = Integers::new(&mut rng, 0..16);
        let source = QuantizedTensors::new(file(&weight.awq()), awq(weight.group)).unwrap();
        assert_eq!(source.names(), ["l.weight"]);
        let (shape, floats, blocks) = values(&source, "l.weight");
        let expected = weight.values(|column| column / weight.group);
        assert_eq!(shape, [weight.rows, weight.width]);
        assert_eq!(floats, expected);
        assert_eq!(blocks.unwrap(), expected);
        let stored: usize = weight.awq().values().map(|(.., bytes)| bytes.len()).sum();
        assert_eq!(source.stored_bytes("l.weight"), stored as u64);
    }
}

/// Zero points of 0, from which 1 is taken, among others; groups in order, in blocks that are not in order, and in any order.
#[test]
fn integers_in_the_layout_of_gptq() {
    let mut rng = StdRng::seed_from_u64(3);
    for case in 0..30 {
        let less_one = case % 2 == 0;
        let weight = Integers::new(&mut rng, 0..16);
        let mut tensors = weight.gptq(less_one);
        let order = rng.random_range(0..4);
        let last = weight.groups() - 1;
        let group_of = |column: usize| match order {
            0 | 1 => column / weight.group,
            2 => last - column / weight.group,
            _ => column % weight.groups(),
        };
        if order > 0 {
            tensors.insert("l.g_idx".into(), weight.indices(group_of));
        }
        // What GPTQ writes for layers without a bias, and a bias.
        tensors.insert("l.bias".into(), (Dtype::F16, vec![2], vec![0, 0x80, 0, 0]));
        tensors.insert("m.bias".into(), (Dtype::F16, vec![2], vec![0, 0, 0, 0]));
        let quantization = gptq(weight.group, if less_one { "gptq" } else { "gptq_v2" });
        let source = QuantizedTensors::new(file(&tensors), quantization).unwrap();
        assert_eq!(source.names(), ["l.weight", "m.bias"]);
        let (_, floats, blocks) = values(&source, "l.weight");
        let expected = weight.values(group_of);
        assert_eq!(floats, expected, "{case}");
        let is_sorted = order == 3 && weight.groups() > 1;
        assert_eq!(source.sorted_weight(), is_sorted.then_some("l.weight"), "{case}");
        match blocks {
            Some(blocks) => assert_eq!(blocks, expected, "{case}"),
            None => assert!(is_sorted, "{case}"),
        }
        tensors.insert("l.bias".into(), (Dtype::F16, vec![2], vec![0, 0, 1, 0]));
        let source = QuantizedTensors::new(file(&tensors), quantization).unwrap();
        assert_eq!(source.names(), ["l.bias", "l.weight", "m.bias"]);
    }
}

#[test]
fn packed_integers_of_compressed_tensors() {
    let mut rng = StdRng::seed_from_u64(4);
    for case in 0..20 {
        let mut weight = Integers::new(&mut rng, 0..16);
        let q = weight.pack(weight.rows * weight.width / 8, &weight.q, weight.width, |word, place| {
            (word / (weight.width / 8), word % (weight.width / 8) * 8 + place)
        });
        let scales: Vec<bf16> = weight.scales.iter().map(|v| bf16::from_f32(v.to_f32())).collect();
        // In half precision, as blocks have them.
        weight.scales = scales.iter().map(|v| f16::from_f32(v.to_f32())).collect();
        let (groups, each) = (weight.groups(), weight.rows / 8);
        let mut tensors = Tensors::from([
            ("l.weight_packed".into(), (Dtype::I32, vec![weight.rows, weight.width / 8], q)),
            (
                "l.weight_scale".into(),
                (
                    Dtype::BF16,
                    vec![weight.rows, groups],
                    scales.iter().flat_map(|v| v.to_le_bytes()).collect(),
                ),
            ),
            ("l.weight_shape".into(), (Dtype::I64, vec![2], vec![0; 16])),
        ]);
        if case % 2 == 0 {
            weight.zeros.fill(8);
        } else {
            let zeros = weight.pack(each * groups, &weight.zeros, groups, |word, place| {
                (word / groups * 8 + place, word % groups)
            });
            tensors.insert("l.weight_zero_point".into(), (Dtype::I32, vec![each, groups], zeros));
        }
        let quantization = config(&format!(
            r#"{{"quant_method":"compressed-tensors","format":"pack-quantized","config_groups":{{"g":{{"weights":{{"num_bits":4,"type":"int","strategy":"group","group_size":{}}}}}}}}}"#,
            weight.group
        ));
        let source = QuantizedTensors::new(file(&tensors), quantization).unwrap();
        assert_eq!(source.names(), ["l.weight"]);
        let (_, _, blocks) = values(&source, "l.weight");
        assert_eq!(blocks.unwrap(), weight.values(|column| column / weight.group), "{case}");
    }
}

/// What is packed is read as it was meant: within half a step, and the same again.
#[test]
fn weights_are_packed_and_read() {
    let mut rng = StdRng::seed_from_u64(5);
    for case in 0..20 {
        let (rows, width) = (8 * rng.random_range(1..9), 64 * rng.random_range(1..5));
        let group = [32, 64, width][case % 3];
        let weights: Vec<f32> = (0..rows * width).map(|_| rng.random_range(-1.0f32..1.0).powi(3)).collect();
        for (packing, quantization, step) in
            [(Packing::Float8, None, 1.0 / 16.0), (Packing::Awq { group }, awq(group), 2.0 / 15.0 * 0.51)]
        {
            let mut tensors = Tensors::new();
            for tensor in packing.pack(&weights, &[rows, width]).unwrap() {
                let dtype = match tensor.dtype {
                    "F8_E4M3" => Dtype::F8_E4M3,
                    "F32" => Dtype::F32,
                    "F16" => Dtype::F16,
                    _ => Dtype::I32,
                };
                tensors.insert(format!("l.{}", tensor.name), (dtype, tensor.shape, tensor.bytes));
            }
            let source = QuantizedTensors::new(file(&tensors), quantization).unwrap();
            let (shape, floats, blocks) = values(&source, "l.weight");
            assert_eq!(shape, [rows, width]);
            assert_eq!(bits(&floats), bits(&blocks.unwrap()));
            for (read, weight) in floats.iter().zip(&weights) {
                assert!((read - weight).abs() <= step, "{packing:?} {weight} {read}");
            }
            let shapes: Vec<_> =
                packing.tensors(&[rows, width]).into_iter().map(|tensor| tensor.shape).collect();
            let packed = packing.pack(&floats, &[rows, width]).unwrap();
            assert_eq!(shapes, packed.iter().map(|tensor| tensor.shape.clone()).collect::<Vec<_>>());
        }
    }
    let reason = |packing: Packing, values: &[f32], shape: &[usize]| match packing.pack(values, shape) {
        Err(Error::Argument { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    assert!(reason(Packing::Float8, &[f32::NAN; 4], &[2, 2]).contains("not finite"));
    assert!(reason(Packing::Float8, &[1.0; 5], &[2, 2]).contains("does not have 5"));
    assert!(reason(Packing::Float8, &[1.0; 4], &[4]).contains("two dimensions"));
    assert!(reason(Packing::Awq { group: 32 }, &[1e9; 256], &[8, 32]).contains("too large"));
    for shape in [[7, 32], [8, 48]] {
        let count = shape.iter().product();
        assert!(reason(Packing::Awq { group: 32 }, &vec![1.0; count], &shape).contains("does not fit"));
    }
    assert!(!Packing::Awq { group: 0 }.fits(&[8, 32]) && !Packing::Awq { group: 16 }.fits(&[8, 32]));
}

/// Every tensor of a weight: missing, of another type, of another shape, and values that cannot be.
#[test]
fn what_is_damaged_is_an_error() {
    let mut rng = StdRng::seed_from_u64(6);
    let weight = Integers::new(&mut rng, 1..16);
    let refused = |tensors: &Tensors, quantization: Option<Quantization>| {
        let error = QuantizedTensors::new(file(tensors), quantization).unwrap_err();
        assert!(matches!(error, Error::File { .. }), "{error}");
        error.to_string()
    };
    let with_index = || {
        let mut tensors = weight.gptq(true);
        tensors.insert("l.g_idx".into(), weight.indices(|column| column / weight.group));
        tensors
    };
    let float8 = || {
        Tensors::from([
            ("l.weight".into(), (Dtype::F8_E4M3, vec![2, 64], vec![1; 128])),
            ("l.weight_scale".into(), (Dtype::F32, vec![2, 1], vec![0; 8])),
        ])
    };
    let all: [(&dyn Fn() -> Tensors, _); 3] =
        [(&|| weight.awq(), awq(weight.group)), (&with_index, gptq(weight.group, "gptq")), (&float8, None)];
    for (tensors, quantization) in all {
        QuantizedTensors::new(file(&tensors()), quantization).unwrap();
        for name in tensors().keys().filter(|name| !name.ends_with("weight")) {
            let mut less = tensors();
            less.remove(name);
            if name != "l.g_idx" {
                let text = refused(&less, quantization);
                assert!(text.contains(name.as_str()), "{name}: {text}");
            }
            let mut other = tensors();
            let (dtype, shape, bytes) = other.get_mut(name).unwrap();
            let size = bytes.len() / shape.iter().product::<usize>();
            (*dtype, *shape, *bytes) = (Dtype::U8, vec![bytes.len()], bytes.clone());
            let text = refused(&other, quantization);
            assert!(text.contains(name.as_str()) && text.contains("U8"), "{name}: {text}");
            let mut longer = tensors();
            let (_, shape, bytes) = longer.get_mut(name).unwrap();
            shape[0] += 1;
            let row = shape[1..].iter().product::<usize>() * size;
            bytes.extend(vec![0; row]);
            let text = refused(&longer, quantization);
            assert!(text.contains(name.as_str()), "{name}: {text}");
        }
    }
    let mut none = weight.awq();
    let last = none["l.scales"].2.len();
    none.get_mut("l.scales").unwrap().2[last - 1] = 0x7c;
    assert!(refused(&none, awq(weight.group)).contains("which no weight has"));
    let mut none = float8();
    none.get_mut("l.weight_scale").unwrap().2 = f32::NAN.to_le_bytes().repeat(2);
    assert!(refused(&none, None).contains("NaN"));
    let mut beyond = with_index();
    beyond.insert("l.g_idx".into(), weight.indices(|_| weight.groups()));
    assert!(refused(&beyond, gptq(weight.group, "gptq")).contains("a group that is not there"));
    assert!(refused(&weight.awq(), awq(weight.width + 32)).contains("do not divide"));
    // What config.json promises and files do not have.
    let says = |more: &str| {
        let group = weight.group;
        config(&format!(r#"{{"quant_method":"gptq","bits":4,"group_size":{group},"desc_act":false{more}}}"#))
    };
    assert!(refused(&weight.gptq(true), says(r#","sym":true"#)).contains("all are 8"));
    let sorted = says(r#","desc_act":true"#);
    assert!(refused(&weight.gptq(true), sorted).contains("does not have `l.g_idx`"));
    QuantizedTensors::new(file(&with_index()), sorted).unwrap();
    let packed = Tensors::from([
        ("l.weight_packed".into(), (Dtype::I32, vec![1, 4], vec![0; 16])),
        ("l.weight_scale".into(), (Dtype::BF16, vec![1, 1], vec![0, 0x31])),
    ]);
    let whole_rows = |symmetric: bool| {
        config(&format!(
            r#"{{"format":"pack-quantized","config_groups":{{"group_0":{{"weights":{{
                "num_bits":4,"type":"int","strategy":"channel","symmetric":{symmetric}}}}}}}}}"#
        ))
    };
    assert!(refused(&packed, whole_rows(false)).contains("does not have `l.weight_zero_point`"));
    // A scale of 2^-29 is nothing in half precision, so there are no blocks.
    let (_, floats, blocks) =
        values(&QuantizedTensors::new(file(&packed), whole_rows(true)).unwrap(), "l.weight");
    assert!(blocks.is_none() && floats == [-8.0 * 2f32.powi(-29); 32]);
    // One scale is one scale, whatever its name.
    let mut one = float8();
    one.remove("l.weight_scale");
    one.insert("l.weight_scale_inv".into(), (Dtype::F32, vec![], vec![0; 4]));
    one.insert("l.activation_scale".into(), (Dtype::F32, vec![], vec![0; 4]));
    assert_eq!(QuantizedTensors::new(file(&one), None).unwrap().names(), ["l.weight"]);
    let mut twice = weight.awq();
    twice.insert("l.weight".into(), (Dtype::F32, vec![1], vec![0; 4]));
    assert!(refused(&twice, awq(weight.group)).contains("twice"));
    let mut blocks = float8();
    let scale = blocks.remove("l.weight_scale").unwrap();
    blocks.insert("l.weight_scale_inv".into(), scale);
    assert!(refused(&blocks, None).contains("weight_block_size"));
    let empty = Tensors::from([
        ("l.qweight".into(), (Dtype::I32, vec![1 << 60, 0], vec![])),
        ("l.qzeros".into(), (Dtype::I32, vec![1 << 55, 0], vec![])),
        ("l.scales".into(), (Dtype::F16, vec![1 << 55, 0], vec![])),
    ]);
    assert!(refused(&empty, awq(32)).contains("without elements"));
    let mut flat = float8();
    flat.insert("l.weight".into(), (Dtype::F8_E4M3, vec![128], vec![1; 128]));
    assert!(refused(&flat, None).contains("two dimensions"));
}
