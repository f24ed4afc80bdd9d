//! The program that writes a model in another format: as a GGUF file or, in fp8 and in integers of 4 bits with groups, as a Hugging Face
//! folder (`packed.rs`).
//!
//! [`Rule`] says which type each tensor gets. Tensors are read where the model's files are mapped, converted some rows at a time, and
//! written to a file of another name in the same folder, which gets its own name when it is complete and on the disk.

mod output;
mod packed;
mod report;
mod rule;
mod source;
mod tensor;

use std::{
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use self::{output::Output, source::Source, tensor::Failure};
pub use self::{
    packed::{PackedReport, PackedType, PackedWeight, convert_folder},
    report::{Converted, Report},
    rule::Rule,
};
use crate::{
    Error, Result,
    checkpoint::Files,
    cli::{self, Target, print},
    fetch::{Cache, SMOLLM2},
    gguf::write::{self, NewTensor},
    progress::ByteBar,
};

/// The version of the block formats (`general.quantization_version`).
const QUANTIZATION_VERSION: u32 = 2;

/// Converts a model as the options say, and prints what came of it. `open` reads or maps the files of the model.
///
/// # Errors
/// Everything that can go wrong with options, model and output.
pub fn run(args: cli::Convert, open: impl FnOnce(&Path) -> Result<Files>) -> Result<()> {
    // What needs no model is checked before one is fetched.
    match args.dtype {
        Target::Gguf(_) => Output::check(&args.output, args.overwrite)?,
        Target::Folder(_) => check_folder(&args)?,
    }
    let path: PathBuf = match &args.model {
        Some(path) => path.clone(),
        None => Cache::of_user(args.quiet)?.get(&SMOLLM2)?.join(SMOLLM2.files[0].name),
    };
    let files = open(&path)?;
    let bar = ByteBar::new("converting", args.bars());
    let mut progress = |done, total| bar.show(done, total);
    let text = match args.dtype {
        Target::Gguf(ty) => {
            let rule = Rule { matrices: ty, embedding: args.embedding.unwrap_or(ty) };
            let report = convert(&files, rule, &args.output, args.overwrite, &mut progress)?;
            if args.json { report.to_json() } else { report.table(args.per_tensor) }
        }
        Target::Folder(ty) => {
            let report = convert_folder(&files, ty, &args.output, &mut progress)?;
            if args.json { report.to_json() } else { report.table(args.per_tensor) }
        }
    };
    drop(bar);
    print(&text)
}

/// Refuses what a folder does not have.
fn check_folder(args: &cli::Convert) -> Result<()> {
    packed::check(&args.output)?;
    match (args.embedding, &args.model) {
        (Some(_), _) => Err(Error::Option {
            option: "--embedding".into(),
            reason: "folders in fp8 and int4 have the embedding as it is".into(),
            help: "leave it out".into(),
        }),
        (None, None) => Err(Error::Option {
            option: "--model".into(),
            reason: "the model that is downloaded is a GGUF file, and folders are made of folders".into(),
            help: "pass a Hugging Face folder, or quantise as a model is loaded: `generate --dtype f8_e4m3` or `int4`".into(),
        }),
        (None, Some(_)) => Ok(()),
    }
}

/// Writes a model as a GGUF file at `path`. `progress` is told how many bytes of the model's tensors were read, and how many there
/// are.
///
/// # Errors
/// If the model is none that can be read, or a GGUF file cannot describe it; if a tensor has values that its type does not have; if
/// there is a file at `path` already, unless it may be overwritten; if the file cannot be written. After an error there is no new
/// file.
pub fn convert(
    files: &Files,
    rule: Rule,
    path: &Path,
    overwrite: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Report> {
    let Source { mut metadata, tensors } = Source::of(files)?;
    metadata.u32("general.file_type", report::file_type(rule.matrices));
    metadata.u32("general.quantization_version", QUANTIZATION_VERSION);
    let new: Vec<NewTensor> = tensors
        .iter()
        .map(|tensor| NewTensor {
            name: tensor.name.clone(),
            shape: tensor.shape.clone(),
            ty: rule.of(&tensor.name, &tensor.shape),
        })
        .collect();

    let total: u64 = tensors.iter().map(|tensor| tensor.bytes.len() as u64).sum();
    let mut read = 0;
    progress(read, total);
    let output = Output::create(path, overwrite)?;
    let failed = |e: std::io::Error| Error::io(path, "write", &e);
    let mut writer = BufWriter::with_capacity(1 << 20, output.file());
    let header = write::header(&metadata, &new);
    writer.write_all(&header).map_err(failed)?;
    let mut converted = Vec::with_capacity(new.len());
    for (tensor, new) in tensors.iter().zip(new) {
        let errors = tensor.write(new.ty, &mut writer, |bytes| {
            read += bytes;
            progress(read, total);
        });
        let errors = errors.map_err(|failure| match failure {
            Failure::Write(e) => failed(e),
            Failure::Value(reason) => Error::Model {
                what: format!("tensor `{}`", tensor.name),
                reason,
                help: "convert to bf16 or f32, which have all values of floats; if they are not numbers, the model is damaged".into(),
            },
        })?;
        let bytes = new.bytes();
        writer.write_all(&vec![0; write::padding(bytes)]).map_err(failed)?;
        converted.push(Converted::new(tensor, new, bytes, errors));
    }
    writer.flush().map_err(failed)?;
    drop(writer);
    let file_bytes = output.finish()?;
    Ok(Report::new(path, rule, converted, file_bytes))
}
