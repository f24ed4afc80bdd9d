//! For tests of operations on the CPU against a naive reference in f64, over random shapes, strides and element types.

use std::{cell::RefCell, fmt};

use half::{bf16, f16};
use rand::{Rng, rngs::StdRng, seq::SliceRandom};
use smallvec::smallvec;

use crate::{
    DType, Element, Error,
    backend::{
        Arenas, HostUpload, Launch, Op, Stream, View,
        cpu::{CpuBackend, CpuOptions, Fault},
    },
    value::layout::Layout,
};

pub(crate) const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];
/// Those of which loops of `reduce` are; the others have kernels of rows.
pub(crate) const NUMBERS: [DType; 6] =
    [DType::F32, DType::F16, DType::Bf16, DType::I32, DType::U32, DType::U8];
pub(crate) const ALL: [DType; 10] = DType::ALL;

/// The values of a random operand.
pub(crate) const RANGE: [f64; 13] =
    [-7.5, -3.25, -2.0, -1.0, -0.75, -0.1, 0.0, 0.3, 1.0, 1.5, 2.0, 3.0, 6.125];

/// A strided view with the bytes that it shows, and some around them.
#[derive(Clone)]
pub(crate) struct Array {
    pub(crate) dtype: DType,
    pub(crate) layout: Layout,
    /// Elements before the first that the view touches.
    pub(crate) before: usize,
    pub(crate) bytes: Vec<u8>,
}

impl Array {
    /// `values` in row-major order, at their places in `layout`.
    pub(crate) fn strided(dtype: DType, layout: Layout, before: usize, values: &[f64]) -> Self {
        assert_eq!(values.len(), layout.count());
        let mut bytes = vec![0xA5; (before + layout.span() + 3) * dtype.size()];
        for (place, value) in places(&layout).zip(values) {
            let at = (before + place) * dtype.size();
            bytes[at..at + dtype.size()].copy_from_slice(&encode(dtype, *value));
        }
        Self { dtype, layout, before, bytes }
    }

    pub(crate) fn contiguous(dtype: DType, shape: &[usize], values: &[f64]) -> Self {
        Self::strided(dtype, Layout::contiguous(shape).unwrap(), 0, values)
    }

    /// An output, of whose previous contents nothing must remain.
    pub(crate) fn output(dtype: DType, shape: &[usize]) -> Self {
        let n = shape.iter().product();
        Self::contiguous(dtype, shape, &vec![if dtype == DType::Bool { 1.0 } else { 93.0 }; n])
    }

    /// Random values in a random layout.
    pub(crate) fn random(rng: &mut StdRng, dtype: DType, shape: &[usize]) -> Self {
        let layout = random_layout(rng, shape, true);
        // Elements that a view shows twice are equal.
        let pool: Vec<f64> = (0..layout.span()).map(|_| random_value(rng, dtype)).collect();
        let values: Vec<f64> = places(&layout).map(|at| pool[at]).collect();
        Self::strided(dtype, layout, rng.random_range(0..3), &values)
    }

    /// The elements in row-major order.
    pub(crate) fn values(&self) -> Vec<f64> {
        let size = self.dtype.size();
        places(&self.layout)
            .map(|place| decode(self.dtype, &self.bytes[(self.before + place) * size..][..size]))
            .collect()
    }

    pub(crate) fn shape(&self) -> &[usize] {
        self.layout.shape()
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.dtype, self.layout)
    }
}

/// The offset of each element, in row-major order.
pub(crate) fn places(layout: &Layout) -> impl Iterator<Item = usize> {
    (0..layout.count()).map(|i| layout.offset_of(&unravel(i, layout.shape())))
}

pub(crate) fn unravel(index: usize, shape: &[usize]) -> Vec<usize> {
    let mut rest = index;
    let mut out: Vec<usize> = shape
        .iter()
        .rev()
        .map(|n| {
            let at = rest % n;
            rest /= n;
            at
        })
        .collect();
    out.reverse();
    out
}

pub(crate) fn ravel(index: &[usize], shape: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |sum, (i, n)| sum * n + i)
}

/// Permuted, narrowed and (where asked) broadcast.
pub(crate) fn random_layout(rng: &mut StdRng, shape: &[usize], broadcast: bool) -> Layout {
    let mut order: Vec<usize> = (0..shape.len()).rev().collect();
    if rng.random_bool(0.5) {
        order.shuffle(rng);
    }
    let mut strides = vec![0; shape.len()];
    let mut stride = if rng.random_bool(0.2) { 2 } else { 1 };
    for axis in order {
        if broadcast && rng.random_bool(0.15) {
            continue;
        }
        strides[axis] = stride;
        stride *= shape[axis].max(1) + if rng.random_bool(0.3) { rng.random_range(1..3) } else { 0 };
    }
    Layout::strided(shape, &strides).unwrap()
}

