//! Scaled-dot-product attention.

use smallvec::SmallVec;

use self::operation::{Attention, MaskKind};
use super::{
    check::{Shape, lifted, meet, refuse},
    launch::{launch, own},
};
use crate::{
    AsOperand, Error, Float, Result, Scope, Tensor,
    backend::{Op, View},
    tensor::Operand,
    value::layout::Marks,
};

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod operation;

/// The keys to which a query of [`attention`] attends. `i` counts queries, `j` keys; there are `T` and `S`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum AttentionMask<'a, 's> {
    /// All of them.
    None,
    /// Those up to its own place, the last query and the last key being one: `j <= i + (S - T)`.
    Causal,
    /// The first of its sequence: `j < lengths[b]`. Lengths are `[B]` (without a batch: `[1]` or a
    /// scalar).
    Lengths(&'a Tensor<'s, u32>),
    /// Keys up to its position: `j <= positions[b, i]`. Positions are `[B, T]` (without a batch: `[T]`). This
    /// is the mask of a KV cache whose row `j` holds position `j`.
    Positions(&'a Tensor<'s, u32>),
}

impl AttentionMask<'_, '_> {
    fn kind(self) -> MaskKind {
        match self {
            Self::None => MaskKind::None,
            Self::Causal => MaskKind::Causal,
            Self::Lengths(_) => MaskKind::Lengths,
            Self::Positions(_) => MaskKind::Positions,
        }
    }
}

/// One operand as `[B, rows, heads, size]`, with the marks of its first two dimensions.
struct Heads {
    view: View,
    batch: Option<u8>,
    rows: Option<u8>,
}

/// Heads and their elements are summed over, so they cannot be padded.
fn heads(name: &'static str, scope: Scope<'_>, x: Operand) -> Result<Heads> {
    let rank = x.view.layout.rank();
    refuse(name, scope, x.marks, [rank - 2, rank - 1])?;
    let layout = if rank == 3 { lifted(&x.view.layout)? } else { x.view.layout };
    let batch = if rank == 4 { x.marks.get(0) } else { None };
    Ok(Heads { view: View { layout, ..x.view }, batch, rows: x.marks.get(rank - 3) })
}

