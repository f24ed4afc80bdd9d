//! Integers of 4 bits with scales and zero points of groups, in the layouts of other programs.

use ::safetensors::tensor::Dtype;
use half::f16;
use rayon::prelude::*;

use super::{
    config::Layout,
    raw::{FLOATS, Floats, Raw, Words, wrong},
};
use crate::{BlockFormat, Result};

const FORMAT: BlockFormat = BlockFormat::INT4;
/// Integers in a word.
const EACH: usize = 8;
/// The places of eight neighbours in a word of AWQ: it stores 0, 2, 4, 6, 1, 3, 5, 7.
pub(super) const AWQ_PLACES: [usize; EACH] = [0, 4, 1, 5, 2, 6, 3, 7];
/// The zero point of weights that have none.
const SYMMETRIC: u8 = 8;
/// Rows of blocks that are made at a time: their integers are beside each other in the words that AWQ and GPTQ have.
const ROWS: usize = 128;

/// The tensors of a weight.
pub(super) struct Tensors<'a> {
    pub(super) integers: Raw<'a>,
    /// If integers are not around 8.
    pub(super) zeros: Option<Raw<'a>>,
    pub(super) scales: Raw<'a>,
    /// The group of each column, if they are not neighbours.
    pub(super) groups: Option<Raw<'a>>,
}

/// The names of the tensors of a weight, after that of its layer.
pub(super) struct Names {
    pub(super) integers: &'static str,
    pub(super) zeros: &'static str,
    pub(super) scales: &'static str,
    pub(super) groups: &'static str,
}

impl Layout {
    pub(super) fn names(self) -> Names {
        match self {
            Self::Awq | Self::Gptq { .. } => {
                Names { integers: "qweight", zeros: "qzeros", scales: "scales", groups: "g_idx" }
            }
            Self::Packed { .. } => Names {
                integers: "weight_packed",
                zeros: "weight_zero_point",
                scales: "weight_scale",
                groups: "weight_g_idx",
            },
        }
    }
}

/// Returns whether half precision, in which blocks have their scales, has a scale to its 11 digits: those below its normal numbers lose some.
fn is_near_in_f16(scale: f32) -> bool {
    (f16::from_f32(scale).to_f32() - scale).abs() <= scale.abs() * 2f32.powi(-11)
}

/// A weight.
pub(super) struct Int4<'a> {
    layout: Layout,
    /// Rows, and their elements.
    pub(super) shape: [usize; 2],
    /// Elements that share a scale, and how many groups of them a row has.
    group: usize,
    across: usize,
    integers: Words<'a>,
    zeros: Option<Words<'a>>,
    scales: Floats<'a>,
    groups: Option<Words<'a>>,
    /// Returns whether each run of the elements of a block is in one group.
    pub(super) has_blocks: bool,
}

impl<'a> Int4<'a> {
    /// Checks the tensors of a weight, whose layer is called `name`.
    pub(super) fn new(
        path: &str,
        name: &str,
        layout: Layout,
        group: Option<usize>,
        tensors: Tensors<'a>,
    ) -> Result<Self> {
        let Tensors { integers, zeros, scales, groups } = tensors;
        let names = layout.names();
        let of = |part: &str| format!("{name}.{part}");
        let &[first, second] = integers.shape else {
            let reason = format!(
                "has `{}` with shape {:?}; it has two dimensions",
                of(names.integers),
                integers.shape
            );
            return wrong(path, reason);
        };
        if first == 0 || second == 0 {
            return wrong(path, format!("has `{}` without elements; it is damaged", of(names.integers)));
        }
        let too_large =
            || wrong(path, format!("has `{}` of a size that overflows; it is damaged", of(names.integers)));
        let many = |words: usize| words.checked_mul(EACH);
        let shape = match layout {
            Layout::Awq => many(second).map(|rows| [rows, first]),
            Layout::Gptq { .. } => many(first).map(|width| [second, width]),
            Layout::Packed { .. } => many(second).map(|width| [first, width]),
        };
        let Some([rows, width]) = shape else { return too_large() };
        let group = group.unwrap_or(width).max(1);
        if !width.is_multiple_of(group) {
            return wrong(
                path,
                format!(
                    "has rows of {width} elements in `{}`, and groups of {group} do not divide them",
                    of(names.integers)
                ),
            );
        }
        let across = width / group;
        integers.check(path, &of(names.integers), &[Dtype::I32], &[first, second])?;
        let (of_zeros, of_scales) = match layout {
            Layout::Awq | Layout::Gptq { .. } => ([across, rows.div_ceil(EACH)], [across, rows]),
            Layout::Packed { .. } => ([rows.div_ceil(EACH), across], [rows, across]),
        };
        scales.check(path, &of(names.scales), FLOATS, &of_scales)?;
        match zeros {
            Some(zeros) => zeros.check(path, &of(names.zeros), &[Dtype::I32], &of_zeros)?,
            None if matches!(layout, Layout::Packed { symmetric: true, .. }) => {}
            None => return wrong(path, format!("does not have `{}`; it is incomplete", of(names.zeros))),
        }
        match groups {
            Some(groups) => groups.check(path, &of(names.groups), &[Dtype::I32], &[width])?,
            None if layout.is_sorted() => {
                let reason = format!(
                    "does not have `{}`, by which config.json says that columns are sorted (`desc_act`, `actorder`); it is incomplete",
                    of(names.groups)
                );
                return wrong(path, reason);
            }
            None => {}
        }
        let groups = groups.map(Raw::words);
        if groups.is_some_and(|groups| (0..width).any(|i| groups.at(i) as usize >= across)) {
            return wrong(
                path,
                format!("has `{}` with a group that is not there; it is damaged", of(names.groups)),
            );
        }
        let mut weight = Self {
            layout,
            shape: [rows, width],
            group,
            across,
            integers: integers.words(),
            zeros: zeros.map(Raw::words),
            scales: scales.floats(),
            groups,
            has_blocks: false,
        };
        let is_one = |at: usize| {
            let end = (at + FORMAT.elements()).min(width);
            (at..end).all(|i| weight.group_of(i) == weight.group_of(at))
        };
        weight.has_blocks = (0..width).step_by(FORMAT.elements()).all(is_one);
        let scales = weight.scales;
        // Larger ones are not numbers in half precision.
        if let Some(i) = (0..scales.len()).find(|i| !f16::from_f32(scales.at(*i)).is_finite()) {
            return wrong(
                path,
                format!(
                    "has `{}` with the value {} at {i}, which no weight has: it is damaged",
                    of(names.scales),
                    scales.at(i)
                ),
            );
        }
        weight.check_symmetry(path, &of(names.zeros))?;
        Ok(weight)
    }

