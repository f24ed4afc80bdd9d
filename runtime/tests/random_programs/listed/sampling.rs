//! The parts of sampling: penalties and filters of logits, the choice, and logarithms of probabilities.

use graphable::{
    Element, Result, Tensor,
    ops::{self, SampleConfig},
};

use super::{Given, table};

/// A value for each row.
fn of_rows<'s, T: Element>(x: &Tensor<'s, f32>, value: T) -> Result<Tensor<'s, T>> {
    let shape = x.shape().to_vec();
    ops::full(x.scope(), &shape[..shape.len().saturating_sub(1)], value)
}

fn everywhere<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, bool>> {
    ops::full(x.scope(), x.shape(), true)
}

/// Without the infinities of what a filter took away.
fn finite<'s>(x: Result<Tensor<'s, f32>>) -> Result<Tensor<'s, f32>> {
    ops::maximum(&x?, -10.0)
}

fn part(g: &Given<'_, '_>) -> f32 {
    0.125 + 0.25 * g.n(0, 4) as f32
}

table! {
    apply_repetition_penalty: Smooth, rows, |g| ops::apply_repetition_penalty(g.f(0)?, &everywhere(g.f(0)?)?, 1.5);
    apply_presence_penalty: Smooth, rows, |g| ops::apply_presence_penalty(g.f(0)?, &everywhere(g.f(0)?)?, 0.5);
    apply_temperature: Smooth, rows, |g| ops::apply_temperature(&ops::tanh(g.f(0)?)?, &of_rows(g.f(0)?, 0.5f32)?);
    apply_top_k: Steep, rows, |g| finite(ops::apply_top_k(g.f(0)?, 1 + g.n(0, 4) as u32));
    apply_top_p: SteepSum, rows, |g| finite(ops::apply_top_p(g.f(0)?, part(g)));
    apply_min_p: SteepSum, rows, |g| finite(ops::apply_min_p(g.f(0)?, part(g)));
    choose_token: SteepSum, choices, |g| ops::choose_token(g.f(0)?, &of_rows(g.f(0)?, part(g))?);
    sample_with: SteepSum, choices, |g| {
        let config = SampleConfig::new().temperature(0.75).top_k(3u32).top_p(0.875);
        ops::sample_with(g.f(0)?, config, &of_rows(g.f(0)?, part(g))?)
    };
    token_log_probs: Sum, row_results, |g| ops::token_log_probs(g.f(0)?, &of_rows(g.f(0)?, 0u32)?);
    top_log_probs: Sum, rows, |g| {
        ops::top_log_probs(g.f(0)?, g.f(0)?.dim(g.axis).get()?).map(|(values, _)| values)
    };
}
