//! The index of a model that is spread over several files.

use std::{
    collections::BTreeMap,
    path::{Component, Path},
};

use super::shard::{Open, Shard, unreadable};
use crate::{Error, Result};

/// `model.safetensors.index.json`. Its sizes are claims that nothing depends on.
#[derive(serde::Deserialize)]
struct Index {
    /// From tensors to the files, beside the index, that hold them.
    weight_map: BTreeMap<String, String>,
}

/// Opens the files that the index at `path` names, each once and by `open`, and says which of them has a tensor.
pub(super) fn open(path: &Path, open: Open<'_>) -> Result<(Vec<Shard>, BTreeMap<String, usize>)> {
    let name = || path.display().to_string();
    let wrong = |reason: String| Error::File { path: name(), reason };
    let text = std::fs::read(path).map_err(|e| unreadable(name(), &e))?;
    let Index { weight_map } = serde_json::from_slice(&text).map_err(|e| {
        wrong(format!("is damaged, or not the index of a sharded model: {e}; fetch it again"))
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut files: BTreeMap<&str, usize> = BTreeMap::new();
    for file in weight_map.values() {
        let mut parts = Path::new(file).components();
        if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
            return Err(wrong(format!(
                "names the file `{file}`; shards are beside their index: fetch it again"
            )));
        }
        let next = files.len();
        files.entry(file).or_insert(next);
    }
    let missing: Vec<_> = files.keys().filter(|file| !folder.join(file).is_file()).copied().collect();
    if !missing.is_empty() {
        let reason = format!("names files that are not beside it: {}; fetch them", missing.join(", "));
        return Err(wrong(reason));
    }
    let mut shards: Vec<_> = files.into_iter().collect();
    shards.sort_by_key(|(_, place)| *place);
    let opened =
        shards.iter().map(|(file, _)| Shard::open(&folder.join(file), open)).collect::<Result<Vec<_>>>()?;
    let places: BTreeMap<&str, usize> = shards.into_iter().collect();
    let mut tensors = BTreeMap::new();
    for (tensor, file) in &weight_map {
        let place = places[file.as_str()];
        if opened[place].metadata.info(tensor).is_none() {
            let reason = format!("has `{tensor}` in `{file}`, which does not have it; fetch both again");
            return Err(wrong(reason));
        }
        tensors.insert(tensor.clone(), place);
    }
    Ok((opened, tensors))
}
