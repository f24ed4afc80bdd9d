//! What came of a conversion: a table for people, or one JSON object.

use std::{fmt::Write, path::Path};

use indicatif::DecimalBytes;
use serde::{Serialize, Serializer};

use super::{
    Rule,
    tensor::{Errors, Tensor},
};
use crate::gguf::{TensorType, write::NewTensor};

/// A tensor that was converted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Converted {
    /// Its name in the file.
    pub name: String,
    /// Row-major shape.
    pub shape: Vec<usize>,
    /// How it was stored.
    #[serde(serialize_with = "shown")]
    pub from: TensorType,
    /// How it is stored now.
    #[serde(serialize_with = "shown")]
    pub to: TensorType,
    /// Bytes that it took.
    pub bytes_before: u64,
    /// Bytes that it takes.
    pub bytes_after: u64,
    /// The root of the mean squared error over that of the mean square of its values.
    pub relative_rms_error: f64,
    /// The largest error.
    pub max_error: f64,
    #[serde(skip)]
    errors: Errors,
}

fn shown<S: Serializer>(ty: &TensorType, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(ty)
}

impl Converted {
    pub(super) fn new(tensor: &Tensor<'_>, new: NewTensor, bytes_after: u64, errors: Errors) -> Self {
        Self {
            name: new.name,
            shape: new.shape,
            from: tensor.ty,
            to: new.ty,
            bytes_before: tensor.bytes.len() as u64,
            bytes_after,
            relative_rms_error: errors.relative(),
            max_error: errors.most,
            errors,
        }
    }

    /// What it is, in whichever layer: `attn_q.weight` of `blk.3.attn_q.weight`.
    fn kind(&self) -> &str {
        let in_layer = self.name.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
        in_layer.map_or(self.name.as_str(), |(_, kind)| kind)
    }
}

/// What came of a conversion. Its fields, in this order, are the keys of `--json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The file that was written.
    pub output: String,
    /// The type that was asked for.
    #[serde(serialize_with = "shown")]
    pub dtype: TensorType,
    /// Bytes that the tensors took.
    pub bytes_before: u64,
    /// Bytes that they take.
    pub bytes_after: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// The error of all tensors that were converted together: the root of the mean squared error over that of the mean square of
    /// their values. Tensors that were copied as they are do not count.
    pub relative_rms_error: f64,
    /// The tensors, in the order of the file.
    pub tensors: Vec<Converted>,
    #[serde(skip)]
    fallbacks: Vec<Fallback>,
}

/// Rows that the blocks of the type that was asked for do not divide.
#[derive(Clone, Debug, PartialEq)]
struct Fallback {
    asked: TensorType,
    width: usize,
    to: TensorType,
}

impl Fallback {
    /// Those of tensors, each once.
    fn of(tensors: &[Converted], rule: Rule) -> Vec<Self> {
        let mut found = Vec::new();
        for Converted { name, shape, to, .. } in tensors {
            let asked = rule.asked(name);
            if let [_, width] = **shape
                && !width.is_multiple_of(asked.block_elements())
            {
                let fallback = Self { asked, width, to: *to };
                if !found.contains(&fallback) {
                    found.push(fallback);
                }
            }
        }
        found
    }
}

/// A line of the table: tensors of one kind and of the same types.
struct Line<'a> {
    what: &'a str,
    from: TensorType,
    to: TensorType,
    count: usize,
    before: u64,
    after: u64,
    errors: Errors,
}

impl<'a> Line<'a> {
    /// The line of one tensor.
    fn of(what: &'a str, tensor: &Converted) -> Self {
        Self {
            what,
            from: tensor.from,
            to: tensor.to,
            count: 1,
            before: tensor.bytes_before,
            after: tensor.bytes_after,
            errors: tensor.errors,
        }
    }

    fn add(&mut self, tensor: &Converted) {
        self.count += 1;
        self.before += tensor.bytes_before;
        self.after += tensor.bytes_after;
        self.errors = self.errors.and(tensor.errors);
    }

