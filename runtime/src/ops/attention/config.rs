//! The options of attention besides products and softmax.

use crate::{AsOperand, Element, Error, Param, Result, Scope, State, Tensor, tensor::Operand};

use super::operation::{AlibiKind, MaskKind, Variant};

/// The keys to which a query of [`attention`](super::attention) attends. `i` counts queries, `j` keys; there are `T` and
/// `S`.
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
    pub(super) fn kind(self) -> MaskKind {
        match self {
            Self::None => MaskKind::None,
            Self::Causal => MaskKind::Causal,
            Self::Lengths(_) => MaskKind::Lengths,
            Self::Positions(_) => MaskKind::Positions,
        }
    }
}

/// A tensor, parameter or state that an [`AttentionConfig`] refers to.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum AttentionInput<'a, 's, T: Element> {
    /// A tensor.
    Tensor(&'a Tensor<'s, T>),
    /// A parameter.
    Param(&'a Param<T>),
    /// State.
    State(&'a State<T>),
}

impl<'a, 's, T: Element> From<&'a Tensor<'s, T>> for AttentionInput<'a, 's, T> {
    fn from(x: &'a Tensor<'s, T>) -> Self {
        Self::Tensor(x)
    }
}

impl<'a, T: Element> From<&'a Param<T>> for AttentionInput<'a, '_, T> {
    fn from(x: &'a Param<T>) -> Self {
        Self::Param(x)
    }
}

impl<'a, T: Element> From<&'a State<T>> for AttentionInput<'a, '_, T> {
    fn from(x: &'a State<T>) -> Self {
        Self::State(x)
    }
}

impl<'s, T: Element> AttentionInput<'_, 's, T> {
    pub(super) fn operand(&self, op: &'static str, scope: Scope<'s>) -> Result<Operand> {
        match self {
            Self::Tensor(x) => x.operand(op, scope),
            Self::Param(x) => x.operand(op, scope),
            Self::State(x) => x.operand(op, scope),
        }
    }
}

/// The source of the slopes of ALiBi.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slopes<'a, 's> {
    None,
    Standard,
    Given(AttentionInput<'a, 's, f32>),
}

/// A mask with changes to the scores of [`attention`](super::attention). The score of query `i` of head `h` and key `j`,
/// before the softmax, is
///
/// ```text
/// cap(scale * q.k) + bias[b, h, i, j] - slopes[h] * |j - p|      cap(s) = soft_cap * tanh(s / soft_cap)
/// ```
///
/// for the keys that the mask and the window leave. The position `p` of a query is `positions[b, i]` with
/// [`AttentionMask::Positions`], `i` with [`AttentionMask::Lengths`], and `i + (S - T)` otherwise. Everything is computed in
/// f32.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// use ops::{AttentionConfig, AttentionMask};
///
/// let sinks = Param::new(&rt, &[1], &[0.0f32])?; // [heads]
/// # let step = rt.step()?;
/// let q = step.tensor(&[3, 1, 2], &[0.0f32; 6])?; // [T, heads, width]
/// let v = step.tensor(&[3, 1, 1], &[1.0f32, 3.0, 5.0])?;
/// // Each query attends to its own key and to the one before.
/// let config = AttentionConfig::new(AttentionMask::Causal).window(1, 0);
/// assert_eq!(step.read(&ops::attention(&q, &q, &v, config, 1.0)?)?, [1.0, 2.0, 4.0]);
/// // A sink takes as much weight as one more key, which adds nothing.
/// let y = ops::attention(&q, &q, &v, config.sinks(&sinks), 1.0)?;
/// # let y = step.read(&y)?;
/// # assert!((y[0] - 0.5).abs() < 1e-6 && (y[1] - 4.0 / 3.0).abs() < 1e-6);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AttentionConfig<'a, 's, T: Element> {
    pub(crate) mask: AttentionMask<'a, 's>,
    pub(crate) bias: Option<AttentionInput<'a, 's, T>>,
    pub(crate) slopes: Slopes<'a, 's>,
    pub(crate) window: Option<(u32, u32)>,
    pub(crate) soft_cap: Option<f32>,
    pub(crate) sinks: Option<AttentionInput<'a, 's, T>>,
}

