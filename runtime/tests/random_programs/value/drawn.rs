//! What programs draw.

use graphable::{
    Error, Result, Rng, Tensor, kernel,
    ops::{self, SampleConfig},
};

use super::{Env, Val, nonsense};
use crate::{generate::ROWS, program::Instr};

/// A way to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Uniform,
    Normal,
    Exponential,
    Gumbel,
    Randint,
    Bernoulli,
    Dropout,
    Randperm,
    /// A kernel with two numbers for each element, from one generator or from two: of matrices, one of indices.
    Noisy,
    /// A kernel without a tensor.
    Signs,
    /// The state of the generator.
    State,
    /// Numbers that the next call draws once more.
    Again,
    /// A token of each row.
    Sample,
}

impl Kind {
    pub(crate) const ALL: [Self; 13] = [
        Self::Uniform,
        Self::Normal,
        Self::Exponential,
        Self::Gumbel,
        Self::Randint,
        Self::Bernoulli,
        Self::Dropout,
        Self::Randperm,
        Self::Noisy,
        Self::Signs,
        Self::State,
        Self::Again,
        Self::Sample,
    ];
}

#[kernel]
fn noisy(x: f32, r: Random, s: Random) -> f32 {
    x + r.uniform() - 0.25 * s.normal()
}

#[kernel(index)]
fn noisy_at(x: View<f32, 2>, r: Random, s: Random, [i, j]: [i32; 2]) -> f32 {
    x.at([i, j]) + r.uniform() - 0.25 * s.normal()
}

#[kernel]
fn signs(r: Random, #[key] size: f32) -> f32 {
    if r.bits() >> 31 == 1 { size } else { -size }
}

impl<'s> Env<'_, 's, '_> {
    pub(super) fn drawn(&self, i: &Instr) -> Result<Val<'s>> {
        let kind = i.nums.first().and_then(|n| Kind::ALL.get(*n)).copied();
        let kind = kind.ok_or_else(|| nonsense(format!("no way to draw {:?}", i.nums)))?;
        let (rng, like) = (self.generator(i, 1)?, self.val(i, 0)?);
        // What the shrinker has made of a program may not fit any more.
        let second = if kind == Kind::Noisy { self.generator(i, 2)? } else { rng };
        drawn(kind, [rng, second], like).map_err(|error| match error {
            Error::Shape { .. } => nonsense(error.to_string()),
            error => error,
        })
    }
}

fn drawn<'s>(kind: Kind, [rng, second]: [&Rng; 2], like: &Val<'s>) -> Result<Val<'s>> {
    let (scope, shape) = (like.scope(), like.shape());
    let float = || if let Val::F(t) = like { Ok(t) } else { Err(nonsense("not f32".into())) };
    let value: Tensor<'s, f32> = match kind {
        Kind::Uniform => ops::uniform(rng, scope, shape, -0.5..1.0)?,
        Kind::Normal => ops::normal(rng, scope, shape, 0.125, 0.5)?,
        Kind::Exponential => ops::exponential(rng, scope, shape, 4.0)?,
        Kind::Gumbel => ops::gumbel(rng, scope, shape)?,
        Kind::Randint => return Ok(Val::U(ops::randint(rng, scope, shape, 0..ROWS as u32)?)),
        Kind::Bernoulli => ops::bernoulli(rng, &ops::sigmoid(float()?)?)?,
        Kind::Dropout => ops::dropout(rng, float()?, 0.25)?,
        Kind::Randperm => return Ok(Val::U(ops::randperm(rng, scope, ROWS)?)),
        Kind::Noisy if shape.len() == 2 => noisy_at(float()?, rng, second, shape)?,
        Kind::Noisy => noisy(float()?, rng, second)?,
        Kind::Signs => signs(scope, rng, 0.5, shape)?,
        Kind::State => return Ok(Val::U(ops::rng_state(rng, scope)?)),
        Kind::Again => {
            let before = ops::rng_state(rng, scope)?;
            let value = ops::uniform(rng, scope, shape, 0.0..1.0)?;
            ops::set_rng_state(rng, &before)?;
            value
        }
        Kind::Sample => {
            let config = SampleConfig::new().temperature(0.75).top_k(3u32).top_p(0.875);
            return Ok(Val::U(ops::sample(rng, float()?, config)?));
        }
    };
    Ok(Val::F(value))
}
