//! Models to files.

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::{BTreeMap, HashMap, hash_map::RandomState},
    fmt, fs,
    hash::{BuildHasher, Hasher},
    io,
    path::{Path, PathBuf},
};

use safetensors::{Dtype, View, serialize_to_file};

use super::{tiled_weights::Tiles, weights::Place};
use crate::{
    DType, Eager, Error, Result,
    model::load::{
        LoadParams,
        exporter::{Exporter, Saved, SavedBlocks},
        safetensors::blocks::FORMATS,
    },
    value::layout::Layout,
};

const OP: &str = "Eager::save";

impl Eager<'_> {
    /// Writes the parameters of a model to a safetensors file, under the names by which [`load`](crate::load::load) finds them:
    /// `load` with a [`SafeTensors`](crate::load::SafeTensors) of that file returns the same model, bit for bit. State and `#[config]` fields are
    /// not saved, and weights that are tied by name are written once. (Those that only [`Loader::rename`](crate::load::Loader::rename) tied are
    /// written under both names.)
    ///
    /// Reads are in the order of the stream, so what was launched before is in the file. One tensor at a time is on the host. The file
    /// is written beside `path`, and gets its name when its contents are complete and on the disk: a model may be saved over the file from
    /// which its weights are [mapped](crate::Weight::is_mapped). It replaces what had that name, a symbolic link as well, and not what the link
    /// refers to.
    ///
    /// A weight in blocks is a tensor of bytes, `[rows, bytes of a row]`, whose format is in the metadata of the file. Other programs read
    /// the floats of such a file; for weights in blocks that they can read, see [`Packing`](crate::load::Packing) and the `convert`
    /// program of the examples, which writes GGUF.
    ///
    /// ```
    /// use graphable::{
    ///     BlockFormat, Weight,
    ///     load::{self, SafeTensors, TensorMap},
    ///     prelude::*,
    /// };
    ///
    /// #[derive(Params)]
    /// #[params(config = usize)]
    /// struct Layer {
    ///     #[param("up.weight", shape = [2, *config])]
    ///     up: Weight<f32>,
    ///     #[param("norm.weight", shape = [*config])]
    ///     norm: Param<f32>,
    /// }
    ///
    /// let mut rt = Runtime::new(Device::cpu())?;
    /// let format = BlockFormat::Q8_0;
    /// let up = Weight::blocks(&rt, &[2, 32], format, format.quantize(&[0.5; 64])?)?;
    /// let layer = Layer { up, norm: Param::new(&rt, &[32], &[1.0; 32])? };
    ///
    /// let file = std::env::temp_dir().join(format!("saved-{}.safetensors", std::process::id()));
    /// rt.step()?.save(&layer, &file)?;
    /// let again: Layer = load::load(&rt, &SafeTensors::open(&file)?, &32)?;
    /// assert_eq!(again.up.format(), Some(format));
    /// # std::fs::remove_file(file)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if two tensors of the model have one name and are not one parameter, if one is called `__metadata__`, if an
    /// optional field would be loaded as what it is not (absent although it is there, since nothing of it is in the file, or the other
    /// way around), or if its [`LoadParams`] does not say how it is saved;
    /// [`Error::File`] if the file cannot be written; [`Error::Asleep`] and [`Error::Discarded`] of weights that sleep or have lost
    /// their contents; and the errors of [`Param::read`](crate::Param::read). There is no new file then.
    pub fn save<M: LoadParams>(&self, model: &M, path: impl AsRef<Path>) -> Result<()> {
        let tensors = Exporter::of(model)?;
        let file = Unfinished::beside(path.as_ref())?;
        let failed = RefCell::new(None);
        let views = tensors.iter().map(|(name, saved)| (name, Tensor { cx: self, saved, failed: &failed }));
        let written = serialize_to_file(views, formats(&tensors), &file.partial);
        if let Some(error) = failed.into_inner() {
            return Err(error);
        }
        written.map_err(|error| unwritable(file.path, error))?;
        file.finish()
    }
}