    /// The line, whose first column has this width.
    fn text(&self, width: usize) -> String {
        let errors = match self.errors.squared == 0.0 {
            true => format!("{:>9}  {:>9}", "exact", ""),
            false => format!("{:>8.4}%  {:>9.2e}", 100.0 * self.errors.relative(), self.errors.most),
        };
        let Self { what, from, to, count, before, after, .. } = self;
        let (from, to) = (from.to_string(), to.to_string());
        let (before, after) = (bytes(*before), bytes(*after));
        format!("{what:width$}  {count:>5}  {from:>6} {to:>6}  {before:>11} {after:>11}  {errors}\n")
    }
}

fn bytes(n: u64) -> String {
    DecimalBytes(n).to_string()
}

impl Report {
    pub(super) fn new(path: &Path, rule: Rule, tensors: Vec<Converted>, file_bytes: u64) -> Self {
        let all = tensors.iter().fold(Errors::default(), |all, tensor| all.and(tensor.errors));
        Self {
            output: path.display().to_string(),
            dtype: rule.matrices,
            bytes_before: tensors.iter().map(|tensor| tensor.bytes_before).sum(),
            bytes_after: tensors.iter().map(|tensor| tensor.bytes_after).sum(),
            file_bytes,
            relative_rms_error: all.relative(),
            fallbacks: Fallback::of(&tensors, rule),
            tensors,
        }
    }

    /// One JSON object on a line of its own.
    pub fn to_json(&self) -> String {
        match serde_json::to_string(self) {
            Ok(json) => json + "\n",
            Err(_) => unreachable!("strings and numbers can always be written"),
        }
    }

    /// A table with a line for each kind of tensor, or for each tensor.
    pub fn table(&self, per_tensor: bool) -> String {
        let lines = self.lines(per_tensor);
        let width = lines.iter().map(|line| line.what.len()).max().unwrap_or(0).max(6);
        let mut text = format!(
            "{:width$}  {:>5}  {:>6} {:>6}  {:>11} {:>11}  {:>9}  {:>9}\n",
            "tensor", "count", "from", "to", "before", "after", "rms error", "max error"
        );
        text.extend(lines.iter().map(|line| line.text(width)));
        let (before, after, all) =
            (bytes(self.bytes_before), bytes(self.bytes_after), 100.0 * self.relative_rms_error);
        writeln!(
            text,
            "{:width$}  {:>5}  {:>6} {:>6}  {before:>11} {after:>11}  {all:>8.4}%",
            "all",
            self.tensors.len(),
            "",
            ""
        )
        .expect("strings can be written to");
        for Fallback { asked, width, to } in &self.fallbacks {
            writeln!(text, "{asked} does not divide rows of {width} elements, which are {to}")
                .expect("strings can be written to");
        }
        writeln!(text, "wrote {}, {}", self.output, bytes(self.file_bytes))
            .expect("strings can be written to");
        text
    }

    /// A line for each kind of tensor, or for each tensor.
    fn lines(&self, per_tensor: bool) -> Vec<Line<'_>> {
        let mut lines: Vec<Line<'_>> = Vec::new();
        for tensor in &self.tensors {
            let what = if per_tensor { tensor.name.as_str() } else { tensor.kind() };
            let same = |line: &&mut Line<'_>| {
                !per_tensor && (line.what, line.from, line.to) == (what, tensor.from, tensor.to)
            };
            match lines.iter_mut().find(same) {
                Some(line) => line.add(tensor),
                None => lines.push(Line::of(what, tensor)),
            }
        }
        lines
    }
}

/// The number by which a file says of what type most of its matrices are (`llama_ftype` of llama.cpp); there is one for each type.
pub(super) fn file_type(ty: TensorType) -> u32 {
    use TensorType::*;
    match ty {
        F32 => 0,
        F16 => 1,
        Q4_0 => 2,
        Q4_1 => 3,
        Q8_0 => 7,
        Q5_0 => 8,
        Q5_1 => 9,
        Q2_K => 10,
        // The small ones of each: all matrices are of one type.
        Q3_K => 11,
        Q4_K => 14,
        Q5_K => 16,
        Q6_K => 18,
        IQ4_NL => 25,
        BF16 => 32,
    }
}
