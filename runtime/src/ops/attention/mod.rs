//! Scaled-dot-product attention.

use smallvec::SmallVec;

use self::{
    config::Slopes,
    operation::{Attention, MaskKind},
};
use super::{
    check::{Shape, lifted, meet, refuse},
    launch::{launch, own},
};
use crate::{
    AsOperand, Error, Float, Result, Scope, Tensor,
    backend::{Op, View},
    tensor::Operand,
    value::layout::PaddedDims,
};

mod config;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod operation;

pub(crate) use config::Slopes as AttentionSlopes;
pub use config::{AttentionConfig, AttentionInput, AttentionMask};

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

/// Computes `softmax(scale * q k^T) v` for each head, with softmax in f32.
///
/// `q` is `[B, T, Hq, D]`, `k` `[B, S, Hkv, D]`, `v` `[B, S, Hkv, Dv]`, and the result `[B, T, Hq, Dv]`; `B`
/// can be omitted in all of them. `Hq` is a multiple of `Hkv`: query head `h` uses key head `h / (Hq / Hkv)`.
/// The result of a query that attends to no key is zeros. Keys and values may be [`State`](crate::State); use
/// a [`cache_view`](super::cache_view) for a part or a different shape of one.
///
/// `config` is an [`AttentionMask`], or an [`AttentionConfig`] with one: a bias, ALiBi, a window, a soft cap and sinks, in
/// any combination. The reference is PyTorch's `scaled_dot_product_attention` (its causal mask counts from the first key).
///
/// Padding of `B` and `T` propagates. A padded `S` is rejected without a mask, and with
/// [`AttentionMask::Causal`] unless queries and keys are padded by the same symbol. With lengths or positions
/// it is allowed: queries never attend to keys in the padding, whatever the lengths or positions are. A bias is padded as
/// queries and keys are, or repeated. Without a mask, a window or ALiBi need queries that are not padded.
///
/// On a GPU, heads may have up to 1024 elements. Those of 16 to 256, in multiples of 16, use tensor cores for f16 and bf16
/// if there are more than 8 queries. With up to 8, heads of 16 to 128 elements, in multiples of 8, have fast kernels,
/// on tensor cores for f16 and bf16, if each head is contiguous and begins at a multiple of 16 bytes. All other heads take a slower
/// kernel.
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
/// Returns [`Error::Shape`]; [`Error::Argument`] if `scale` is not finite, a soft cap is not a positive number, or heads are
/// too large for a GPU; [`Error::PaddedMix`].
pub fn attention<'a, 's: 'a, T: Float>(
    q: &Tensor<'s, T>,
    k: &(impl AsOperand<'s, T> + ?Sized),
    v: &(impl AsOperand<'s, T> + ?Sized),
    config: impl Into<AttentionConfig<'a, 's, T>>,
    scale: f32,
) -> Result<Tensor<'s, T>> {
    let (scope, config) = (q.scope(), config.into());
    let (q, k, v) = (own(NAME, q)?, k.operand(NAME, scope)?, v.operand(NAME, scope)?);
    if !scale.is_finite() {
        return Err(Error::Argument { op: NAME, reason: format!("scale {scale}; it must be finite") });
    }
    let op = Op::from(Attention { mask: config.mask.kind(), scale, variant: config.variant(NAME)? });
    check_ranks(NAME, scope, [&q, &k, &v])?;
    let rank = q.view.layout.rank();
    let time = rank - 3;
    let all = [q, k, v];
    let (queries, keys, values) = (heads(NAME, scope, q)?, heads(NAME, scope, k)?, heads(NAME, scope, v)?);

    let mut batch = meet(NAME, scope, 0, queries.batch, keys.batch)?;
    batch = meet(NAME, scope, 0, batch, values.batch)?;
    let seen = meet(NAME, scope, time, keys.rows, values.rows)?;
    check_shapes(NAME, scope, &all)?;
    let mut padding = Padding { batch, rows: queries.rows, seen };
    let mut inputs: SmallVec<[View; 8]> = SmallVec::from_slice(&[queries.view, keys.view, values.view]);
    inputs.extend(limits(scope, config.mask, &all[0], &mut padding)?);
    if config.is_relative() && matches!(config.mask, AttentionMask::None) {
        // Positions count from the last query, which is real only without padding.
        refuse(NAME, scope, PaddedDims::NONE.with(time, padding.rows), [time])?;
    }
    inputs.extend(added(scope, &config, &all, padding)?);
    if matches!(config.mask, AttentionMask::Lengths(_) | AttentionMask::Positions(_)) {
        inputs.extend(seen.and_then(|symbol| scope.real_count(symbol)));
    }

    let mut shape: Shape = q.view.layout.shape().into();
    shape[rank - 1] = values.view.layout.shape()[3];
    let marks = if rank == 4 { PaddedDims::NONE.with(0, padding.batch) } else { PaddedDims::NONE }
        .with(time, padding.rows);
    let out = scope.empty::<T>(&op, &shape, marks)?;
    let layout = if rank == 3 { lifted(&out.raw.layout)? } else { out.raw.layout };
    launch(scope, op, &inputs, &[View { layout, ..out.raw.view() }])?;
    Ok(out)
}

const NAME: &str = "attention";

