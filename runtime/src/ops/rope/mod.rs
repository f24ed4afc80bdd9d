//! Rotary position embedding.

use smallvec::SmallVec;

use super::{
    check::{Shape, lifted, meet, refuse},
    launch::{launch, own},
    scatter::Rows,
};
use crate::{
    AsOperand, Float, Result, Scope, State, Tensor,
    backend::{Op, View},
    tensor::Operand,
    value::layout::{Layout, PaddedDims},
};

mod config;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod frequencies;
mod operation;
mod scaling;

pub use config::{RopeConfig, RopeOptions};
#[cfg(feature = "cuda")]
pub(super) use cuda::{ANGLES, angles};
pub use operation::RopeStyle;
pub(super) use operation::{Rope, RopeScatter};
pub use scaling::{LongRopeConfig, RopeScaling, YarnConfig};

/// Applies rotary position embedding: turns pairs of elements of each head by an angle that grows with the
/// position.
///
/// Corresponds to `apply_rotary_pos_emb` of `transformers`; the paper is <https://arxiv.org/abs/2104.09864>.
///
/// `x` is `[B, T, H, D]` or `[T, H, D]`; `positions` is `[B, T]` or `[T]` (then the same for the
/// whole batch). With [sections](RopeOptions::sections), positions have a first dimension with one row for each section:
/// `[N, B, T]` or `[N, T]`. `config` is a [`RopeConfig`], or [`RopeOptions`] with scaled frequencies ([`RopeScaling`]) or
/// sections. Angles are computed in f64, the rest in f32. Padding of batch, time and heads propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 1, 2], &[1.0f32, 0.0, 1.0, 0.0])?; // [T, heads, width]
/// let positions = step.tensor(&[2], &[0u32, 1])?;
/// let config = ops::RopeConfig::new(10_000.0, ops::RopeStyle::HalfSplit);
/// let y = step.read(&ops::rope(&x, &positions, config)?)?;
/// assert_eq!(y[..2], [1.0, 0.0]); // position 0 does not turn
/// assert!((y[2] - 1f32.cos()).abs() < 1e-5 && (y[3] - 1f32.sin()).abs() < 1e-5);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`](crate::Error::Shape); [`Error::Argument`](crate::Error::Argument) if the rotated part is odd or
/// larger than a head, if `theta` or a parameter of the scaling is not a positive number, or if the sections do not have all
/// pairs; [`Error::PaddedMix`](crate::Error::PaddedMix) if `D` or the sections are padded.
pub fn rope<'s, T: Float>(
    x: &Tensor<'s, T>,
    positions: &(impl AsOperand<'s, u32> + ?Sized),
    config: impl Into<RopeOptions>,
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "rope";
    let (scope, config) = (x.scope(), config.into());
    let positions = positions.operand(NAME, scope)?;
    let (x, given) = (own(NAME, x)?, positions.view.layout);
    let layout = x.view.layout;
    let shape = layout.shape();
    let wrong = |reason: &str| Err(scope.shape_error(NAME, &[(&x).into(), (&positions).into()], reason));
    let (time, t, d) = match *shape {
        [t, _, d] => (0, t, d),
        [_, t, _, d] => (1, t, d),
        _ => return wrong("the input must be `[B, T, H, D]` or `[T, H, D]`"),
    };
    let axes = PositionAxes::new(time, config.sections.count, given.rank());
    let marks = axes.marks(NAME, scope, &x, &positions)?;
    if given.shape() != &axes.shape_for(shape)[..] {
        return wrong(match axes.sections {
            0 => "positions must be `[T]`, or `[B, T]` for an input of `[B, T, H, D]`",
            _ => {
                "positions must have a row for each section: `[N, T]`, or `[N, B, T]` for an input of `[B, T, H, D]`"
            }
        });
    }
    let mut rotation = config.operation(NAME, d)?;
    refuse(NAME, scope, x.marks, [layout.rank() - 1])?;
    refuse(NAME, scope, positions.marks, 0..axes.first())?;
    let counts = real_sizes(&mut rotation, scope, [marks.get(0).filter(|_| axes.batched), marks.get(time)]);
    let op = Op::from(rotation);
    let out = scope.empty::<T>(&op, shape, marks)?;
    let (input, output) = match time {
        0 => (lifted(&layout)?, lifted(&out.raw.layout)?),
        _ => (layout, out.raw.layout),
    };
    let batches = input.shape()[0];
    let mut inputs: SmallVec<[View; 4]> = SmallVec::from_slice(&[View { layout: input, ..x.view }]);
    inputs.push(by_section(positions.view, axes.sections, axes.batched, [batches, t])?);
    inputs.extend(counts);
    launch(scope, op, &inputs, &[View { layout: output, ..out.raw.view() }])?;
    Ok(out)
}

/// How positions belong to an input.
#[derive(Clone, Copy)]
struct PositionAxes {
    /// The dimension of the input that is time.
    time: usize,
    /// The rows of positions, one for each section; 0 without sections.
    sections: usize,
    /// Whether each sequence of the batch has its own.
    batched: bool,
}

impl PositionAxes {
    fn new(time: usize, sections: usize, rank: usize) -> Self {
        let positions = Self { time, sections, batched: false };
        Self { batched: time == 1 && rank == positions.first() + 2, ..positions }
    }

    /// The number of dimensions of positions before those of the input.
    fn first(self) -> usize {
        usize::from(self.sections > 0)
    }