pub(crate) fn random_shape(rng: &mut StdRng, rank: usize) -> Vec<usize> {
    (0..rank)
        .map(|_| match rng.random_range(0..20) {
            0 => 0,
            1..4 => 1,
            4 => rng.random_range(60..140),
            _ => rng.random_range(2..7),
        })
        .collect()
}

pub(crate) fn random_value(rng: &mut StdRng, dtype: DType) -> f64 {
    let value = match dtype {
        DType::Bool => f64::from(rng.random_range(0..2)),
        DType::U8 => f64::from(rng.random_range(0..=255)),
        DType::I32 if rng.random_bool(0.3) => f64::from(rng.random::<i32>()),
        DType::U32 if rng.random_bool(0.3) => f64::from(rng.random::<u32>()),
        // Every one is an `f64`.
        DType::I64 if rng.random_bool(0.3) => rng.random_range(-1i64 << 53..1 << 53) as f64,
        DType::I8 if rng.random_bool(0.3) => f64::from(rng.random::<i8>()),
        DType::I32 | DType::I64 | DType::I8 => f64::from(rng.random_range(-9..10)),
        DType::U32 => f64::from(rng.random_range(0..10)),
        _ if rng.random_bool(0.3) => RANGE[rng.random_range(0..RANGE.len())],
        _ => rng.random_range(-8.0..8.0),
    };
    decode(dtype, &encode(dtype, value))
}

pub(crate) fn encode(dtype: DType, value: f64) -> Vec<u8> {
    fn bytes<T: Element>(value: f64) -> Vec<u8> {
        bytemuck::bytes_of(&T::from_f64(value).to_repr()).to_vec()
    }
    match dtype {
        DType::F32 => bytes::<f32>(value),
        DType::F16 => bytes::<f16>(value),
        DType::Bf16 => bytes::<bf16>(value),
        DType::F64 => bytes::<f64>(value),
        DType::I32 => bytes::<i32>(value),
        DType::I64 => bytes::<i64>(value),
        DType::I8 => bytes::<i8>(value),
        DType::U32 => bytes::<u32>(value),
        DType::U8 => bytes::<u8>(value),
        DType::Bool => bytes::<bool>(value),
    }
}

pub(crate) fn decode(dtype: DType, bytes: &[u8]) -> f64 {
    fn value<T: Element>(bytes: &[u8]) -> f64 {
        T::from_repr(bytemuck::pod_read_unaligned(bytes)).to_f64()
    }
    match dtype {
        DType::F32 => value::<f32>(bytes),
        DType::F16 => value::<f16>(bytes),
        DType::Bf16 => value::<bf16>(bytes),
        DType::F64 => value::<f64>(bytes),
        DType::I32 => value::<i32>(bytes),
        DType::I64 => value::<i64>(bytes),
        DType::I8 => value::<i8>(bytes),
        DType::U32 => value::<u32>(bytes),
        DType::U8 => value::<u8>(bytes),
        DType::Bool => {
            assert!(bytes[0] <= 1, "a bool is 0 or 1, not {}", bytes[0]);
            value::<bool>(bytes)
        }
    }
}

/// Relative error that a float operation may have.
pub(crate) fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => 1e-6,
        DType::F16 => 1e-3,
        DType::Bf16 => 1e-2,
        _ => 0.0,
    }
}

/// The element nearest to `value`, ties to even; found by search, not by rounding.
pub(crate) fn nearest(dtype: DType, value: f64) -> f64 {
    let (end, infinity): (u16, f64) = match dtype {
        DType::F32 => return f64::from(value as f32),
        DType::F16 => (0x7c00, 65536.0),
        DType::Bf16 => (0x7f80, f64::powi(2.0, 128)),
        _ => return value,
    };
    if value.is_nan() {
        return value;
    }
    let size = value.abs();
    let at = |bits: u16| if bits == end { infinity } else { decode(dtype, &bits.to_le_bytes()) };
    let (mut low, mut high) = (0, end);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if at(middle) <= size { low = middle } else { high = middle }
    }
    let (below, above) = (size - at(low), at(high) - size);
    let up = above < below || above == below && high % 2 == 0;
    let bits = if up { high } else { low };
    decode(dtype, &bits.to_le_bytes()).copysign(value)
}

