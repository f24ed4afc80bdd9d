//! The safetensors format.

pub(crate) mod blocks;
mod index;
mod shard;

use std::{
    collections::BTreeMap,
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use self::shard::{Bytes, Open, Shard};
use super::{HostBlocks, HostTensor, MappedFile, TensorSource, quantized::Raw};
use crate::{BlockFormat, Error, Result};

/// The end of the names of indices.
const INDEX: &str = ".index.json";
/// The files of a folder, one of both.
const WHOLE: &str = "model.safetensors";
const SHARDED: &str = "model.safetensors.index.json";

/// Safetensors files of one model: one file, or several and their index.
///
/// Weights that [`Eager::save`](crate::Eager::save) wrote in blocks are read as blocks. For those of other programs, see
/// [`QuantizedTensors`](super::QuantizedTensors).
pub struct SafeTensors {
    name: String,
    shards: Vec<Shard>,
    /// The shard of each tensor.
    tensors: BTreeMap<String, usize>,
}

impl SafeTensors {
    /// Reads a file; the index of a sharded model (`*.index.json`), with all its files; or a folder with one of both,
    /// `model.safetensors` or `model.safetensors.index.json`. Headers are checked: in each file, tensors must follow each other
    /// without gaps or overlaps, have the sizes that their shapes and types need, and end where the file ends.
    ///
    /// The files are in memory as long as the value exists; [`open_mapped`](Self::open_mapped) does without.
    ///
    /// # Errors
    /// Returns [`Error::File`] if a file cannot be read, is truncated or damaged, or is not a safetensors file; if a file that
    /// the index names is missing, or does not have the tensors that it has in the index.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_by(path.as_ref(), &mut |file| std::fs::read(file).map(Bytes::Owned))
    }

    /// Opens what [`open`](Self::open) opens without reading it into memory: `map` maps a file, and its pages are read when tensors
    /// are copied to the device. The duty that comes with mapped files is that of whoever maps them ([`MappedFile::open`]):
    ///
    /// ```no_run
    /// use graphable::load::{MappedFile, SafeTensors};
    ///
    /// // SAFETY: nobody writes to the files of this model before `weights` is dropped.
    /// let weights = SafeTensors::open_mapped("model", |file| unsafe { MappedFile::open(file) })?;
    /// # Ok::<(), graphable::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`open`](Self::open), and [`Error::File`] if `map` fails.
    pub fn open_mapped(
        path: impl AsRef<Path>,
        mut map: impl FnMut(&Path) -> io::Result<MappedFile>,
    ) -> Result<Self> {
        Self::open_by(path.as_ref(), &mut |file| map(file).map(Arc::new).map(Bytes::Mapped))
    }

    fn open_by(path: &Path, open: Open<'_>) -> Result<Self> {
        let path = Self::found(path)?;
        let name = path.display().to_string();
        if name.ends_with(INDEX) {
            let (shards, tensors) = index::open(&path, open)?;
            return Ok(Self { name, shards, tensors });
        }
        Ok(Self::of(name, Shard::open(&path, open)?))
    }

    /// Reads one file from bytes; errors call them `name`.
    ///
    /// # Errors
    /// Returns [`Error::File`] if the bytes are truncated or in another format.
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Result<Self> {
        let name = name.into();
        Ok(Self::of(name.clone(), Shard::from_bytes(name, bytes)?))
    }

    fn of(name: String, shard: Shard) -> Self {
        let tensors = shard.metadata.offset_keys().into_iter().map(|tensor| (tensor, 0)).collect();
        Self { name, shards: vec![shard], tensors }
    }

    /// Returns the file or index that `path`, which may be a folder, stands for.
    fn found(path: &Path) -> Result<PathBuf> {
        if !path.is_dir() {
            return Ok(path.to_owned());
        }
        let found = [WHOLE, SHARDED].map(|name| path.join(name)).into_iter().find(|file| file.is_file());
        found.ok_or_else(|| Error::File {
            path: path.display().to_string(),
            reason: format!("has neither {WHOLE} nor {SHARDED}; fetch one of them, with its shards"),
        })
    }
}

