//! Models that are written as Hugging Face folders with quantised weights.
//!
//! Products become fp8 with a scale for each row, or integers of 4 bits in the layout of AWQ; the embedding, the matrix that leads to logits,
//! and vectors stay as they are, as other programs want it. The folder has another name until it is complete and on the disk.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

use graphable::{
    DType,
    load::{PackedTensor, Packing, Quantization, QuantizedTensors, SafeTensors, TensorSource},
};
use indicatif::DecimalBytes;
use serde::Serialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::tensor::Errors;
use crate::{
    Error, Result,
    checkpoint::{Checkpoint, Files, Folder, json as read_json},
    elements::floats,
    llama::hugging_face_name,
};

/// What folders have besides weights and `config.json`, if the source has it.
const COPIED: [&str; 10] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
];
/// Elements that may share a scale, the most first: one size for the whole model.
const GROUPS: [usize; 3] = [128, 64, 32];

/// How the products of a folder are quantised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackedType {
    /// fp8 (e4m3).
    F8E4M3,
    /// Integers of 4 bits, with a scale and a zero point for a group.
    Int4,
}

/// A tensor that was written.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PackedWeight {
    /// Its name in the model.
    pub name: String,
    /// Row-major shape.
    pub shape: Vec<usize>,
    /// Whether it is quantised; otherwise it is as it was.
    pub packed: bool,
    /// Bytes that it took.
    pub bytes_before: u64,
    /// Bytes that it takes.
    pub bytes_after: u64,
    /// The root of the mean squared error over that of the mean square of its values.
    pub relative_rms_error: f64,
    /// The largest error.
    pub max_error: f64,
}

/// What came of it. Its fields, in this order, are the keys of `--json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PackedReport {
    /// The folder that was written.
    pub output: String,
    /// Elements that share a scale; 0 stands for a row.
    pub group: usize,
    /// Bytes that the tensors took.
    pub bytes_before: u64,
    /// Bytes that they take.
    pub bytes_after: u64,
    /// The error of all quantised tensors together.
    pub relative_rms_error: f64,
    /// The tensors, in the order of the file.
    pub tensors: Vec<PackedWeight>,
}

/// A tensor of the model, and the tensors of the file that it becomes.
struct Plan {
    name: String,
    shape: Vec<usize>,
    /// `None` if it stays as it is.
    packing: Option<Packing>,
    entries: Vec<Entry>,
}

/// A tensor of the file.
struct Entry {
    name: String,
    dtype: &'static str,
    shape: Vec<usize>,
}

/// Writes a model as a folder at `path`. `progress` is told how many bytes of the model's tensors were read, and how many there are.
///
/// # Errors
/// If the model is none that can be read, or not a folder; if a tensor has values that its type does not have; if there is something at `path`;
/// if the folder cannot be written. After an error there is no new folder.
pub fn convert_folder(
    files: &Files,
    ty: PackedType,
    path: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<PackedReport> {
    let Files::Folder(folder) = files else {
        return Err(Error::Model {
            what: "model".into(),
            reason: "it is a GGUF file, and a folder needs config.json and tokenizer.json".into(),
            help: "pass `--model` with a Hugging Face folder, or quantise as the model is loaded: `generate --dtype f8_e4m3` or `int4`".into(),
        });
    };
    check(path)?;
    let config = folder.config()?;
    folder.stored()?;
    let weights = folder.weights();
    let names: Vec<String> = config.tensors().iter().map(|name| hugging_face_name(name, &config)).collect();
    let is_product = |name: &str| {
        let shape = weights.shape(name);
        shape.is_some_and(|shape| shape.len() == 2)
            && !name.contains("embed_tokens")
            && !name.contains("lm_head")
    };
    let packing =
        packing(ty, names.iter().filter(|name| is_product(name)).filter_map(|name| weights.shape(name)));
    let total = names.iter().map(|name| weights.stored_bytes(name)).sum();

    let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let failed = |e: std::io::Error| Error::io(path, "write", &e);
    let prefix = format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy());
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".part");
    // Readable for whom other new folders are readable, not only for the user.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
    let temporary = builder.tempdir_in(parent).map_err(failed)?;
    let plans = names
        .iter()
        .filter_map(|name| weights.shape(name).map(|shape| (name, shape)))
        .map(|(name, shape)| Plan::new(weights, name, shape, packing.filter(|_| is_product(name))))
        .collect::<Result<Vec<_>>>()?;
    let file = File::create(temporary.path().join("model.safetensors")).map_err(failed)?;
    let (tensors, all) = write_weights(&file, weights, plans, &failed, &mut |read| progress(read, total))?;
    let stays = |tensor: &&PackedWeight| is_product(&tensor.name) && !tensor.packed;
    let floats: Vec<&str> = tensors.iter().filter(stays).map(|tensor| module(&tensor.name)).collect();
    describe(folder, packing.map(|packing| described(packing, &floats)), temporary.path(), path)?;
    publish(temporary, path)?;
    Ok(PackedReport {
        output: path.display().to_string(),
        group: if let Some(Packing::Awq { group }) = packing { group } else { 0 },
        bytes_before: tensors.iter().map(|tensor| tensor.bytes_before).sum(),
        bytes_after: tensors.iter().map(|tensor| tensor.bytes_after).sum(),
        relative_rms_error: all.relative(),
        tensors,
    })
}