    /// The shape of positions for an input of a shape.
    fn shape_for(self, input: &[usize]) -> Shape {
        let from = usize::from(self.time == 1 && !self.batched);
        let sections = (0..self.first()).map(|_| self.sections);
        sections.chain(input[from..=self.time].iter().copied()).collect()
    }

    /// The padding of the result. Positions of another rank, which are refused, have no part in it.
    fn marks(
        self,
        name: &'static str,
        scope: Scope<'_>,
        x: &Operand,
        positions: &Operand,
    ) -> Result<PaddedDims> {
        let (rank, time) = (positions.view.layout.rank(), self.time);
        if rank != self.first() + 1 + usize::from(self.batched) {
            return Ok(x.marks);
        }
        let own = positions.marks.get(rank - 1);
        let marks = x.marks.with(time, meet(name, scope, time, x.marks.get(time), own)?);
        if !self.batched {
            return Ok(marks);
        }
        let own = positions.marks.get(self.first());
        Ok(marks.with(0, meet(name, scope, 0, x.marks.get(0), own)?))
    }
}

/// The real sizes of batch and time, which frequencies that depend on positions need if they are padded; notes which are.
fn real_sizes(rotation: &mut Rope, scope: Scope<'_>, symbols: [Option<u8>; 2]) -> SmallVec<[View; 2]> {
    let mut counts = SmallVec::new();
    if rotation.frequencies.is_dynamic() {
        for (symbol, padded) in symbols.into_iter().zip(&mut rotation.padded) {
            let count = symbol.and_then(|symbol| scope.real_count(symbol));
            *padded = count.is_some();
            counts.extend(count);
        }
    }
    counts
}

/// Positions as `[sections, B, T]`, with one section if they have no dimension for them.
fn by_section(positions: View, sections: usize, batched: bool, [batches, times]: [usize; 2]) -> Result<View> {
    let strides = positions.layout.strides();
    let first = usize::from(sections > 0);
    let each = [
        if first == 1 { strides[0] } else { 0 },
        if batched { strides[first] } else { 0 },
        strides[strides.len() - 1],
    ];
    Ok(View { layout: Layout::strided(&[sections.max(1), batches, times], &each)?, ..positions })
}

/// Computes [`rope`] and [`scatter_rows`](super::scatter_rows) by one kernel: rotates each row of `x` and writes
/// it to a row of `state`, which is how keys enter a cache.
///
/// In PyTorch, it is `apply_rotary_pos_emb` of `transformers` and `torch.Tensor.index_copy_`.
///
/// `x` is `[N, H, D]`, `positions` (with sections, `[sections, N]`) and `index` are `[N]`, and `state` is `[R, H, D]`, or
/// has more leading dimensions, whose product is `R`. Rows are written, skipped and padded as by `scatter_rows`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let keys = State::zeros(&rt, &[2, 1, 2])?; // [rows, heads, width]
/// let step = rt.step()?;
/// let k = step.tensor(&[1, 1, 2], &[1.0f32, 2.0])?;
/// let (row, position) = (step.tensor(&[1], &[1u32])?, step.tensor(&[1], &[0u32])?);
/// let config = ops::RopeConfig::new(10_000.0, ops::RopeStyle::HalfSplit);
/// ops::rope_scatter(&keys, &row, &k, &position, config)?;
/// assert_eq!(step.read(&ops::load(step.scope(), &keys)?)?, [0.0, 0.0, 1.0, 2.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns the errors of [`rope`] and of [`scatter_rows`](super::scatter_rows).
pub fn rope_scatter<'s, T: Float>(
    state: &State<T>,
    index: &Tensor<'s, u32>,
    x: &Tensor<'s, T>,
    positions: &(impl AsOperand<'s, u32> + ?Sized),
    config: impl Into<RopeOptions>,
) -> Result<()> {
    const NAME: &str = "rope_scatter";
    let (scope, config) = (index.scope(), config.into());
    let positions = positions.operand(NAME, scope)?;
    let rows = Rows::new(NAME, state, index, x)?;
    let (source, given) = (rows.source.layout, positions.view.layout);
    let &[n, _, d] = source.shape() else {
        return Err(scope.shape_error(NAME, &[x.into()], "the source must be `[N, H, D]`"));
    };
    let sections = config.sections.count;
    let first = usize::from(sections > 0);
    if given.rank() == first + 1 {
        meet(NAME, scope, 0, rows.padded, positions.marks.get(first))?;
    }
    if given.shape() != &[sections, n][1 - first..] {
        let reason = match first {
            0 => "positions must be `[N]`, one for each row of the source",
            _ => "positions must be `[sections, N]`, a row for each section",
        };
        return Err(scope.shape_error(NAME, &[x.into(), (&positions).into()], reason));
    }
    let mut rotation = config.operation(NAME, d)?;
    rotation.padded = [false, rows.count.is_some()];
    refuse(NAME, scope, positions.marks, 0..first)?;
    if source.count() == 0 {
        return Ok(());
    }
    let mut inputs: SmallVec<[View; 4]> = SmallVec::from_slice(&[
        View { layout: lifted(&source)?, ..rows.source },
        by_section(positions.view, sections, false, [1, n])?,
        rows.index,
    ]);
    inputs.extend(rows.count);
    scope.launch(RopeScatter(rotation).into(), &inputs, &[rows.target])
}

/// The operation for heads of `d` elements, all of which turn, for kernels that are compiled or tested alone.
#[cfg(any(test, feature = "cuda"))]
pub(super) fn sample(style: RopeStyle, d: usize) -> Option<Rope> {
    RopeOptions::from(RopeConfig { theta: 10_000.0, style, dim: None }).operation("rope", d).ok()
}
