//! GGUF files: metadata, tensor descriptions and weights as `f32`.
//!
//! The reader takes versions 2 and 3, little endian. [`Gguf::open`] reads a whole file; of one that is mapped
//! ([`Gguf::open_mapped`]) only the metadata takes memory, and weights are read where they are mapped. The reader trusts nothing in
//! the file: every length is checked against the bytes that are there, and memory is taken for what was read, not for what is
//! claimed. So a truncated or damaged file gives a [`GgufError`] and never a panic, and metadata and tensor descriptions take at
//! most sixteen times the bytes that they have in the file.
//!
//! ```no_run
//! use graphable_examples::gguf::Gguf;
//!
//! let file = Gguf::open("model.gguf".as_ref())?;
//! let layers = file.u32("llama.block_count")?;
//! let norm = file.tensor("output_norm.weight")?; // f32, row-major
//! assert_eq!(norm.data.len(), norm.shape.iter().product::<usize>());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cursor;
mod dequant;
mod error;
mod source;
mod tensor_type;
mod value;
pub mod write;

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read},
    path::Path,
    sync::Arc,
};

use graphable::load::MappedFile;

pub use error::GgufError;
pub use source::GgufWeights;
pub use tensor_type::TensorType;
pub use value::{Numbers, Value};

use crate::Error;
use cursor::Cursor;

/// The first four bytes of every GGUF file.
pub const MAGIC: [u8; 4] = *b"GGUF";

/// Tensors in GGUF have at most this many dimensions.
const MAX_DIMS: u32 = 4;

/// One tensor as the file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Row-major shape: the last dimension is contiguous. (The file lists dimensions the other way.)
    pub shape: Vec<usize>,
    /// How the elements are stored.
    pub ty: TensorType,
    /// First byte, counted from the start of the file.
    start: usize,
    /// Stored size in bytes.
    size: usize,
}

impl TensorInfo {
    /// The bytes that the tensor takes in the file.
    pub fn stored_bytes(&self) -> usize {
        self.size
    }
}

/// A tensor's values, dequantised.
#[derive(Clone, Debug, PartialEq)]
pub struct F32Tensor {
    /// Row-major shape.
    pub shape: Vec<usize>,
    /// The elements, `shape.iter().product()` of them.
    pub data: Vec<f32>,
}

/// A GGUF file, mapped or in memory.
pub struct Gguf {
    /// What messages call it.
    name: String,
    bytes: Bytes,
    header: Header,
}

/// Where the bytes are.
enum Bytes {
    Owned(Vec<u8>),
    Mapped(Arc<MappedFile>),
}

impl Bytes {
    fn all(&self) -> &[u8] {
        match self {
            Self::Owned(bytes) => bytes,
            Self::Mapped(file) => file.bytes(),
        }
    }
}

/// What a file says about itself.
struct Header {
    metadata: HashMap<String, Value>,
    tensors: HashMap<String, TensorInfo>,
    /// The names of the tensors, in the order of the file.
    order: Vec<String>,
}