/// Writes tensors to a file, and waits until they are on the disk. `progress` is told how many bytes of the model's were read.
/// Returns what was written, and the errors of all together.
fn write_weights(
    file: &File,
    weights: &QuantizedTensors,
    plans: Vec<Plan>,
    failed: &dyn Fn(std::io::Error) -> Error,
    progress: &mut dyn FnMut(u64),
) -> Result<(Vec<PackedWeight>, Errors)> {
    let mut writer = BufWriter::with_capacity(1 << 20, file);
    writer.write_all(&header(plans.iter().flat_map(|plan| &plan.entries))).map_err(failed)?;
    let (mut all, mut read, mut tensors) = (Errors::default(), 0, Vec::new());
    progress(0);
    for plan in plans {
        let (written, errors) = plan.convert(weights)?;
        for bytes in &written {
            writer.write_all(bytes).map_err(failed)?;
        }
        let before = weights.stored_bytes(&plan.name);
        read += before;
        progress(read);
        all = all.and(errors);
        tensors.push(PackedWeight {
            name: plan.name,
            shape: plan.shape,
            packed: plan.packing.is_some(),
            bytes_before: before,
            bytes_after: written.iter().map(|bytes| bytes.len() as u64).sum(),
            relative_rms_error: errors.relative(),
            max_error: errors.most,
        });
    }
    writer.flush().map_err(failed)?;
    drop(writer);
    file.sync_all().map_err(failed)?;
    Ok((tensors, all))
}

/// Gives a folder that is complete its name.
fn publish(temporary: TempDir, path: &Path) -> Result<()> {
    let failed = |e: std::io::Error| Error::io(path, "write", &e);
    check(path)?;
    std::fs::rename(temporary.path(), path).map_err(failed)?;
    // It has another name now.
    let _ = temporary.keep();
    Ok(())
}

/// Refuses a path at which there is something.
pub(super) fn check(path: &Path) -> Result<()> {
    if path.symlink_metadata().is_err() && path.file_name().is_some() {
        return Ok(());
    }
    Err(Error::File {
        path: path.to_owned(),
        reason: "there is something already, or it is no name of a folder".into(),
        help: "name a folder that is not there yet; folders are not overwritten".into(),
    })
}

/// How weights of these shapes are packed; `None` if no size of groups divides all their rows.
fn packing(ty: PackedType, shapes: impl Iterator<Item = Vec<usize>>) -> Option<Packing> {
    match ty {
        PackedType::F8E4M3 => Some(Packing::Float8),
        PackedType::Int4 => {
            let shapes: Vec<_> = shapes.collect();
            let fits = |group: &usize| shapes.iter().all(|shape| shape[1].is_multiple_of(*group));
            GROUPS.into_iter().find(fits).or(GROUPS.last().copied()).map(|group| Packing::Awq { group })
        }
    }
}

impl Plan {
    fn new(
        weights: &QuantizedTensors,
        name: &str,
        shape: Vec<usize>,
        packing: Option<Packing>,
    ) -> Result<Self> {
        let packing = packing.filter(|packing| packing.fits(&shape));
        let layer = name.strip_suffix("weight").unwrap_or(name);
        let entries = match packing {
            Some(packing) => {
                let entry = |tensor: PackedTensor| Entry {
                    name: format!("{layer}{}", tensor.name),
                    dtype: tensor.dtype,
                    shape: tensor.shape,
                };
                packing.tensors(&shape).into_iter().map(entry).collect()
            }
            None => {
                let tensor = weights.tensor(name)?.ok_or_else(|| not_floats(name))?;
                let dtype = match tensor.dtype {
                    DType::F32 => "F32",
                    DType::F16 => "F16",
                    DType::Bf16 => "BF16",
                    _ => return Err(not_floats(name)),
                };
                vec![Entry { name: name.into(), dtype, shape: shape.clone() }]
            }
        };
        Ok(Self { name: name.into(), shape, packing, entries })
    }

    /// The bytes of its tensors, and how far what will be read is from what was.
    fn convert(&self, weights: &QuantizedTensors) -> Result<(Vec<Vec<u8>>, Errors)> {
        let tensor = weights.tensor(&self.name)?.ok_or_else(|| not_floats(&self.name))?;
        let Some(packing) = self.packing else {
            return Ok((vec![tensor.bytes.into_owned()], Errors::default()));
        };
        let values = floats(&tensor.bytes, tensor.dtype).ok_or_else(|| not_floats(&self.name))?;
        let packed = packing.pack(&values, &self.shape).map_err(|e| Error::Model {
            what: format!("`{}`", self.name),
            reason: e.to_string(),
            help: "convert to bf16 or f32, which have all values of floats; if they are not numbers, the model is damaged".into(),
        })?;
        let written: Vec<Vec<u8>> = packed.into_iter().map(|tensor| tensor.bytes).collect();
        // As it will be read.
        let file = [header(&self.entries), written.concat()].concat();
        let quantization =
            Quantization::from_config("config.json", described(packing, &[]).to_string().as_bytes())?;
        let read = QuantizedTensors::new(SafeTensors::from_bytes("model.safetensors", file)?, quantization)?;
        let read = read.tensor(&self.name)?.ok_or_else(|| not_floats(&self.name))?;
        let read = floats(&read.bytes, read.dtype).unwrap_or_default();
        Ok((written, Errors::of(&values, &read)))
    }
}

