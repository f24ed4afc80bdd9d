//! What a model has to save, by tensor name.

use std::{collections::BTreeMap, sync::Arc};

use super::LoadParams;
use crate::{
    BlockFormat, DType, Element, Param, Weight,
    value::{layout::Layout, owned::Owned},
};

/// The name that no tensor of a safetensors file may have.
const RESERVED: &str = "__metadata__";

/// A tensor that is to be saved: the memory of a parameter.
#[derive(Clone)]
pub(crate) struct Saved {
    pub(crate) owned: Arc<Owned>,
    pub(crate) dtype: DType,
    pub(crate) layout: Layout,
    /// Set if it is in blocks; then `layout` is that of bytes.
    pub(crate) blocks: Option<SavedBlocks>,
}

impl Saved {
    fn is_same(&self, other: &Self) -> bool {
        let of = |saved: &Self| (saved.owned.id, saved.dtype, saved.layout, saved.blocks);
        of(self) == of(other)
    }
}

/// A weight in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SavedBlocks {
    pub(crate) format: BlockFormat,
    /// Rows, and elements of one.
    pub(crate) shape: [usize; 2],
    /// Set if they are in the order of a device.
    pub(crate) is_in_tiles: bool,
}

/// Collects the parameters of a model under the names by which a [`Loader`](super::Loader) finds them;
/// [`Eager::save`](crate::Eager::save) writes them to a file.
#[derive(Default)]
pub struct Exporter {
    prefix: String,
    tensors: BTreeMap<String, Saved>,
    /// The names of optional fields, and whether they are there.
    optional: Vec<(String, bool)>,
    problems: Vec<String>,
}

impl Exporter {
    /// Collects the parameters of `model`.
    #[cfg(feature = "safetensors")]
    pub(crate) fn of<M: LoadParams>(model: &M) -> crate::Result<BTreeMap<String, Saved>> {
        let mut exporter = Self::default();
        model.save(&mut exporter);
        exporter.check_optional();
        match exporter.problems.is_empty() {
            true => Ok(exporter.tensors),
            false => {
                let reason = exporter.problems.join("; ");
                Err(crate::Error::Argument { op: "Eager::save", reason })
            }
        }
    }

    /// Reports why the model cannot be saved.
    pub fn problem(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }

    /// Adds a parameter under `name`, below the current prefix.
    pub fn param<T: Element>(&mut self, name: &str, param: &Param<T>) {
        let (owned, layout) = (Arc::clone(&param.owned), param.layout);
        self.add(name, Saved { owned, dtype: T::DTYPE, layout, blocks: None });
    }

    /// Adds a weight under `name`, below the current prefix: floats, or its blocks as they are.
    pub fn weight<T: Element>(&mut self, name: &str, weight: &Weight<T>) {
        if let Some(param) = weight.param() {
            return self.param(name, param);
        }
        let Some((owned, format, layout)) = weight.stored_blocks() else { return };
        let (shape, is_in_tiles) = ([weight.dim(0), weight.dim(1)], weight.is_in_tiles());
        let blocks = Some(SavedBlocks { format, shape, is_in_tiles });
        self.add(name, Saved { owned: Arc::clone(owned), dtype: DType::U8, layout, blocks });
    }

    /// Adds the parameters of a struct whose names start with `name`; an empty name adds no prefix.
    pub fn nested<M: LoadParams>(&mut self, name: &str, model: &M) {
        let full = self.full(name);
        let outer = std::mem::replace(&mut self.prefix, full);
        model.save(self);
        self.prefix = outer;
    }

    /// Adds a field that may be absent, and is looked for by its name or the beginning of its names when it is loaded.
    pub fn optional<M>(&mut self, name: &str, item: &Option<M>, save: impl FnOnce(&mut Self, &M)) {
        self.optional.push((self.full(name), item.is_some()));
        if let Some(item) = item {
            save(self, item);
        }
    }

    /// Adds items; `{}` in `template` stands for the index.
    pub fn list<M>(&mut self, template: &str, items: &[M], mut save: impl FnMut(&mut Self, &str, &M)) {
        for (i, item) in items.iter().enumerate() {
            save(self, &template.replacen("{}", &i.to_string(), 1), item);
        }
    }

    /// Reports optional fields that would be loaded as what they are not.
    #[cfg(feature = "safetensors")]
    fn check_optional(&mut self) {
        for (name, is_there) in std::mem::take(&mut self.optional) {
            let found = self.tensors.keys().find(|tensor| super::is_at_or_below(&name, tensor));
            match (is_there, found) {
                (true, None) => self.problem(format!(
                    "`{name}` is optional and there, but no tensor of that name or below it, so it would be loaded as absent"
                )),
                (false, Some(tensor)) => {
                    let problem =
                        format!("`{name}` is absent, but would be looked for because there is `{tensor}`; rename one of them");
                    self.problem(problem);
                }
                _ => {}
            }
        }
    }

    fn full(&self, name: &str) -> String {
        super::joined(&self.prefix, name)
    }

    fn add(&mut self, name: &str, saved: Saved) {
        let name = self.full(name);
        if name == RESERVED {
            return self.problem(format!(
                "a tensor is called `{name}`, which a safetensors file keeps for its metadata"
            ));
        }
        match self.tensors.get(&name) {
            // Tied weights are loaded by one name.
            Some(before) if before.is_same(&saved) => {}
            Some(_) => self
                .problem(format!("two tensors of the model are called `{name}`, and are not one parameter")),
            None => drop(self.tensors.insert(name, saved)),
        }
    }
}
