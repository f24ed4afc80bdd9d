//! Rotary position embedding.

use smallvec::SmallVec;

use self::operation::{Rope, RopeScatter};
use super::{
    check::{lifted, meet, refuse, spread},
    launch::{launch, own},
    scatter::Rows,
};
use crate::{
    AsOperand, Error, Float, Result, State, Tensor,
    backend::{Op, View},
};

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod operation;

pub use operation::RopeStyle;

/// Parameters of [`rope`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RopeConfig {
    /// Base of the frequencies: pair `i` turns by `position * theta^(-2i/dim)` radians.
    pub theta: f32,
    /// The elements of a head that form a pair.
    pub style: RopeStyle,
    /// The number of elements of a head that rotate, from the first on; `None` for all of them.
    pub dim: Option<usize>,
}

impl RopeConfig {
    /// Rotates whole heads.
    pub const fn new(theta: f32, style: RopeStyle) -> Self {
        Self { theta, style, dim: None }
    }

    /// Returns the number of elements of a head of `d` that rotate, if this is possible.
    fn rotated(&self, op: &'static str, d: usize) -> Result<usize> {
        let dim = self.dim.unwrap_or(d);
        if !dim.is_multiple_of(2) || dim > d {
            let why = format!("{dim} elements of a head of {d} cannot rotate; an even number up to {d} can");
            return Err(Error::Argument { op, why });
        }
        if !(self.theta.is_finite() && self.theta > 0.0) {
            let why = format!("theta is {}; it must be a positive number", self.theta);
            return Err(Error::Argument { op, why });
        }
        Ok(dim)
    }
}

/// Rotary position embedding: turns pairs of elements of each head by an angle that grows with the
/// position.
///
/// `x` is `[B, T, H, D]` or `[T, H, D]`; `positions` is `[B, T]` or `[T]` (then the same for the
/// whole batch). Angles are computed in f32. Padding of batch, time and heads propagates.
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
/// Returns [`Error::Shape`]; [`Error::Argument`] if the rotated part is odd or larger than a head, or `theta`
/// is not a positive number; [`Error::PaddedMix`] if `D` is padded.
pub fn rope<'s, T: Float>(
    x: &Tensor<'s, T>,
    positions: &(impl AsOperand<'s, u32> + ?Sized),
    config: RopeConfig,
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "rope";
    let scope = x.scope();
    let positions = positions.operand(NAME, scope)?;
    let (x, given) = (own(NAME, x)?, positions.view.layout);
    let layout = x.view.layout;
    let shape = layout.shape();
    let wrong = |why: &str| Err(scope.shape_error(NAME, &[(&x).into(), (&positions).into()], why));
    let (time, (t, d)) = match *shape {
        [t, _, d] => (0, (t, d)),
        [_, t, _, d] => (1, (t, d)),
        _ => return wrong("the input must be `[B, T, H, D]` or `[T, H, D]`"),
    };
    let batched = time == 1 && given.rank() == 2;
    let mut marks = x.marks;
    if given.rank() == 1 + usize::from(batched) {
        let own = positions.marks.get(usize::from(batched));
        marks = marks.with(time, meet(NAME, scope, time, x.marks.get(time), own)?);
        if batched {
            marks = marks.with(0, meet(NAME, scope, 0, x.marks.get(0), positions.marks.get(0))?);
        }
    }
    if given.shape() != &shape[usize::from(time == 1 && !batched)..=time] {
        return wrong("positions must be `[T]`, or `[B, T]` for an input of `[B, T, H, D]`");
    }
    let dim = config.rotated(NAME, d)?;
    refuse(NAME, scope, x.marks, [layout.rank() - 1])?;

    let op = Op::from(Rope { theta: config.theta, style: config.style, dim });
    let out = scope.empty::<T>(&op, shape, marks)?;
    let (input, output) = match time {
        0 => (lifted(&layout)?, lifted(&out.raw.layout)?),
        _ => (layout, out.raw.layout),
    };
    let spread_positions = spread(NAME, positions.view, &[input.shape()[0], t])?;
    launch(
        scope,
        op,
        &[View { layout: input, ..x.view }, spread_positions],
        &[View { layout: output, ..out.raw.view() }],
    )?;
    Ok(out)
}

/// [`rope`] and [`scatter_rows`](super::scatter_rows) by one kernel: rotates each row of `x` and writes
/// it to a row of `state`, which is how keys enter a cache.
///
/// `x` is `[N, H, D]`, `positions` and `index` are `[N]`, and `state` is `[R, H, D]`, or has more leading
/// dimensions, whose product is `R`. Rows are written, skipped and padded as by `scatter_rows`.
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
    config: RopeConfig,
) -> Result<()> {
    const NAME: &str = "rope_scatter";
    let scope = index.scope();
    let positions = positions.operand(NAME, scope)?;
    let rows = Rows::new(NAME, state, index, x)?;
    let (source, given) = (rows.source.layout, positions.view.layout);
    let &[n, _, d] = source.shape() else {
        return Err(scope.shape_error(NAME, &[x.into()], "the source must be `[N, H, D]`"));
    };
    if given.rank() == 1 {
        meet(NAME, scope, 0, rows.padded, positions.marks.get(0))?;
    }
    if given.shape() != [n] {
        let why = "positions must be `[N]`, one for each row of the source";
        return Err(scope.shape_error(NAME, &[x.into(), (&positions).into()], why));
    }
    let dim = config.rotated(NAME, d)?;
    if source.count() == 0 {
        return Ok(());
    }
    let op = Op::from(RopeScatter(Rope { theta: config.theta, style: config.style, dim }));
    let mut inputs: SmallVec<[View; 4]> = SmallVec::from_slice(&[
        View { layout: lifted(&source)?, ..rows.source },
        spread(NAME, positions.view, &[1, n])?,
        rows.index,
    ]);
    inputs.extend(rows.count);
    scope.launch(op, &inputs, &[rows.target])
}
