//! What operations mean that know sizes.

use graphable::{
    Dim, Error, Result, Tensor,
    ops::{self, AttentionMask},
};

use super::{Env, Val, factor};
use crate::program::{Code, Instr};

impl<'s> Env<'_, 's, '_> {
    fn dim(&self, i: &Instr, at: usize, axis: usize) -> Result<Dim<'s>> {
        Ok(each!(self.val(i, at)?, t => t.dim(axis)))
    }

    fn size(&self, i: &Instr, at: usize, axis: usize) -> Result<Tensor<'s, u32>> {
        each!(self.val(i, at)?, t => ops::size(t, axis))
    }

    pub(super) fn sizes(&self, i: &Instr) -> Result<Val<'s>> {
        let n = |at: usize| i.nums.get(at).copied().unwrap_or(0);
        let scope = self.val(i, 0)?.scope();
        Ok(match i.op {
            Code::SizeOf => Val::U(self.size(i, 0, n(0))?),
            Code::DivSize => {
                let size = ops::cast::<_, f32>(&self.size(i, 1, n(0))?)?;
                Val::F(ops::div(self.f(i, 0)?, &size)?)
            }
            Code::FullDim => Val::F(ops::full(scope, (self.dim(i, 0, n(1))?, n(2)), factor(n(0)))?),
            _ => Val::U(ops::arange(scope, self.dim(i, 0, n(0))?)?),
        })
    }

    /// Rows by places that are computed on the device.
    pub(super) fn rows(&self, i: &Instr) -> Result<Val<'s>> {
        let n = |at: usize| i.nums.get(at).copied().unwrap_or(0);
        let scope = self.val(i, 0)?.scope();
        let one = ops::full(scope, (), 1u32)?;
        let (axis, index) = match i.op {
            Code::Pick => (n(1), ops::full(scope, [1], n(0) as u32)?),
            Code::LastRow => (n(0), ops::reshape(&ops::sub(&self.size(i, 0, n(0))?, &one)?, [1])?),
            _ => {
                let last = ops::sub(&self.size(i, 0, n(0))?, &one)?;
                let back = ops::neg(&ops::arange::<u32>(scope, self.dim(i, 0, n(0))?)?)?;
                (n(0), ops::add(&back, &last)?)
            }
        };
        self.gathered(i, axis, &index)
    }

    /// What a number made of a size does; a padded one is none.
    #[allow(clippy::modulo_one, reason = "a computed size that is 1, whatever the size")]
    pub(super) fn number(&self, i: &Instr) -> Result<Tensor<'s, f32>> {
        let (x, axis, own) = (self.f(i, 0)?, i.nums[0], i.nums[1] == 1);
        if self.live.keys.first().is_some_and(|key| *key != i.nums[3] as u64) {
            return ops::neg(x);
        }
        if self.live.pretends && own {
            return Err(Error::PaddedSize { op: "a size", symbol: "B".into(), at: None });
        }
        match i.nums[2] {
            0 => ops::scale(x, 1.0 / x.dim(axis).get()? as f32),
            1 if x.dim(axis) > 3 => ops::neg(x),
            1 => ops::scale(x, 0.5),
            _ => ops::add(x, &ops::full(x.scope(), [x.dim(axis) % 1 + 1], 0.5f32)?),
        }
    }
}

/// The mean, or the sum, of everything along an axis, by masks that are true in the padding as well.
pub(super) fn all_mean<'s>(x: &Tensor<'s, f32>, axis: usize, way: usize) -> Result<Tensor<'s, f32>> {
    let scope = x.scope();
    let along: Vec<Dim<'s>> =
        (0..x.rank()).map(|a| if a == axis { x.dim(a) } else { Dim::from(1) }).collect();
    match way {
        0 => ops::masked_mean(x, &ops::full(scope, along, true)?, axis),
        1 => ops::masked_mean(x, &ops::ge(x, &ops::full(scope, (), -1e30f32)?)?, axis),
        2 => ops::masked_mean(x, &ops::full(scope, vec![1; x.rank()], true)?, axis),
        _ => ops::masked_sum(x, &ops::full(scope, along, true)?, axis),
    }
}

/// Attention of rows to each other; what they are told to see may lie in the padding, or nowhere.
pub(super) fn seen_keys<'s>(x: &Tensor<'s, f32>, way: usize, count: usize) -> Result<Tensor<'s, f32>> {
    let (scope, rows) = (x.scope(), ops::unsqueeze(x, 1)?);
    let attend = |mask: AttentionMask<'_, 's>| ops::attention(&rows, &rows, &rows, mask, 0.5);
    let seen = match way {
        0 => attend(AttentionMask::Lengths(&ops::full(scope, [1], count as u32)?))?,
        1 => attend(AttentionMask::Lengths(&ops::full(scope, [1], u32::MAX)?))?,
        2 => attend(AttentionMask::Positions(&ops::full(scope, [x.dim(0)], count as u32)?))?,
        _ => {
            let places = ops::arange_step::<u32>(scope, x.dim(0), count as f64, 1.0)?;
            attend(AttentionMask::Positions(&places))?
        }
    };
    ops::squeeze(&seen, 1)
}
