//! Medians.

use std::time::Instant;

use graphable::Result;

/// The middle one.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Microseconds of host time and of total time per call: `rounds` times `n` calls that nothing waits for,
/// then `wait`. Medians over the rounds.
pub(crate) fn per_call(
    rounds: usize,
    n: usize,
    mut call: impl FnMut(usize) -> Result<()>,
    mut wait: impl FnMut() -> Result<()>,
) -> Result<(f64, f64)> {
    let (mut host, mut total) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        wait()?;
        let start = Instant::now();
        for i in 0..n {
            call(i)?;
        }
        host.push(start.elapsed().as_secs_f64() * 1e6 / n as f64);
        wait()?;
        total.push(start.elapsed().as_secs_f64() * 1e6 / n as f64);
    }
    Ok((median(host), median(total)))
}
