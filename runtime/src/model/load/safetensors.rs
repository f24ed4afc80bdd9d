//! The safetensors format.

use std::{borrow::Cow, fmt, path::Path};

use ::safetensors::{
    SafeTensors as View,
    tensor::{Dtype, Metadata, SafeTensorError},
};

use super::{HostTensor, TensorSource};
use crate::{DType, Error, Result};

/// The number of bytes before the header, which contain its length.
const PREFIX: usize = 8;

/// A safetensors file, read into memory.
pub struct SafeTensors {
    path: String,
    bytes: Vec<u8>,
    /// The offset of the elements.
    data: usize,
    metadata: Metadata,
}

impl SafeTensors {
    /// Reads a file and checks its header: every tensor must be within the file.
    ///
    /// # Errors
    /// Returns [`Error::File`] if the file cannot be read, is truncated, or is not a safetensors file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match std::fs::read(path) {
            Ok(bytes) => Self::from_bytes(name, bytes),
            Err(e) => Err(Error::File { path: name, why: format!("cannot be read: {e}") }),
        }
    }

    /// Reads the same from bytes; errors call them `name`.
    ///
    /// # Errors
    /// Returns [`Error::File`] if the bytes are truncated or in another format.
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Result<Self> {
        let path = name.into();
        match View::read_metadata(&bytes) {
            Ok((header, metadata)) => Ok(Self { path, data: PREFIX + header, metadata, bytes }),
            Err(e) => Err(Error::File { why: explain(&e, &bytes), path }),
        }
    }
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
            format!("announces a header of {header} bytes; it is not a safetensors file")
        }
        SafeTensorError::MetadataIncompleteBuffer => {
            format!("has {have} bytes, which is not what its header says; it is truncated: fetch it again")
        }
        other => format!("is damaged, or no safetensors file: {other}"),
    }
}

fn dtype(dtype: Dtype) -> Option<DType> {
    Some(match dtype {
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::Bf16,
        Dtype::I32 => DType::I32,
        Dtype::U32 => DType::U32,
        Dtype::U8 => DType::U8,
        Dtype::BOOL => DType::Bool,
        _ => return None,
    })
}

impl TensorSource for SafeTensors {
    fn name(&self) -> String {
        self.path.clone()
    }

    fn names(&self) -> Vec<String> {
        self.metadata.offset_keys()
    }

    fn tensor(&self, name: &str) -> Result<Option<HostTensor<'_>>> {
        let Some(info) = self.metadata.info(name) else { return Ok(None) };
        let Some(dtype) = dtype(info.dtype) else {
            return Err(Error::Config {
                what: format!("elements of type {:?}", info.dtype),
                why: "not supported; convert them to F32, F16, BF16, I32, U32, U8 or BOOL".into(),
            });
        };
        let (start, end) = info.data_offsets;
        let Some(bytes) = self.bytes.get(self.data + start..self.data + end) else {
            return Err(Error::File {
                path: self.path.clone(),
                why: format!("`{name}` is outside the file"),
            });
        };
        Ok(Some(HostTensor { dtype, shape: info.shape.clone(), bytes: Cow::Borrowed(bytes) }))
    }
}

impl fmt::Debug for SafeTensors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SafeTensors").field("path", &self.path).field("bytes", &self.bytes.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with one `f32` tensor `w` of shape [2] and one `i64` tensor `ids` of shape [1].
    fn file() -> Vec<u8> {
        let header = br#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"ids":{"dtype":"I64","shape":[1],"data_offsets":[8,16]}}"#;
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header);
        bytes.extend_from_slice(&1.5f32.to_le_bytes());
        bytes.extend_from_slice(&(-2.0f32).to_le_bytes());
        bytes.extend_from_slice(&7i64.to_le_bytes());
        bytes
    }

    #[test]
    fn reads_tensors() {
        let source = SafeTensors::from_bytes("m", file()).unwrap();
        let mut names = source.names();
        names.sort();
        assert_eq!(names, ["ids", "w"]);
        let w = source.tensor("w").unwrap().unwrap();
        assert_eq!((w.dtype, w.shape.as_slice()), (DType::F32, [2].as_slice()));
        assert_eq!(crate::base::dtype::from_bytes::<f32>(&w.bytes), [1.5, -2.0]);
        assert!(source.tensor("v").unwrap().is_none());
    }

    #[test]
    fn names_unsupported_elements() {
        let source = SafeTensors::from_bytes("m", file()).unwrap();
        let error = source.tensor("ids").unwrap_err().to_string();
        assert!(error.contains("I64") && error.contains("convert"), "{error}");
    }

    #[test]
    fn every_truncation_is_an_error() {
        let whole = file();
        for length in 0..whole.len() {
            let error = SafeTensors::from_bytes("m.safetensors", whole[..length].to_vec()).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, Error::File { .. }), "{length}: {text}");
            assert!(text.starts_with("m.safetensors: ") && text.contains("truncated"), "{length}: {text}");
        }
    }

    #[test]
    fn damage_is_an_error() {
        for (at, byte) in [(0, 0xff), (7, 0x7f), (8, b'['), (20, b'?'), (40, b'9')] {
            let mut bytes = file();
            bytes[at] = byte;
            assert!(matches!(SafeTensors::from_bytes("m", bytes), Err(Error::File { .. })), "byte {at}");
        }
        let missing = SafeTensors::open("/nowhere/m.safetensors").unwrap_err().to_string();
        assert!(missing.contains("cannot be read"), "{missing}");
    }
}
