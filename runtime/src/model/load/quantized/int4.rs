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

/// A weight as errors name it.
struct Named<'n> {
    path: &'n str,
    /// Its layer.
    layer: &'n str,
    names: Names,
}

impl Named<'_> {
    /// The name of one of its tensors.
    fn tensor(&self, part: &str) -> String {
        format!("{}.{part}", self.layer)
    }
}

/// The sizes of a weight.
#[derive(Clone, Copy)]
struct Sizes {
    rows: usize,
    width: usize,
    /// Elements that share a scale, and how many groups of them a row has.
    group: usize,
    across: usize,
}

impl Sizes {
    /// Those of a weight whose integers are in a tensor of shape `stored`.
    fn of(weight: &Named<'_>, layout: Layout, group: Option<usize>, stored: &[usize]) -> Result<Self> {
        let name = || weight.tensor(weight.names.integers);
        let &[first, second] = stored else {
            let reason = format!("has `{}` with shape {stored:?}; it has two dimensions", name());
            return wrong(weight.path, reason);
        };
        if first == 0 || second == 0 {
            return wrong(weight.path, format!("has `{}` without elements; it is damaged", name()));
        }
        let many = |words: usize| words.checked_mul(EACH);
        let shape = match layout {
            Layout::Awq => many(second).map(|rows| [rows, first]),
            Layout::Gptq { .. } => many(first).map(|width| [second, width]),
            Layout::Packed { .. } => many(second).map(|width| [first, width]),
        };
        let Some([rows, width]) = shape else {
            return wrong(weight.path, format!("has `{}` of a size that overflows; it is damaged", name()));
        };
        let group = group.unwrap_or(width).max(1);
        if !width.is_multiple_of(group) {
            let reason = format!(
                "has rows of {width} elements in `{}`, and groups of {group} do not divide them",
                name()
            );
            return wrong(weight.path, reason);
        }
        Ok(Self { rows, width, group, across: width / group })
    }

    /// The shapes of the tensors of zero points and of scales.
    fn of_groups(self, layout: Layout) -> [[usize; 2]; 2] {
        let Self { rows, across, .. } = self;
        match layout {
            Layout::Awq | Layout::Gptq { .. } => [[across, rows.div_ceil(EACH)], [across, rows]],
            Layout::Packed { .. } => [[rows.div_ceil(EACH), across], [rows, across]],
        }
    }
}

impl Tensors<'_> {
    /// Checks types and shapes, and that no tensor is missing.
    fn check(&self, weight: &Named<'_>, layout: Layout, sizes: Sizes) -> Result<()> {
        let Named { path, names, .. } = weight;
        let [of_zeros, of_scales] = sizes.of_groups(layout);
        self.integers.check(path, &weight.tensor(names.integers), &[Dtype::I32], self.integers.shape)?;
        self.scales.check(path, &weight.tensor(names.scales), FLOATS, &of_scales)?;
        let name = weight.tensor(names.zeros);
        match &self.zeros {
            Some(zeros) => zeros.check(path, &name, &[Dtype::I32], &of_zeros)?,
            None if matches!(layout, Layout::Packed { symmetric: true, .. }) => {}
            None => return wrong(path, format!("does not have `{name}`; it is incomplete")),
        }
        let name = weight.tensor(names.groups);
        match &self.groups {
            Some(groups) => groups.check(path, &name, &[Dtype::I32], &[sizes.width]),
            None if layout.is_sorted() => {
                let reason = format!(
                    "does not have `{name}`, by which config.json says that columns are sorted (`desc_act`, `actorder`); it is \
                     incomplete"
                );
                wrong(path, reason)
            }
            None => Ok(()),
        }
    }
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
        let named = Named { path, layer: name, names: layout.names() };
        let sizes = Sizes::of(&named, layout, group, tensors.integers.shape)?;
        tensors.check(&named, layout, sizes)?;
        let Sizes { rows, width, group, across } = sizes;
        let Tensors { integers, zeros, scales, groups } = tensors;
        let mut weight = Self {
            layout,
            shape: [rows, width],
            group,
            across,
            integers: integers.words(),
            zeros: zeros.map(Raw::words),
            scales: scales.floats(),
            groups: groups.map(Raw::words),
            has_blocks: false,
        };
        weight.check_groups(path, &named.tensor(named.names.groups))?;
        weight.has_blocks = weight.has_whole_groups();
        weight.check_scales(path, &named.tensor(named.names.scales))?;
        weight.check_symmetry(path, &named.tensor(named.names.zeros))?;
        Ok(weight)
    }

    /// Checks that each column is in a group that there is.
    fn check_groups(&self, path: &str, name: &str) -> Result<()> {
        let Some(groups) = self.groups else { return Ok(()) };
        match (0..self.shape[1]).all(|i| (groups.at(i) as usize) < self.across) {
            true => Ok(()),
            false => wrong(path, format!("has `{name}` with a group that is not there; it is damaged")),
        }
    }

    /// Returns whether each run of the elements of a block is in one group.
    fn has_whole_groups(&self) -> bool {
        let width = self.shape[1];
        (0..width).step_by(FORMAT.elements()).all(|at| {
            let end = (at + FORMAT.elements()).min(width);
            (at..end).all(|i| self.group_of(i) == self.group_of(at))
        })
    }

    /// Checks that scales are numbers in half precision, too.
    fn check_scales(&self, path: &str, name: &str) -> Result<()> {
        let scales = self.scales;
        match (0..scales.len()).find(|i| !f16::from_f32(scales.at(*i)).is_finite()) {
            None => Ok(()),
            Some(i) => wrong(
                path,
                format!(
                    "has `{name}` with the value {} at {i}, which no weight has: it is damaged",
                    scales.at(i)
                ),
            ),
        }
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