/// The symbols that pad the dimensions of the scores.
#[derive(Clone, Copy)]
struct Padding {
    batch: Option<u8>,
    /// Of the queries.
    rows: Option<u8>,
    /// Of the keys.
    seen: Option<u8>,
}

/// Returns lengths or positions, and refuses padding that the mask does not hide.
fn limits(
    scope: Scope<'_>,
    mask: AttentionMask<'_, '_>,
    q: &Operand,
    padding: &mut Padding,
) -> Result<Option<View>> {
    let (rank, time) = (q.view.layout.rank(), q.view.layout.rank() - 3);
    let Padding { batch, rows, seen } = padding;
    let given = match mask {
        AttentionMask::None => {
            refuse(NAME, scope, PaddedDims::NONE.with(time, *seen), [time])?;
            return Ok(None);
        }
        // The mask counts from the last query and key, which are real only together.
        AttentionMask::Causal => {
            if seen != rows {
                refuse(NAME, scope, PaddedDims::NONE.with(time, seen.or(*rows)), [time])?;
            }
            return Ok(None);
        }
        AttentionMask::Lengths(given) | AttentionMask::Positions(given) => given.operand(NAME, scope)?,
    };
    if rank == 4 {
        *batch = meet(NAME, scope, 0, *batch, given.marks.get(0))?;
    }
    match mask {
        AttentionMask::Positions(_) => *rows = meet(NAME, scope, time, *rows, given.marks.get(time))?,
        // One length for all queries.
        _ if rank == 3 => refuse(NAME, scope, given.marks, [0])?,
        _ => {}
    }
    mask_view(NAME, scope, mask, &given, q).map(Some)
}

/// Returns the bias as `[B, Hq, T, S]`, and slopes and sinks as `[Hq]`.
fn added<'s, T: Float>(
    scope: Scope<'s>,
    config: &AttentionConfig<'_, 's, T>,
    [q, k, _]: &[Operand; 3],
    padding: Padding,
) -> Result<SmallVec<[View; 3]>> {
    let mut views = SmallVec::new();
    let rank = q.view.layout.rank();
    let [batch, times, heads] = match *q.view.layout.shape() {
        [b, t, h, _] => [b, t, h],
        ref shape => [1, shape[0], shape[1]],
    };
    if let Some(bias) = config.bias {
        let given = bias.operand(NAME, scope)?;
        let scores = [batch, heads, times, k.view.layout.shape()[rank - 3]];
        let symbols = [padding.batch, None, padding.rows, padding.seen];
        views.push(bias_view(scope, q, &given, scores, symbols)?);
    }
    if let Slopes::Given(slopes) = config.slopes {
        views.push(of_heads(scope, q, slopes.operand(NAME, scope)?, heads, "slopes")?);
    }
    if let Some(sinks) = config.sinks {
        views.push(of_heads(scope, q, sinks.operand(NAME, scope)?, heads, "sinks")?);
    }
    Ok(views)
}

/// A bias repeated to the shape of the scores, whose padding it shares where it is not repeated.
fn bias_view(
    scope: Scope<'_>,
    q: &Operand,
    given: &Operand,
    scores: [usize; 4],
    symbols: [Option<u8>; 4],
) -> Result<View> {
    let layout = given.view.layout;
    let without = 4 - q.view.layout.rank();
    if layout.rank() + without <= 4 {
        for (axis, &n) in layout.shape().iter().enumerate() {
            let (own, of_scores) = (given.marks.get(axis), symbols[axis + 4 - layout.rank()]);
            if n != 1 || own.is_some() {
                meet(NAME, scope, axis, of_scores, own)?;
            }
        }
        if let Some(layout) = layout.broadcast_to(&scores) {
            return Ok(View { layout, ..given.view });
        }
    }
    let reason = format!(
        "a bias must broadcast to {:?}: its sizes, aligned at the last dimension, must be equal or 1",
        &scores[without..]
    );
    Err(scope.shape_error(NAME, &[q.into(), given.into()], reason))
}

/// A number for each head.
fn of_heads(scope: Scope<'_>, q: &Operand, given: Operand, heads: usize, what: &str) -> Result<View> {
    if given.view.layout.shape() != [heads] {
        let reason = format!("{what} must be [{heads}], one for each query head");
        return Err(scope.shape_error(NAME, &[q.into(), (&given).into()], reason));
    }
    refuse(NAME, scope, given.marks, [0])?;
    Ok(given.view)
}

fn check_ranks(name: &'static str, scope: Scope<'_>, operands: [&Operand; 3]) -> Result<()> {
    let ranks = operands.map(|operand| operand.view.layout.rank());
    if matches!(ranks, [3, 3, 3] | [4, 4, 4]) {
        return Ok(());
    }
    let reason = "queries, keys and values must all be `[B, T, H, D]`, or all `[T, H, D]`";
    Err(scope.shape_error(name, &operands.map(Into::into), reason))
}

/// Checks operands of the same rank, none of whose padding meets anything else.
fn check_shapes(name: &'static str, scope: Scope<'_>, operands: &[Operand; 3]) -> Result<()> {
    let shapes = operands.each_ref().map(|operand| operand.view.layout.shape());
    let wrong = |reason: String| Err(scope.shape_error(name, &operands.each_ref().map(Into::into), reason));
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