impl Gguf {
    /// Reads the file at `path` into memory; it may also be a pipe.
    ///
    /// # Errors
    /// If it cannot be read, is damaged or of another kind: errors name the file, what is wrong with it and what to do.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let damaged = |source| Error::Gguf { path: path.to_owned(), source };
        let failed = |e: io::Error| Error::io(path, "read", &e);
        let mut file = File::open(path).map_err(failed)?;
        // What is not a GGUF file may be large, or may never end.
        let mut bytes = Vec::new();
        (&file).take(MAGIC.len() as u64).read_to_end(&mut bytes).map_err(failed)?;
        check_magic(&bytes).map_err(damaged)?;
        file.read_to_end(&mut bytes).map_err(failed)?;
        Self::new(path, Bytes::Owned(bytes))
    }

    /// Opens the file at `path` without reading its weights into memory: `map` maps it. The duty that comes with mapped files is that
    /// of whoever maps them ([`MappedFile::open`]). What cannot be mapped because it is not a regular file
    /// ([`io::ErrorKind::Unsupported`]), such as a pipe, is read.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), and those of `map`.
    pub fn open_mapped(
        path: &Path,
        map: impl FnOnce(&Path) -> io::Result<MappedFile>,
    ) -> Result<Self, Error> {
        match map(path) {
            Ok(file) => Self::new(path, Bytes::Mapped(Arc::new(file))),
            Err(e) if e.kind() == io::ErrorKind::Unsupported => Self::open(path),
            Err(e) => Err(Error::io(path, "read", &e)),
        }
    }

    fn new(path: &Path, bytes: Bytes) -> Result<Self, Error> {
        let header = Header::read(bytes.all());
        let header = header.map_err(|source| Error::Gguf { path: path.to_owned(), source })?;
        Ok(Self { name: path.display().to_string(), bytes, header })
    }

    /// Reads a file that is in memory already.
    ///
    /// # Errors
    /// If it is damaged or of another kind.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, GgufError> {
        let header = Header::read(&bytes)?;
        Ok(Self { name: "the GGUF file".into(), bytes: Bytes::Owned(bytes), header })
    }

    /// A metadata value, if the file has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.header.metadata.get(key)
    }

    /// The keys of all metadata values, in no order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.header.metadata.keys().map(String::as_str)
    }

    /// All metadata as the file stores it, in the order of the file.
    ///
    /// # Errors
    /// None for a file that was opened and has not changed since.
    pub fn metadata(&self) -> Result<write::Metadata, GgufError> {
        let (mut cursor, [_, entries]) = begin(self.bytes.all())?;
        let mut metadata = write::Metadata::default();
        for _ in 0..entries {
            let key = cursor.string("a metadata key")?;
            let start = cursor.position();
            Value::read(&mut cursor, &key)?;
            metadata.add(key, self.bytes.all()[start..cursor.position()].to_vec());
        }
        Ok(metadata)
    }

    /// A metadata value that must be there and of the type that `read` accepts.
    fn expect<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, GgufError> {
        let value = self.header.metadata.get(key).ok_or_else(|| GgufError::MissingKey { key: key.into() })?;
        read(value).ok_or_else(|| GgufError::WrongType {
            key: key.into(),
            expected,
            found: value.type_name(),
        })
    }

    /// A whole number that fits `u32`, of any integer type.
    pub fn u32(&self, key: &str) -> Result<u32, GgufError> {
        self.expect(key, "a whole number below 2^32", |v| v.as_u64().and_then(|v| u32::try_from(v).ok()))
    }

    /// A floating-point number.
    pub fn f32(&self, key: &str) -> Result<f32, GgufError> {
        self.expect(key, "a number", Value::as_f32)
    }

    /// A string.
    pub fn str(&self, key: &str) -> Result<&str, GgufError> {
        self.expect(key, "a string", Value::as_str)
    }

    /// An array of strings.
    pub fn strings(&self, key: &str) -> Result<Vec<&str>, GgufError> {
        self.expect(key, "an array of strings", Value::strings)
    }

    /// An array of whole numbers, of any integer type, none negative.
    pub fn integers(&self, key: &str) -> Result<Vec<u64>, GgufError> {
        self.expect(key, "an array of whole numbers", Value::integers)
    }

    /// An array of floating-point numbers.
    pub fn floats(&self, key: &str) -> Result<Vec<f32>, GgufError> {
        self.expect(key, "an array of numbers", Value::floats)
    }

    /// Names of all tensors, in the order of the file.
    pub fn tensor_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.header.order.iter().map(String::as_str)
    }

    /// What the file says about one tensor.
    pub fn tensor_info(&self, name: &str) -> Option<&TensorInfo> {
        self.header.tensors.get(name)
    }

    /// One tensor's values, dequantised to `f32`.
    pub fn tensor(&self, name: &str) -> Result<F32Tensor, GgufError> {
        let info =
            self.header.tensors.get(name).ok_or_else(|| GgufError::MissingTensor { name: name.into() })?;
        Ok(F32Tensor { shape: info.shape.clone(), data: info.ty.dequantise(self.stored(info)) })
    }

    /// The bytes of a tensor as they are stored, if the file has it.
    pub fn stored_tensor(&self, name: &str) -> Option<&[u8]> {
        self.header.tensors.get(name).map(|info| self.stored(info))
    }

    /// The bytes of a tensor; that they are in the file was checked when it was read.
    fn stored(&self, info: &TensorInfo) -> &[u8] {
        &self.bytes.all()[info.start..info.start + info.size]
    }
}

impl Header {
    /// Reads and checks what precedes the weights of a file with these contents.
    fn read(bytes: &[u8]) -> Result<Self, GgufError> {
        let (mut c, [tensor_count, metadata_count]) = begin(bytes)?;
        let mut metadata = HashMap::new();
        for _ in 0..metadata_count {
            let key = c.string("a metadata key")?;
            let value = Value::read(&mut c, &key)?;
            if metadata.insert(key.clone(), value).is_some() {
                return Err(GgufError::Duplicate { what: "metadata key", name: key });
            }
        }

        // Everything that is missing in a part is in another one.
        if let Some(count) = metadata.get("split.count").and_then(Value::as_u64).filter(|count| *count > 1) {
            return Err(GgufError::Split { count });
        }

        let alignment = match metadata.get("general.alignment").map(Value::as_u64) {
            None => 32,
            Some(Some(a)) if a.is_power_of_two() && a <= 1 << 20 => a as usize,
            Some(_) => return Err(GgufError::Alignment),
        };

        let mut raw = Vec::new();
        for _ in 0..tensor_count {
            raw.push(RawTensor::read(&mut c)?);
        }
        let data = c
            .position()
            .checked_next_multiple_of(alignment)
            .ok_or(GgufError::TooLarge { what: "the header".into() })?;
        let mut tensors = HashMap::with_capacity(raw.len());
        let mut order = Vec::with_capacity(raw.len());
        for t in raw {
            let info = t.locate(data, alignment, bytes.len())?;
            if tensors.insert(t.name.clone(), info).is_some() {
                return Err(GgufError::Duplicate { what: "tensor", name: t.name });
            }
            order.push(t.name);
        }
        refuse_overlaps(&tensors)?;
        Ok(Self { metadata, tensors, order })
    }
}

