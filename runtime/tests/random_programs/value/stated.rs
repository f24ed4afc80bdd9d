//! Operations on states of certain shapes.

use graphable::{
    PinnedLog, Result, State, Tensor,
    ops::{self, AttentionMask, RopeConfig, RopeStyle},
};

use super::{Env, OwnedRef, Val, nonsense};
use crate::program::{Code, Instr};

impl<'s> Env<'_, 's, '_> {
    pub(super) fn stated(&self, i: &Instr) -> Result<Option<Val<'s>>> {
        match i.op {
            Code::Statistics => {
                let (x, mean, var) = (self.f(i, 0)?, self.state(i, 1)?, self.state(i, 2)?);
                let affine = |value: f32| ops::full(x.scope(), mean.shape(), value);
                let (weight, bias) = (affine(0.5)?, affine(0.25)?);
                let y = ops::batch_norm_training(x, mean, var, &weight, &bias, 0.25, 1e-1)?;
                Ok(Some(Val::F(y)))
            }
            Code::RopeScatter => {
                let (state, index, x) = (self.state(i, 0)?, self.u(i, 1)?, self.f(i, 2)?);
                let config = RopeConfig::new(100.0, RopeStyle::HalfSplit);
                ops::rope_scatter(state, index, &ops::unsqueeze(x, 1)?, index, config)?;
                Ok(None)
            }
            Code::MarkTokens => {
                ops::mark_tokens(self.marks(i, 0)?, self.u(i, 1)?)?;
                Ok(None)
            }
            Code::Append => {
                ops::append(self.log(i, 0)?, self.f(i, 1)?)?;
                Ok(None)
            }
            _ => self.of_cache(i, self.f(i, 0)?, self.state(i, 1)?).map(|y| Some(Val::F(y))),
        }
    }

    /// Attention of `[T, D]` to rows of a state.
    fn of_cache(&self, i: &Instr, x: &Tensor<'s, f32>, state: &State<f32>) -> Result<Tensor<'s, f32>> {
        let [start, rows] = i.nums[..] else { return Err(nonsense("no rows".into())) };
        let width = state.shape().last().copied().unwrap_or(1);
        let keys = ops::cache_view(state).narrow(0, start, rows)?.reshape([rows, 1, width])?;
        let q = ops::unsqueeze(x, 1)?;
        ops::squeeze(&ops::attention(&q, &keys, &keys, AttentionMask::None, 0.5)?, 1)
    }

    fn log(&self, i: &Instr, at: usize) -> Result<&PinnedLog<f32>> {
        let arg = i.args.get(at).copied().ok_or_else(|| nonsense(format!("no argument {at}")))?;
        match self.owned(arg)? {
            OwnedRef::Log(log) => Ok(log),
            other => Err(nonsense(format!("{other:?} is no log"))),
        }
    }

    fn marks(&self, i: &Instr, at: usize) -> Result<&State<bool>> {
        let arg = i.args.get(at).copied().ok_or_else(|| nonsense(format!("no argument {at}")))?;
        match self.owned(arg)? {
            OwnedRef::Marks(marks) => Ok(marks),
            other => Err(nonsense(format!("{other:?} has no marks"))),
        }
    }
}