/// Returns the metadata that says which tensors are in blocks.
fn formats(tensors: &BTreeMap<String, Saved>) -> Option<HashMap<String, String>> {
    let format = |(name, saved): (&String, &Saved)| Some((name.clone(), saved.blocks?.format.to_string()));
    let formats: serde_json::Map<String, serde_json::Value> =
        tensors.iter().filter_map(format).map(|(name, format)| (name, format.into())).collect();
    let text = serde_json::Value::from(formats.clone()).to_string();
    (!formats.is_empty()).then(|| HashMap::from([(FORMATS.to_owned(), text)]))
}

/// A tensor that is read when it is its turn to be written.
struct Tensor<'a> {
    cx: &'a Eager<'a>,
    saved: &'a Saved,
    /// The first error. What is written after it does not matter.
    failed: &'a RefCell<Option<Error>>,
}

impl Tensor<'_> {
    fn read(&self) -> Result<Vec<u8>> {
        let Saved { owned, blocks, .. } = self.saved;
        let layout = Layout::contiguous(&[self.data_len()])?;
        let place = Place::of(OP, owned, DType::U8, layout);
        let read = match *blocks {
            Some(SavedBlocks { format, shape, is_in_tiles: true }) => {
                Tiles { format, shape }.read(self.cx, &place)?
            }
            _ => place.read::<u8>(self.cx)?,
        };
        read.wait()
    }
}

impl View for Tensor<'_> {
    fn dtype(&self) -> Dtype {
        match self.saved.dtype {
            DType::F32 => Dtype::F32,
            DType::F16 => Dtype::F16,
            DType::Bf16 => Dtype::BF16,
            DType::F64 => Dtype::F64,
            DType::I64 => Dtype::I64,
            DType::I32 => Dtype::I32,
            DType::I8 => Dtype::I8,
            DType::U32 => Dtype::U32,
            DType::U8 => Dtype::U8,
            DType::Bool => Dtype::BOOL,
        }
    }

    fn shape(&self) -> &[usize] {
        self.saved.layout.shape()
    }

    fn data(&self) -> Cow<'_, [u8]> {
        if self.failed.borrow().is_some() {
            return Cow::Borrowed(&[]);
        }
        Cow::Owned(self.read().unwrap_or_else(|error| {
            *self.failed.borrow_mut() = Some(error);
            Vec::new()
        }))
    }

    fn data_len(&self) -> usize {
        self.saved.layout.count() * self.saved.dtype.size()
    }
}

/// A file under a name of its own, which is removed unless it gets the name that it is for.
struct Unfinished<'a> {
    path: &'a Path,
    partial: PathBuf,
    file: fs::File,
    is_finished: bool,
}

impl<'a> Unfinished<'a> {
    /// Makes the file, in the folder of `path`.
    fn beside(path: &'a Path) -> Result<Self> {
        loop {
            // Random: on a shared disk, two processes may have one number.
            let number = RandomState::new().build_hasher().finish();
            let partial = path.with_file_name(format!(".graphable-{number:016x}.partial"));
            match fs::File::create_new(&partial) {
                Ok(file) => return Ok(Self { path, partial, file, is_finished: false }),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    return Err(unwritable(path, "its folder does not exist"));
                }
                Err(e) => return Err(unwritable(path, e)),
            }
        }
    }

    fn finish(mut self) -> Result<()> {
        let renamed = self.file.sync_all().and_then(|()| fs::rename(&self.partial, self.path));
        self.is_finished = renamed.is_ok();
        renamed.map_err(|e| unwritable(self.path, e))
    }
}

fn unwritable(path: &Path, reason: impl fmt::Display) -> Error {
    Error::File { path: path.display().to_string(), reason: format!("cannot be written: {reason}") }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            // What cannot be removed stays under a name that says what it is.
            let _ = fs::remove_file(&self.partial);
        }
    }
}