/// `softmax(scale * q k^T) v` for each head, with softmax in f32.
///
/// `q` is `[B, T, Hq, D]`, `k` `[B, S, Hkv, D]`, `v` `[B, S, Hkv, Dv]`, and the result `[B, T, Hq, Dv]`; `B`
/// can be omitted in all of them. `Hq` is a multiple of `Hkv`: query head `h` uses key head `h / (Hq / Hkv)`.
/// The result of a query that attends to no key is zeros. Keys and values may be [`State`](crate::State); use
/// a [`cache_view`](super::cache_view) for a part or a different shape of one.
///
/// Padding of `B` and `T` propagates. A padded `S` is rejected without a mask, and with
/// [`AttentionMask::Causal`] unless queries and keys are padded by the same symbol. With lengths or positions
/// it is allowed: queries never attend to keys in the padding, whatever the lengths or positions are.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let q = step.tensor(&[2, 1, 2], &[0.0f32; 4])?; // [T, heads, width]
/// let v = step.tensor(&[2, 1, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
/// // All scores are equal, so each query gets the mean of the values that it sees.
/// let y = ops::attention(&q, &q, &v, ops::AttentionMask::Causal, 1.0)?;
/// assert_eq!(step.read(&y)?, [1.0, 2.0, 2.0, 3.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`]; [`Error::Argument`] if `scale` is not finite; [`Error::PaddedMix`].
pub fn attention<'s, T: Float>(
    q: &Tensor<'s, T>,
    k: &(impl AsOperand<'s, T> + ?Sized),
    v: &(impl AsOperand<'s, T> + ?Sized),
    mask: AttentionMask<'_, 's>,
    scale: f32,
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "attention";
    let scope = q.scope();
    let (q, k, v) = (own(NAME, q)?, k.operand(NAME, scope)?, v.operand(NAME, scope)?);
    if !scale.is_finite() {
        return Err(Error::Argument { op: NAME, why: format!("scale {scale}; it must be finite") });
    }
    check_ranks(NAME, scope, [&q, &k, &v])?;
    let rank = q.view.layout.rank();
    let time = rank - 3;
    let all = [q, k, v];
    let (queries, keys, values) = (heads(NAME, scope, q)?, heads(NAME, scope, k)?, heads(NAME, scope, v)?);

    let mut batch = meet(NAME, scope, 0, queries.batch, keys.batch)?;
    batch = meet(NAME, scope, 0, batch, values.batch)?;
    let mut rows = queries.rows;
    let seen = meet(NAME, scope, time, keys.rows, values.rows)?;
    check_shapes(NAME, scope, &all)?;
    let mut inputs: SmallVec<[View; 4]> = SmallVec::from_slice(&[queries.view, keys.view, values.view]);
    match mask {
        AttentionMask::None => refuse(NAME, scope, Marks::NONE.with(time, seen), [time])?,
        // The mask counts from the last query and key, which are real only together.
        AttentionMask::Causal if seen != rows => {
            refuse(NAME, scope, Marks::NONE.with(time, seen.or(rows)), [time])?;
        }
        AttentionMask::Causal => {}
        AttentionMask::Lengths(lengths) | AttentionMask::Positions(lengths) => {
            let given = lengths.operand(NAME, scope)?;
            if rank == 4 {
                batch = meet(NAME, scope, 0, batch, given.marks.get(0))?;
            }
            match mask {
                AttentionMask::Positions(_) => rows = meet(NAME, scope, time, rows, given.marks.get(time))?,
                // One length for all queries.
                _ if rank == 3 => refuse(NAME, scope, given.marks, [0])?,
                _ => {}
            }
            inputs.push(mask_view(NAME, scope, mask, &given, &all[0])?);
            inputs.extend(seen.and_then(|symbol| scope.real_count(symbol)));
        }
    }

    let op = Op::from(Attention { mask: mask.kind(), scale });
    let mut shape: Shape = q.view.layout.shape().into();
    shape[rank - 1] = values.view.layout.shape()[3];
    let marks = if rank == 4 { Marks::NONE.with(0, batch) } else { Marks::NONE }.with(time, rows);
    let out = scope.empty::<T>(&op, &shape, marks)?;
    let layout = if rank == 3 { lifted(&out.raw.layout)? } else { out.raw.layout };
    launch(scope, op, &inputs, &[View { layout, ..out.raw.view() }])?;
    Ok(out)
}

fn check_ranks(name: &'static str, scope: Scope<'_>, operands: [&Operand; 3]) -> Result<()> {
    let ranks = operands.map(|operand| operand.view.layout.rank());
    if matches!(ranks, [3, 3, 3] | [4, 4, 4]) {
        return Ok(());
    }
    let why = "queries, keys and values must all be `[B, T, H, D]`, or all `[T, H, D]`";
    Err(scope.shape_error(name, &operands.map(Into::into), why))
}

/// Checks operands of the same rank, none of whose padding meets anything else.
fn check_shapes(name: &'static str, scope: Scope<'_>, operands: &[Operand; 3]) -> Result<()> {
    let shapes = operands.each_ref().map(|operand| operand.view.layout.shape());
    let wrong = |why: String| Err(scope.shape_error(name, &operands.each_ref().map(Into::into), why));
    let rank = shapes[0].len();
    let [(bq, hq, dq), (bk, hk, dk), (bv, hv, _)] =
        shapes.map(|s| (s[..rank - 3].first().copied(), s[rank - 2], s[rank - 1]));
    if bq != bk || bq != bv {
        return wrong("the batch (dimension 0) must be the same for all three; narrow a larger cache".into());
    }
    if dq != dk {
        return wrong(format!("heads of queries have {dq} elements, of keys {dk}; they must be equal"));
    }
    if hk != hv || shapes[1][rank - 3] != shapes[2][rank - 3] {
        return wrong("keys and values must have the same number of rows and heads".into());
    }
    if hk == 0 || !hq.is_multiple_of(hk) {
        return wrong(format!("{hq} query heads over {hk} key heads; a multiple of the key heads is needed"));
    }
    Ok(())
}

/// Lengths as `[B]`, positions as `[B, T]`.
fn mask_view(
    name: &'static str,
    scope: Scope<'_>,
    mask: AttentionMask<'_, '_>,
    given: &Operand,
    queries: &Operand,
) -> Result<View> {
    let rank = queries.view.layout.rank();
    let (b, t) = match *queries.view.layout.shape() {
        [b, t, _, _] => (b, t),
        ref shape => (1, shape[0]),
    };
    let layout = given.view.layout;
    let fits = match (mask.kind(), rank, layout.shape()) {
        (MaskKind::Lengths, 3, []) => Some(lifted(&layout)?),
        (MaskKind::Lengths, _, &[n]) if n == b => Some(layout),
        (MaskKind::Positions, 3, &[n]) if n == t => Some(lifted(&layout)?),
        (MaskKind::Positions, 4, &[m, n]) if (m, n) == (b, t) => Some(layout),
        _ => None,
    };
    let Some(layout) = fits else {
        let need = match (mask.kind(), rank) {
            (MaskKind::Positions, 4) => format!("positions must be [{b}, {t}]"),
            (MaskKind::Positions, _) => format!("positions must be [{t}]"),
            (_, 4) => format!("lengths must be [{b}]"),
            _ => "lengths must be [1], or a scalar".to_owned(),
        };
        return Err(scope.shape_error(name, &[queries.into(), given.into()], need));
    };
    Ok(View { layout, ..given.view })
}
