//! Weights in blocks, which the format has no types for: bytes, whose formats are in the metadata of the file.

use std::{borrow::Cow, collections::BTreeMap};

use ::safetensors::tensor::{Dtype, Metadata, TensorInfo};

use crate::{BlockFormat, Error, Result};

/// The key of the metadata: names of tensors and of their formats, as JSON.
pub(crate) const FORMATS: &str = "graphable.blocks";

/// Returns the formats of a file's tensors that are in blocks; most files have none. What they say is checked.
pub(super) fn formats(path: &str, metadata: &Metadata) -> Result<BTreeMap<String, BlockFormat>> {
    let Some(text) = metadata.metadata().as_ref().and_then(|all| all.get(FORMATS)) else {
        return Ok(BTreeMap::new());
    };
    let damaged = |reason: String| Error::File {
        path: path.into(),
        reason: format!("is damaged: `{FORMATS}` of its metadata {reason}; save it again"),
    };
    let named: BTreeMap<String, String> =
        serde_json::from_str(text).map_err(|e| damaged(format!("is not a table of formats: {e}")))?;
    let format = |(name, format): (String, String)| {
        let Some(&known) = BlockFormat::ALL.iter().find(|known| known.to_string() == format) else {
            return Err(damaged(format!("gives `{name}` the unknown format `{format}`")));
        };
        match metadata.info(&name) {
            Some(info) if width(info, known).is_some() => Ok((name, known)),
            _ => Err(damaged(format!("says that `{name}` is in {format}, which it is not"))),
        }
    };
    named.into_iter().map(format).collect()
}

/// Returns the elements of a row of blocks.
fn width(info: &TensorInfo, format: BlockFormat) -> Option<usize> {
    match info.shape[..] {
        [_, bytes] if info.dtype == Dtype::U8 && bytes.is_multiple_of(format.bytes()) => {
            (bytes / format.bytes()).checked_mul(format.elements())
        }
        _ => None,
    }
}

/// Returns rows and width of a weight, which was checked.
pub(super) fn shape(info: &TensorInfo, format: BlockFormat) -> Vec<usize> {
    [info.shape.first().copied(), width(info, format)].into_iter().flatten().collect()
}

/// Blocks that become floats at a time.
const SOME: usize = 64;

/// Returns the values of blocks as `f32`.
///
/// # Errors
/// Returns [`Error::TooLarge`] if there are more than an address space has.
pub(super) fn values<'a>(format: BlockFormat, shape: &[usize], blocks: &[u8]) -> Result<Cow<'a, [u8]>> {
    let count = shape.iter().try_fold(1usize, |all, &size| all.checked_mul(size));
    let count = count.ok_or_else(|| Error::TooLarge { shape: shape.into() })?;
    let mut bytes = Vec::with_capacity(count.saturating_mul(size_of::<f32>()));
    let mut values = vec![0f32; SOME * format.elements()];
    for some in blocks.chunks(SOME * format.bytes()) {
        let values = &mut values[..some.len() / format.bytes() * format.elements()];
        format.dequantize(some, values)?;
        bytes.extend_from_slice(bytemuck::cast_slice(values));
    }
    Ok(Cow::Owned(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{SafeTensors, TensorSource};

    /// A file with `w`, bytes of this shape, and what its metadata says of formats.
    fn file(shape: &[usize], dtype: &str, formats: &str) -> Result<SafeTensors> {
        let bytes: usize = shape.iter().product();
        let header = serde_json::json!({
            "__metadata__": { FORMATS: formats },
            "w": { "dtype": dtype, "shape": shape, "data_offsets": [0, bytes] },
        });
        let header = header.to_string();
        let file = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &vec![0; bytes]].concat();
        SafeTensors::from_bytes("m", file)
    }

    #[test]
    fn formats_are_those_of_the_metadata() {
        for &format in BlockFormat::ALL {
            let source = file(&[3, 2 * format.bytes()], "U8", &format!(r#"{{"w":"{format}"}}"#)).unwrap();
            let blocks = source.blocks("w").unwrap().unwrap();
            assert_eq!((blocks.format, &blocks.shape[..]), (format, &[3, 2 * format.elements()][..]));
            assert_eq!(source.tensor("w").unwrap().unwrap().bytes.len(), 3 * 2 * format.elements() * 4);
        }
        let plain = file(&[3, 34], "U8", "{}").unwrap();
        assert!(plain.blocks("w").unwrap().is_none() && plain.blocks("v").unwrap().is_none());
        // Many rows without elements take nothing.
        let empty = file(&[usize::MAX, 0], "U8", r#"{"w":"Q8_0"}"#).unwrap();
        assert!(empty.tensor("w").unwrap().unwrap().bytes.is_empty());
    }

    #[test]
    fn wrong_formats_are_refused() {
        let refused = |shape: &[usize], dtype: &str, formats: &str, wanted: &str| {
            let error = file(shape, dtype, formats).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, Error::File { .. }) && text.contains(wanted), "{formats}: {text}");
            assert!(text.ends_with("; save it again"), "{text}");
        };
        for formats in ["", "{", "[]", "7", r#"{"w":1}"#, r#"["w"]"#] {
            refused(&[1, 34], "U8", formats, "is not a table of formats");
        }
        refused(&[1, 34], "U8", r#"{"w":"Q9_9"}"#, "gives `w` the unknown format `Q9_9`");
        for (shape, dtype) in [(&[34][..], "U8"), (&[1, 33], "U8"), (&[1, 1, 34], "U8"), (&[1, 34], "I8")] {
            refused(shape, dtype, r#"{"w":"Q8_0"}"#, "says that `w` is in Q8_0, which it is not");
        }
        refused(&[1, 34], "U8", r#"{"v":"Q8_0"}"#, "says that `v` is in Q8_0");
    }
}
