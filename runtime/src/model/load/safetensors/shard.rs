//! One file of the format.

use std::{borrow::Cow, collections::BTreeMap, io, path::Path, sync::Arc};

use ::safetensors::{
    SafeTensors as View,
    tensor::{Dtype, Metadata, SafeTensorError},
};

use super::blocks;
use crate::{
    BlockFormat, DType, Error, Result,
    model::load::{HostBlocks, HostTensor, MappedFile, quantized::Raw},
};

/// The number of bytes before the header, which contain its length.
const PREFIX: usize = 8;

/// The place of the bytes.
pub(super) enum Bytes {
    Owned(Vec<u8>),
    Mapped(Arc<MappedFile>),
}

/// Reads or maps a file.
pub(super) type Open<'a> = &'a mut dyn FnMut(&Path) -> io::Result<Bytes>;

/// A file whose header was checked: its tensors follow each other without gaps or overlaps and end where it ends.
pub(super) struct Shard {
    pub(super) path: String,
    bytes: Bytes,
    /// The offset of the elements.
    data: usize,
    pub(super) metadata: Metadata,
    /// The formats of tensors that are in blocks.
    blocks: BTreeMap<String, BlockFormat>,
}

impl Shard {
    /// Checks the file at `path`, whose contents `open` gives.
    pub(super) fn open(path: &Path, open: Open<'_>) -> Result<Self> {
        let name = path.display().to_string();
        match open(path) {
            Ok(bytes) => Self::new(name, bytes),
            Err(e) => Err(unreadable(name, &e)),
        }
    }

    pub(super) fn from_bytes(name: String, bytes: Vec<u8>) -> Result<Self> {
        Self::new(name, Bytes::Owned(bytes))
    }

    fn new(path: String, bytes: Bytes) -> Result<Self> {
        match View::read_metadata(bytes.all()) {
            Ok((header, metadata)) => {
                let blocks = blocks::formats(&path, &metadata)?;
                Ok(Self { path, data: PREFIX + header, metadata, blocks, bytes })
            }
            Err(e) => Err(Error::File { reason: explain(&e, bytes.all()), path }),
        }
    }

    /// Returns the number of bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.all().len()
    }

    /// Returns a tensor of any type. Its bytes are in the file, whose header was checked.
    pub(super) fn raw(&self, name: &str) -> Option<Raw<'_>> {
        let info = self.metadata.info(name)?;
        let (start, end) = info.data_offsets;
        let bytes = self.bytes.all().get(self.data + start..self.data + end)?;
        Some(Raw { dtype: info.dtype, shape: &info.shape, bytes })
    }

    /// Returns a weight that is in blocks.
    pub(super) fn blocks(&self, name: &str) -> Option<HostBlocks<'_>> {
        let (&format, info) = (self.blocks.get(name)?, self.metadata.info(name)?);
        let Raw { bytes, .. } = self.raw(name)?;
        let (shape, file) = (blocks::shape(info, format), self.bytes.file());
        Some(HostBlocks { format, shape, bytes: Cow::Borrowed(bytes), file })
    }

    /// Returns a tensor; of a weight in blocks, its values in f32.
    pub(super) fn tensor(&self, name: &str) -> Result<Option<HostTensor<'_>>> {
        if let Some(HostBlocks { format, shape, bytes, .. }) = self.blocks(name) {
            let bytes = blocks::values(format, &shape, &bytes)?;
            return Ok(Some(HostTensor { dtype: DType::F32, shape, bytes, file: None }));
        }
        let Some(info) = self.metadata.info(name) else { return Ok(None) };
        let Some(dtype) = dtype(info.dtype) else {
            return Err(Error::Config {
                what: format!("elements of type {:?}", info.dtype),
                reason: "not supported; convert them to F64, F32, F16, BF16, I64, I32, I8, U32, U8 or BOOL"
                    .into(),
            });
        };
        let (start, end) = info.data_offsets;
        let Some(bytes) = self.bytes.all().get(self.data + start..self.data + end) else {
            let reason = format!("`{name}` is outside the file");
            return Err(Error::File { path: self.path.clone(), reason });
        };
        Ok(Some(HostTensor {
            dtype,
            shape: info.shape.clone(),
            bytes: Cow::Borrowed(bytes),
            file: self.bytes.file(),
        }))
    }
}

impl Bytes {
    fn all(&self) -> &[u8] {
        match self {
            Self::Owned(bytes) => bytes,
            Self::Mapped(file) => file.bytes(),
        }
    }

    fn file(&self) -> Option<&Arc<MappedFile>> {
        match self {
            Self::Owned(_) => None,
            Self::Mapped(file) => Some(file),
        }
    }
}

pub(super) fn unreadable(path: String, error: &io::Error) -> Error {
    Error::File { path, reason: format!("cannot be read: {error}") }
}

/// Explains what is wrong with a file, and what to do about it.
fn explain(error: &SafeTensorError, bytes: &[u8]) -> String {
    let have = bytes.len();
    let header = bytes.first_chunk().map_or(0, |n| u64::from_le_bytes(*n));
    match error {
        SafeTensorError::HeaderTooSmall => {
            format!(
                "has {have} bytes, a safetensors file at least {PREFIX}; it is truncated or empty: fetch it again"
            )
        }
        SafeTensorError::InvalidHeaderLength => format!(
            "has {have} bytes and announces a header of {header}; it is truncated or no safetensors file: fetch it again"
        ),
        SafeTensorError::HeaderTooLarge => {
            format!(
                "announces a header of {header} bytes; it is not a safetensors file, or damaged: fetch it again"
            )
        }
        SafeTensorError::MetadataIncompleteBuffer => {
            format!("has {have} bytes, which is not what its header says; it is truncated: fetch it again")
        }
        SafeTensorError::InvalidOffset(name) => format!(
            "is damaged: `{name}` does not begin where the tensor before it ends, or ends before it begins; fetch it again"
        ),
        SafeTensorError::TensorInvalidInfo => {
            "is damaged: a tensor has more or fewer bytes than its shape and type need; fetch it again".into()
        }
        other => format!("is damaged or no safetensors file ({other}): fetch it again"),
    }
}

fn dtype(dtype: Dtype) -> Option<DType> {
    Some(match dtype {
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::Bf16,
        Dtype::F64 => DType::F64,
        Dtype::I64 => DType::I64,
        Dtype::I32 => DType::I32,
        Dtype::I8 => DType::I8,
        Dtype::U32 => DType::U32,
        Dtype::U8 => DType::U8,
        Dtype::BOOL => DType::Bool,
        _ => return None,
    })
}