    /// Checks that zero points are 8 where config.json says so, since some programs do not read them then.
    fn check_symmetry(&self, path: &str, name: &str) -> Result<()> {
        if !matches!(self.layout, Layout::Gptq { symmetric: true, .. }) {
            return Ok(());
        }
        let zeros =
            (0..self.shape[0]).flat_map(|row| (0..self.across).map(move |group| self.zero(row, group)));
        match zeros.into_iter().find(|zero| *zero != SYMMETRIC) {
            None => Ok(()),
            Some(zero) => wrong(
                path,
                format!(
                    "has `{name}` with a zero point of {zero}, and config.json says that all are 8 (`sym`): its `checkpoint_format` \
                     may be another one than config.json says"
                ),
            ),
        }
    }

    fn group_of(&self, column: usize) -> usize {
        self.groups.map_or(column / self.group, |groups| groups.at(column) as usize)
    }

    fn integer(&self, row: usize, column: usize) -> u8 {
        let [rows, width] = self.shape;
        match self.layout {
            Layout::Awq => self.integers.nibble(column * (rows / EACH) + row / EACH, AWQ_PLACES[row % EACH]),
            Layout::Gptq { .. } => self.integers.nibble(column / EACH * rows + row, column % EACH),
            Layout::Packed { .. } => {
                self.integers.nibble(row * (width / EACH) + column / EACH, column % EACH)
            }
        }
    }

    fn zero(&self, row: usize, group: usize) -> u8 {
        let Some(zeros) = self.zeros else { return SYMMETRIC };
        let each = self.shape[0].div_ceil(EACH);
        match self.layout {
            Layout::Awq => zeros.nibble(group * each + row / EACH, AWQ_PLACES[row % EACH]),
            // 1 was taken from each zero point of a word as from one number, where a zero point of 0 borrows from the next.
            Layout::Gptq { less_one, .. } => {
                let added = if less_one { 0x1111_1111 } else { 0 };
                (zeros.at(group * each + row / EACH).wrapping_add(added) >> (4 * (row % EACH))) as u8 & 0xF
            }
            Layout::Packed { .. } => zeros.nibble(row / EACH * self.across + group, row % EACH),
        }
    }

    fn scale(&self, row: usize, group: usize) -> f32 {
        match self.layout {
            Layout::Awq | Layout::Gptq { .. } => self.scales.at(group * self.shape[0] + row),
            Layout::Packed { .. } => self.scales.at(row * self.across + group),
        }
    }

    /// Its blocks; `None` if a row is not whole blocks, not each of them is in one group, or a scale is too small for half precision.
    pub(super) fn blocks(&self) -> Option<Vec<u8>> {
        let [rows, width] = self.shape;
        let bytes = FORMAT.row_bytes(width).filter(|_| self.has_blocks)?;
        if !(0..self.scales.len()).all(|i| is_near_in_f16(self.scales.at(i))) {
            return None;
        }
        let mut all = vec![0; rows.checked_mul(bytes)?];
        if all.is_empty() {
            return Some(all);
        }
        all.par_chunks_mut(ROWS * bytes).enumerate().for_each(|(i, some)| self.fill(i * ROWS, bytes, some));
        Some(all)
    }

    /// Fills rows of blocks from row `first` on. Elements of all rows are read in turn, as they lie in memory.
    fn fill(&self, first: usize, bytes: usize, rows: &mut [u8]) {
        let (elements, block) = (FORMAT.elements(), FORMAT.bytes());
        for run in 0..self.shape[1] / elements {
            let group = self.group_of(run * elements);
            for (row, to) in (first..).zip(rows.chunks_exact_mut(bytes)) {
                let to = &mut to[run * block..][..block];
                to[..2].copy_from_slice(&f16::from_f32(self.scale(row, group)).to_le_bytes());
                to[2] = self.zero(row, group);
            }
            for i in 0..elements {
                let (place, shift) = (i % (elements / 2), i / (elements / 2) * 4);
                for (row, to) in (first..).zip(rows.chunks_exact_mut(bytes)) {
                    to[run * block + 3 + place] |= self.integer(row, run * elements + i) << shift;
                }
            }
        }
    }

    /// Its values, in f32.
    pub(super) fn values(&self) -> Vec<u8> {
        let [rows, width] = self.shape;
        let mut all = vec![0; rows * width * size_of::<f32>()];
        if all.is_empty() {
            return all;
        }
        all.par_chunks_exact_mut(width * size_of::<f32>()).enumerate().for_each(|(row, to)| {
            for (column, to) in to.as_chunks_mut().0.iter_mut().enumerate() {
                let group = self.group_of(column);
                let integer = i32::from(self.integer(row, column)) - i32::from(self.zero(row, group));
                *to = (self.scale(row, group) * integer as f32).to_le_bytes();
            }
        });
        all
    }
}