impl<'a, 's, T: Element> From<AttentionMask<'a, 's>> for AttentionConfig<'a, 's, T> {
    fn from(mask: AttentionMask<'a, 's>) -> Self {
        Self::new(mask)
    }
}

impl<'a, 's, T: Element> AttentionConfig<'a, 's, T> {
    /// Creates a configuration of the mask alone.
    #[must_use]
    pub const fn new(mask: AttentionMask<'a, 's>) -> Self {
        Self { mask, bias: None, slopes: Slopes::None, window: None, soft_cap: None, sinks: None }
    }

    /// Adds a bias to the scores, after scale and soft cap: `[B, Hq, T, S]`, or what broadcasts to it (`[Hq, T, S]`,
    /// `[T, S]`, `[Hq, 1, S]`), as the floating-point `attn_mask` of PyTorch's `scaled_dot_product_attention`. An element of
    /// `-inf` hides a key; a query all of whose keys are hidden returns zeros, not NaN. Unlike under a mask, the hidden
    /// values are multiplied by a weight of 0, which does not erase a NaN.
    #[must_use]
    pub fn bias(self, bias: impl Into<AttentionInput<'a, 's, T>>) -> Self {
        Self { bias: Some(bias.into()), ..self }
    }

    /// Subtracts the distance of key and query, times a slope for each head, with the slopes of ALiBi (Press et al. 2022):
    /// `2^(-8(h+1)/Hq)`, and if `Hq` is not a power of two, those of the next lower power `n`, followed by every second one
    /// of `2n`.
    #[must_use]
    pub fn alibi(self) -> Self {
        Self { slopes: Slopes::Standard, ..self }
    }

    /// Adds a bias as [`alibi`](Self::alibi) does, with slopes `[Hq]` of your own.
    #[must_use]
    pub fn alibi_slopes(self, slopes: impl Into<AttentionInput<'a, 's, f32>>) -> Self {
        Self { slopes: Slopes::Given(slopes.into()), ..self }
    }

    /// Hides keys further than `left` before the position of the query and further than `right` after it, as `window_size`
    /// of FlashAttention. The sliding window of `n` keys of Mistral and Gemma is `window(n - 1, 0)` with a causal mask or
    /// positions. Keys outside of all windows never touch the result; most of those before the first and after the last window of
    /// neighbouring queries are not read.
    #[must_use]
    pub fn window(self, left: usize, right: usize) -> Self {
        let most = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self { window: Some((most(left), most(right))), ..self }
    }

    /// Bounds the scaled products softly: `cap * tanh(score / cap)`, before the bias (`attn_logit_softcapping` of Gemma 2).
    #[must_use]
    pub fn soft_cap(self, cap: f32) -> Self {
        Self { soft_cap: Some(cap), ..self }
    }

    /// Adds one more score for each head, `[Hq]`, to the softmax, whose weight goes to no value (the sinks of gpt-oss). It is
    /// neither scaled nor bounded.
    #[must_use]
    pub fn sinks(self, sinks: impl Into<AttentionInput<'a, 's, T>>) -> Self {
        Self { sinks: Some(sinks.into()), ..self }
    }

    /// Returns whether a score depends on the distance of key and query.
    pub(super) fn is_relative(&self) -> bool {
        self.window.is_some() || !matches!(self.slopes, Slopes::None)
    }

    pub(super) fn variant(&self, op: &'static str) -> Result<Variant> {
        if let Some(cap) = self.soft_cap
            && !(cap.is_finite() && cap > 0.0)
        {
            return Err(Error::Argument {
                op,
                reason: format!("the soft cap is {cap}; it must be a positive number"),
            });
        }
        Ok(Variant {
            bias: self.bias.is_some(),
            alibi: match self.slopes {
                Slopes::None => AlibiKind::None,
                Slopes::Standard => AlibiKind::Standard,
                Slopes::Given(_) => AlibiKind::Given,
            },
            window: self.window,
            soft_cap: self.soft_cap,
            sinks: self.sinks.is_some(),
        })
    }
}