impl std::fmt::Debug for Gguf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gguf")
            .field("bytes", &self.bytes.all().len())
            .field("metadata", &self.header.metadata.len())
            .field("tensors", &self.header.tensors.len())
            .finish()
    }
}

fn check_magic(bytes: &[u8]) -> Result<(), GgufError> {
    let found = &bytes[..bytes.len().min(MAGIC.len())];
    if found == MAGIC { Ok(()) } else { Err(GgufError::BadMagic { found: found.to_vec() }) }
}

/// Reads up to the first metadata entry: the numbers of tensors and of metadata entries.
fn begin(bytes: &[u8]) -> Result<(Cursor<'_>, [usize; 2]), GgufError> {
    check_magic(bytes)?;
    let mut c = Cursor::new(bytes, MAGIC.len());
    let version = c.u32("the version")?;
    if !matches!(version, 2 | 3) {
        return Err(GgufError::Version { found: version });
    }
    // A tensor takes at least 24 bytes of header and a metadata entry 13. Nothing is allocated for these numbers: until they are
    // read, they are only claims, and the rest of the file is as long as its weights.
    let tensors = c.count("the number of tensors", 24)?;
    let metadata = c.count("the number of metadata entries", 13)?;
    Ok((c, [tensors, metadata]))
}

/// Refuses tensors that share bytes.
fn refuse_overlaps(tensors: &HashMap<String, TensorInfo>) -> Result<(), GgufError> {
    let mut taken: Vec<_> = tensors.iter().filter(|(_, info)| info.size > 0).collect();
    taken.sort_unstable_by_key(|(name, info)| (info.start, *name));
    match taken.array_windows().find(|[(_, first), (_, second)]| first.start + first.size > second.start) {
        None => Ok(()),
        Some([(first, _), (second, _)]) => {
            Err(GgufError::Overlap { first: (*first).clone(), second: (*second).clone() })
        }
    }
}

/// A tensor description before its place in the file is checked.
struct RawTensor {
    name: String,
    dims: Vec<u64>,
    ty: TensorType,
    offset: u64,
}

impl RawTensor {
    fn read(c: &mut Cursor<'_>) -> Result<Self, GgufError> {
        let name = c.string("a tensor name")?;
        let rank = c.u32("the rank of a tensor")?;
        if rank > MAX_DIMS {
            return Err(GgufError::Rank { name, rank });
        }
        let dims = (0..rank).map(|_| c.u64("the shape of a tensor")).collect::<Result<_, _>>()?;
        let code = c.u32("the type of a tensor")?;
        let ty = TensorType::from_code(code)
            .ok_or_else(|| GgufError::UnknownTensorType { name: name.clone(), code })?;
        let offset = c.u64("the offset of a tensor")?;
        Ok(Self { name, dims, ty, offset })
    }

    /// Checks sizes and bounds, and turns the shape around.
    fn locate(&self, data: usize, alignment: usize, file_len: usize) -> Result<TensorInfo, GgufError> {
        let too_large = || GgufError::TooLarge { what: format!("tensor `{}`", self.name) };
        let mut shape = Vec::with_capacity(self.dims.len());
        let mut elements = 1usize;
        for &d in self.dims.iter().rev() {
            let d = usize::try_from(d).map_err(|_| too_large())?;
            elements = elements.checked_mul(d).ok_or_else(too_large)?;
            shape.push(d);
        }
        // The contiguous dimension holds whole blocks: a row of a quantised matrix can be found.
        let row = shape.last().copied().unwrap_or(1);
        if !row.is_multiple_of(self.ty.block_elements()) {
            let block = self.ty.block_elements();
            return Err(GgufError::PartialBlock { name: self.name.clone(), row, block, ty: self.ty });
        }
        let size =
            (elements / self.ty.block_elements()).checked_mul(self.ty.block_bytes()).ok_or_else(too_large)?;
        let offset = usize::try_from(self.offset).map_err(|_| too_large())?;
        if !offset.is_multiple_of(alignment) {
            return Err(GgufError::Misaligned { name: self.name.clone(), offset, alignment });
        }
        let start = data.checked_add(offset).ok_or_else(too_large)?;
        let end = start.checked_add(size).ok_or_else(too_large)?;
        if end > file_len {
            return Err(GgufError::Truncated {
                what: format!("tensor `{}`", self.name),
                at: start,
                needed: size as u64,
                available: file_len.saturating_sub(start),
            });
        }
        Ok(TensorInfo { shape, ty: self.ty, start, size })
    }
}