impl SafeTensors {
    /// Returns the format and the shape of a weight in blocks.
    pub(super) fn stored_blocks(&self, name: &str) -> Option<(BlockFormat, Vec<usize>)> {
        let HostBlocks { format, shape, .. } = self.shards[*self.tensors.get(name)?].blocks(name)?;
        Some((format, shape))
    }

    /// Returns a tensor of any type.
    pub(super) fn raw(&self, name: &str) -> Option<Raw<'_>> {
        self.shards[*self.tensors.get(name)?].raw(name)
    }
}

impl TensorSource for SafeTensors {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn names(&self) -> Vec<String> {
        self.tensors.keys().cloned().collect()
    }

    fn tensor(&self, name: &str) -> Result<Option<HostTensor<'_>>> {
        let Some(shard) = self.tensors.get(name) else { return Ok(None) };
        self.shards[*shard].tensor(name)
    }

    fn blocks(&self, name: &str) -> Result<Option<HostBlocks<'_>>> {
        Ok(self.tensors.get(name).and_then(|&shard| self.shards[shard].blocks(name)))
    }
}

impl fmt::Debug for SafeTensors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: usize = self.shards.iter().map(Shard::len).sum();
        f.debug_struct("SafeTensors").field("path", &self.name).field("bytes", &bytes).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    /// A file with one `f32` tensor `w` of shape [2] and one `u64` tensor `ids` of shape [1].
    fn file() -> Vec<u8> {
        let header = br#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"ids":{"dtype":"U64","shape":[1],"data_offsets":[8,16]}}"#;
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header);
        bytes.extend_from_slice(&1.5f32.to_le_bytes());
        bytes.extend_from_slice(&(-2.0f32).to_le_bytes());
        bytes.extend_from_slice(&7u64.to_le_bytes());
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
        assert!(error.contains("U64") && error.contains("convert"), "{error}");
    }

    #[test]
    fn reads_every_type() {
        let all = [
            ("F64", DType::F64),
            ("F32", DType::F32),
            ("F16", DType::F16),
            ("BF16", DType::Bf16),
            ("I64", DType::I64),
            ("I32", DType::I32),
            ("I8", DType::I8),
            ("U32", DType::U32),
            ("U8", DType::U8),
            ("BOOL", DType::Bool),
        ];
        for (name, dtype) in all {
            let size = dtype.size();
            let header = format!(r#"{{"w":{{"dtype":"{name}","shape":[1],"data_offsets":[0,{size}]}}}}"#);
            let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
            bytes.extend_from_slice(header.as_bytes());
            bytes.extend(1..=size as u8);
            let source = SafeTensors::from_bytes("m", bytes).unwrap();
            let w = source.tensor("w").unwrap().unwrap();
            assert_eq!((w.dtype, &w.bytes[..]), (dtype, &[1, 2, 3, 4, 5, 6, 7, 8][..size]));
        }
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

    /// A folder of one test, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("graphable-shards-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
            std::fs::write(self.0.join(name), bytes).unwrap();
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).ok();
        }
    }

    /// A file with one `f32`.
    fn one(tensor: &str, value: f32) -> Vec<u8> {
        let header = format!(r#"{{"{tensor}":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}}}"#);
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &value.to_le_bytes()].concat()
    }

    #[test]
    fn an_index_is_the_sum_of_its_shards() {
        let folder = Folder::new("sum");
        folder.write("a.safetensors", one("x", 1.0));
        folder.write("b.safetensors", one("y", 2.0));
        let index = r#"{"metadata":{"total_size":99999999999999999},"weight_map":{"x":"a.safetensors","y":"b.safetensors"}}"#;
        folder.write(SHARDED, index);
        let mut mapped = vec![];
        let map = |file: &Path| {
            mapped.push(file.to_owned());
            MappedFile::of_test(file)
        };
        let sources = [
            SafeTensors::open(&folder.0).unwrap(),
            SafeTensors::open(folder.0.join(SHARDED)).unwrap(),
            SafeTensors::open_mapped(&folder.0, map).unwrap(),
        ];
        for source in sources {
            assert_eq!(source.names(), ["x", "y"]);
            for (name, value) in [("x", 1.0f32), ("y", 2.0)] {
                assert_eq!(*source.tensor(name).unwrap().unwrap().bytes, value.to_le_bytes());
            }
            assert!(source.tensor("z").unwrap().is_none());
        }
        assert_eq!(mapped, ["a.safetensors", "b.safetensors"].map(|file| folder.0.join(file)));
        // A whole file comes first.
        folder.write(WHOLE, one("w", 3.0));
        assert_eq!(SafeTensors::open(&folder.0).unwrap().names(), ["w"]);
    }

    #[test]
    fn an_index_that_is_wrong_is_refused() {
        let folder = Folder::new("wrong");
        folder.write("a.safetensors", one("x", 1.0));
        let refused = |index: &str, wanted: &str| {
            folder.write(SHARDED, index);
            let error = SafeTensors::open(&folder.0).unwrap_err();
            let text = error.to_string();
            assert!(
                matches!(error, Error::File { .. }) && text.contains(wanted) && text.contains("fetch"),
                "{text}"
            );
        };
        let mapped = |tensor: &str, file: &str| {
            format!(r#"{{"weight_map":{{"x":"a.safetensors","{tensor}":"{file}"}}}}"#)
        };
        refused(&mapped("y", "b.safetensors"), "names files that are not beside it: b.safetensors");
        refused(&mapped("y", "a.safetensors"), "has `y` in `a.safetensors`, which does not have it");
        for outside in ["../a.safetensors", "/etc/passwd", "", ".", "deep/a.safetensors"] {
            refused(&mapped("y", outside), "shards are beside their index");
        }
        for text in ["", "{", "[]", "{}", r#"{"weight_map":{"x":1}}"#, r#"{"weight_map":["x"]}"#] {
            refused(text, "is damaged, or not the index of a sharded model");
        }
        let whole = one("y", 2.0);
        folder.write("b.safetensors", &whole[..whole.len() - 1]);
        refused(
            &mapped("y", "b.safetensors"),
            "b.safetensors: has 65 bytes, which is not what its header says",
        );
        let error = SafeTensors::open_mapped(&folder.0, |_| Err(io::ErrorKind::Unsupported.into()));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("a.safetensors: cannot be read: unsupported"), "{error}");
        folder.write("b.safetensors", "");
        refused(&mapped("y", "b.safetensors"), "truncated or empty");
        std::fs::remove_file(folder.0.join(SHARDED)).unwrap();
        let error = SafeTensors::open(&folder.0).unwrap_err().to_string();
        assert!(error.contains("has neither model.safetensors nor"), "{error}");
    }

    #[test]
    fn tensors_that_overlap_or_have_wrong_sizes_are_refused() {
        let refused = |tensors: &str, data: usize, wanted: &str| {
            let header = format!("{{{tensors}}}");
            let bytes =
                [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &vec![0; data]].concat();
            let error = SafeTensors::from_bytes("m", bytes).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        };
        let tensor = |name: &str, shape: &str, [start, end]: [usize; 2]| {
            format!(r#""{name}":{{"dtype":"F32","shape":[{shape}],"data_offsets":[{start},{end}]}}"#)
        };
        let two = |second: [usize; 2]| format!("{},{}", tensor("a", "2", [0, 8]), tensor("b", "2", second));
        refused(&two([4, 12]), 12, "`b` does not begin where the tensor before it ends");
        refused(&two([12, 20]), 20, "`b` does not begin where the tensor before it ends");
        refused(&tensor("a", "3", [0, 8]), 8, "more or fewer bytes than its shape and type need");
        refused(&tensor("a", "4611686018427387904, 4611686018427387904", [0, 8]), 8, "damaged");
        refused(&tensor("a", "2", [0, 8]), 9, "not what its header says");
        refused(&tensor("a", "1000000000000", [0, 4000000000000]), 8, "not what its header says");
        refused(&format!("{},{}", tensor("a", "2", [8, 0]), tensor("b", "2", [0, 8])), 8, "damaged");
    }
}