thread_local! {
    /// Devices with several threads, whatever the machine has, and with one.
    static DEVICES: [RefCell<CpuBackend>; 2] = [4, 1].map(|threads| {
        RefCell::new(CpuBackend::new(CpuOptions { threads: Some(threads), test_mode: None }).unwrap())
    });
}

/// Runs `op` and leaves the result in `y`.
pub(crate) fn run(op: impl Into<Op>, inputs: &[&Array], y: &mut Array) -> Result<(), Fault> {
    let op = op.into();
    let around = y.clone();
    let fault = DEVICES.with(|[many, _]| launch(&mut many.borrow_mut(), op.clone(), inputs, y));
    let mut touched = vec![false; y.bytes.len() / y.dtype.size()];
    places(&y.layout).for_each(|place| touched[y.before + place] = true);
    for (i, (new, old)) in y.bytes.iter().zip(&around.bytes).enumerate() {
        assert!(touched[i / y.dtype.size()] || new == old, "{op:?} wrote outside its output");
    }
    fault
}

/// As [`run`], on one thread.
pub(crate) fn run_single_threaded(op: impl Into<Op>, inputs: &[&Array], y: &mut Array) -> Result<(), Fault> {
    DEVICES.with(|[_, one]| launch(&mut one.borrow_mut(), op.into(), inputs, y))
}

/// Copies the operands to the device, launches, and copies the result back.
pub(crate) fn launch(device: &mut CpuBackend, op: Op, inputs: &[&Array], y: &mut Array) -> Result<(), Fault> {
    let mut memory = Vec::new();
    let mut upload = |array: &Array| {
        let block = device.alloc(array.bytes.len() as u64).unwrap();
        let writes = vec![(block.addr(), 0, array.bytes.len())];
        device
            .host_write(HostUpload { bytes: array.bytes.clone(), writes, ..HostUpload::default() })
            .unwrap();
        let addr = block.addr() + (array.before * array.dtype.size()) as u64;
        memory.push(block);
        View { addr, dtype: array.dtype, layout: array.layout }
    };
    let inputs = inputs.iter().map(|array| upload(array)).collect();
    let outputs = smallvec![upload(y)];
    device.launch(&Launch { op: op.clone(), inputs, outputs, workspace: 0 }).unwrap();
    let fault = match device.synchronize() {
        Ok(()) => Ok(()),
        Err(Error::IndexOutOfRange { op, index, bound }) => Err(Fault::Index { op, index, bound }),
        Err(error) => panic!("{op:?}: {error}"),
    };
    let result = memory.last().unwrap();
    y.bytes = device.read(result.addr(), result.len()).unwrap().wait().unwrap();
    fault
}

#[track_caller]
pub(crate) fn assert_exact(got: &[f64], expected: &[f64], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert!(
            got == expected || got.is_nan() && expected.is_nan(),
            "{what}: [{i}] is {got}, not {expected}"
        );
    }
}

/// Every value is within `relative * |expected| + absolute[i]` of the expected one, once that is
/// rounded to `dtype`.
#[track_caller]
pub(crate) fn assert_close(
    dtype: DType,
    got: &[f64],
    expected: &[f64],
    absolute: impl Fn(usize) -> f64,
    what: &str,
) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        let expected = nearest(dtype, expected);
        let fine = got == expected
            || got.is_nan() && expected.is_nan()
            || (got - expected).abs() <= tolerance(dtype) * expected.abs() + absolute(i);
        assert!(fine, "{what} {dtype}: [{i}] is {got}, not {expected}");
    }
}

/// Random indices below `rows`, with some out of range if requested, in a random layout.
pub(crate) fn indices(rng: &mut StdRng, shape: &[usize], rows: usize, wrong: bool) -> Array {
    let n = shape.iter().product();
    let values: Vec<f64> = (0..n)
        .map(|_| {
            let beyond = rows == 0 || wrong && rng.random_bool(0.1);
            (if beyond { rows + rng.random_range(0..3) } else { rng.random_range(0..rows) }) as f64
        })
        .collect();
    Array::strided(DType::U32, random_layout(rng, shape, false), 1, &values)
}

#[track_caller]
pub(crate) fn assert_fault(fault: Result<(), Fault>, op: impl Into<Op>, indices: &[f64], rows: usize) {
    let op = op.into();
    match (fault, indices.iter().find(|&&i| i >= rows as f64)) {
        (Ok(()), None) => {}
        (Err(Fault::Index { op: name, index, bound }), Some(&first)) => {
            assert_eq!((name, index as f64, bound), (op.name(), first, rows as u64));
        }
        (fault, first) => panic!("{op:?}: {fault:?}, first wrong index {first:?}"),
    }
}
