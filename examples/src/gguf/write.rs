//! What precedes the weights of a GGUF file that is written: metadata, and where each tensor is.

use super::{MAGIC, TensorType};

/// Where tensors may begin, unless the metadata names another alignment.
const ALIGNMENT: u64 = 32;
/// The version that is written.
const VERSION: u32 = 3;
const ALIGNMENT_KEY: &str = "general.alignment";

/// The codes of metadata types.
const U32: u32 = 4;
const I32: u32 = 5;
const F32: u32 = 6;
const BOOL: u32 = 7;
const STRING: u32 = 8;
const ARRAY: u32 = 9;

/// Metadata entries in the order in which they are written. A key that is set again keeps its place.
#[derive(Clone, Debug, Default)]
pub struct Metadata(Vec<(String, Vec<u8>)>);

impl Metadata {
    /// Adds a key that is not there yet, with the bytes of its type and value, as another file has them.
    pub(super) fn add(&mut self, key: String, bytes: Vec<u8>) {
        self.0.push((key, bytes));
    }

    fn set(&mut self, key: &str, bytes: Vec<u8>) {
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, value)) => *value = bytes,
            None => self.0.push((key.into(), bytes)),
        }
    }

    fn typed(&mut self, key: &str, code: u32, value: impl IntoIterator<Item = u8>) {
        self.set(key, code.to_le_bytes().into_iter().chain(value).collect());
    }

    fn array(&mut self, key: &str, code: u32, count: usize, elements: impl IntoIterator<Item = u8>) {
        let head = code.to_le_bytes().into_iter().chain((count as u64).to_le_bytes());
        self.typed(key, ARRAY, head.chain(elements));
    }

    /// Sets a whole number.
    pub fn u32(&mut self, key: &str, value: u32) {
        self.typed(key, U32, value.to_le_bytes());
    }

    /// Sets a floating-point number.
    pub fn f32(&mut self, key: &str, value: f32) {
        self.typed(key, F32, value.to_le_bytes());
    }

    /// Sets a truth value.
    pub fn bool(&mut self, key: &str, value: bool) {
        self.typed(key, BOOL, [u8::from(value)]);
    }

    /// Sets text.
    pub fn str(&mut self, key: &str, value: &str) {
        self.typed(key, STRING, text(value));
    }

    /// Sets an array of text.
    pub fn strs<'a>(&mut self, key: &str, values: impl ExactSizeIterator<Item = &'a str>) {
        self.array(key, STRING, values.len(), values.flat_map(text));
    }

    /// Sets an array of signed whole numbers.
    pub fn i32s(&mut self, key: &str, values: &[i32]) {
        self.array(key, I32, values.len(), values.iter().flat_map(|v| v.to_le_bytes()));
    }

    /// Sets an array of floating-point numbers.
    pub fn f32s(&mut self, key: &str, values: &[f32]) {
        self.array(key, F32, values.len(), values.iter().flat_map(|v| v.to_le_bytes()));
    }

    /// The keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }
}

fn text(value: &str) -> impl Iterator<Item = u8> {
    (value.len() as u64).to_le_bytes().into_iter().chain(value.bytes())
}

/// A tensor of a file that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTensor {
    /// Its name.
    pub name: String,
    /// Row-major shape. The last dimension is whole blocks of the type.
    pub shape: Vec<usize>,
    /// How its elements are stored.
    pub ty: TensorType,
}

impl NewTensor {
    /// The bytes that it takes, without those that fill up to the next tensor.
    pub fn bytes(&self) -> u64 {
        let elements = self.shape.iter().map(|n| *n as u64).product::<u64>();
        elements / self.ty.block_elements() as u64 * self.ty.block_bytes() as u64
    }
}

/// The bytes before the first tensor. Tensors follow in their order, each filled up with zeros to the [alignment](padding).
pub fn header(metadata: &Metadata, tensors: &[NewTensor]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(VERSION.to_le_bytes());
    // Tensors are placed by the usual alignment, whatever the file had from which metadata came.
    let entries = || metadata.0.iter().filter(|(key, _)| key != ALIGNMENT_KEY);
    for count in [tensors.len(), entries().count()] {
        out.extend((count as u64).to_le_bytes());
    }
    for (key, value) in entries() {
        out.extend(text(key));
        out.extend(value);
    }
    let mut offset = 0u64;
    for tensor in tensors {
        out.extend(text(&tensor.name));
        out.extend((tensor.shape.len() as u32).to_le_bytes());
        for dim in tensor.shape.iter().rev() {
            out.extend((*dim as u64).to_le_bytes());
        }
        out.extend(tensor.ty.code().to_le_bytes());
        out.extend(offset.to_le_bytes());
        offset += tensor.bytes() + padding(tensor.bytes()) as u64;
    }
    out.resize(out.len() + padding(out.len() as u64), 0);
    out
}

/// How many zeros follow so many bytes, up to where a tensor may begin.
pub fn padding(bytes: u64) -> usize {
    (bytes.next_multiple_of(ALIGNMENT) - bytes) as usize
}