fn not_floats(name: &str) -> Error {
    Error::Model {
        what: format!("`{name}`"),
        reason: "it is not a tensor of floats, and only these are converted".into(),
        help: "use weights in F32, F16 or BF16".into(),
    }
}

/// The header of a file with these tensors, one after the other.
fn header<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<u8> {
    let mut all = serde_json::Map::new();
    let mut at = 0;
    for Entry { name, dtype, shape } in entries {
        let size = match *dtype {
            "F8_E4M3" => 1,
            "F16" | "BF16" => 2,
            _ => 4,
        };
        let end = at + shape.iter().product::<usize>() * size;
        all.insert(name.clone(), json!({ "dtype": dtype, "shape": shape, "data_offsets": [at, end] }));
        at = end;
    }
    let mut text = Value::Object(all).to_string().into_bytes();
    // Elements are aligned.
    text.resize(text.len().next_multiple_of(8), b' ');
    [&(text.len() as u64).to_le_bytes()[..], &text].concat()
}

/// The name of the layer of a weight.
fn module(weight: &str) -> &str {
    weight.strip_suffix(".weight").unwrap_or(weight)
}

/// What `config.json` says of weights that are packed like this, but those of the layers `floats` and of the head.
fn described(packing: Packing, floats: &[&str]) -> Value {
    let floats: Vec<&str> = floats.iter().copied().chain(["lm_head"]).collect();
    let config = match packing {
        Packing::Awq { group } => json!({
            "quant_method": "awq", "bits": 4, "group_size": group, "zero_point": true, "version": "gemm",
            "modules_to_not_convert": floats,
        }),
        _ => json!({
            "quant_method": "compressed-tensors", "format": "float-quantized", "quantization_status": "compressed",
            "ignore": floats,
            "config_groups": { "group_0": {
                "targets": ["Linear"],
                "weights": {
                    "num_bits": 8, "type": "float", "strategy": "channel", "symmetric": true, "dynamic": false,
                },
                "input_activations": {
                    "num_bits": 8, "type": "float", "strategy": "token", "symmetric": true, "dynamic": true,
                },
            } },
        }),
    };
    json!({ "quantization_config": config })
}

/// Writes what a folder has besides weights. `path` is for errors.
fn describe(folder: &Folder, quantization: Option<Value>, to: &Path, path: &Path) -> Result<()> {
    let failed = |e: std::io::Error| Error::io(path, "write", &e);
    for name in COPIED {
        let from = folder.path().join(name);
        if from.is_file() {
            std::fs::copy(&from, to.join(name)).map_err(failed)?;
        }
    }
    let mut config = read_json(&folder.path().join("config.json"))?.unwrap_or_default();
    if let Some(all) = config.as_object_mut() {
        all.remove("compression_config");
        all.remove("quantization_config");
        if let Some(Value::Object(described)) = quantization {
            all.extend(described);
        }
    }
    std::fs::write(to.join("config.json"), format!("{config:#}\n")).map_err(failed)
}

impl PackedReport {
    /// One JSON object on a line of its own.
    pub fn to_json(&self) -> String {
        match serde_json::to_string(self) {
            Ok(json) => json + "\n",
            Err(_) => unreachable!("strings and numbers can always be written"),
        }
    }

    /// A table with a line for each tensor, if that is wanted, and one for all.
    pub fn table(&self, per_tensor: bool) -> String {
        let bytes = |n| DecimalBytes(n).to_string();
        let line = |name: &str, before, after, error: f64, packed: bool| {
            let error = if packed { format!("{:.4}%", 100.0 * error) } else { "exact".into() };
            format!("{name:48}  {:>11} {:>11}  {error:>9}\n", bytes(before), bytes(after))
        };
        let mut text = format!("{:48}  {:>11} {:>11}  {:>9}\n", "tensor", "before", "after", "rms error");
        for tensor in self.tensors.iter().filter(|_| per_tensor) {
            let PackedWeight { name, bytes_before, bytes_after, relative_rms_error, packed, .. } = tensor;
            text += &line(name, *bytes_before, *bytes_after, *relative_rms_error, *packed);
        }
        let packed = self.tensors.iter().filter(|tensor| tensor.packed).count();
        let all = format!("all {}, of which {packed} are quantised", self.tensors.len());
        text += &line(&all, self.bytes_before, self.bytes_after, self.relative_rms_error, packed > 0);
        text + &format!("wrote {}\n", self.output)
    }
}
