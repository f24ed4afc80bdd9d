//! Runtimes and medians for figures.

use std::time::{Duration, Instant};

use graphable::{CudaOptions, Device, Error, Passes, Result, Runtime};

/// Returns a runtime for figures of the device's time: the host spins through waits of any length, as with PyTorch by
/// default. With our default it sleeps in waits of more than 2 ms, and so sees their end some 50 us late.
pub(crate) fn runtime() -> Result<Runtime> {
    Runtime::new(Device::cuda_with(0, CudaOptions::default().spin(Duration::MAX)))
}

/// Returns [such a runtime](runtime) for graphs of many equal launches, each of which counts: passes would compute equal ones
/// once.
pub(crate) fn runtime_without_passes() -> Result<Runtime> {
    let rt = runtime()?;
    rt.set_passes(Passes::none());
    Ok(rt)
}

/// Checks that the newest recording has as many kernels as its time is divided by.
///
/// # Errors
/// [`Error::Argument`] if it has fewer: something computed several launches as one.
pub(crate) fn check_launches(rt: &Runtime, launches: u32) -> Result<()> {
    let tree = rt.tree();
    let kernels = tree.recordings.last().map_or(0, |recording| recording.kernels);
    if kernels < launches as usize {
        let reason = format!("{kernels} kernels were recorded for {launches} launches");
        return Err(Error::Argument { op: "bench", reason });
    }
    Ok(())
}

/// The middle one.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Microseconds a call, one entry a round: host time, and with the device's.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    host: Vec<f64>,
    total: Vec<f64>,
}

impl Rounds {
    /// One round: `n` calls that nothing waits for, then `wait`.
    pub(crate) fn measure(
        &mut self,
        n: usize,
        mut call: impl FnMut(usize) -> Result<()>,
        mut wait: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        wait()?;
        let start = Instant::now();
        for i in 0..n {
            call(i)?;
        }
        self.host.push(start.elapsed().as_secs_f64() * 1e6 / n as f64);
        wait()?;
        self.total.push(start.elapsed().as_secs_f64() * 1e6 / n as f64);
        Ok(())
    }

    /// Of host time and of total time.
    pub(crate) fn medians(self) -> (f64, f64) {
        (median(self.host), median(self.total))
    }
}

/// Microseconds of host time and of total time per call, medians over `rounds` rounds of `n` calls.
pub(crate) fn per_call(
    rounds: usize,
    n: usize,
    mut call: impl FnMut(usize) -> Result<()>,
    mut wait: impl FnMut() -> Result<()>,
) -> Result<(f64, f64)> {
    let mut all = Rounds::default();
    for _ in 0..rounds {
        all.measure(n, &mut call, &mut wait)?;
    }
    Ok(all.medians())
}
