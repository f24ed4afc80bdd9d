//! Everything is recorded before serving: one call for every combination of bucket sizes.

use super::{Function, Synthetic};
use crate::{Error, Result, Runtime, Step, mode::Mode};

impl Function {
    /// Runs `call` for every combination of bucket sizes, largest first, until nothing new is recorded.
    /// State that the calls write is put back at the end.
    ///
    /// # Errors
    /// [`Error::Config`] when the function has inputs whose size is not known from buckets; what the
    /// calls say.
    pub fn capture_all(
        &self,
        rt: &mut Runtime,
        mut call: impl FnMut(&Step<'_>, &Synthetic<'_>) -> Result<()>,
        mut progress: impl FnMut(CaptureProgress<'_>),
    ) -> Result<()> {
        if self.options.mode == Mode::None {
            return Ok(());
        }
        let combinations = self.combinations()?;
        let total = combinations.len();
        rt.core.get_mut().begin_saving();
        let mut outcome = Ok(());
        'all: for (done, sizes) in combinations.iter().enumerate() {
            progress(CaptureProgress { done, total, sizes, symbols: self.spec.symbols });
            let synthetic = Synthetic { function: self, sizes };
            // Warm up, record, and once more when results were placed better meanwhile.
            for _pass in 0..4 {
                let before = rt.stats();
                outcome = rt.step().and_then(|step| call(&step, &synthetic));
                if outcome.is_err() {
                    break 'all;
                }
                let after = rt.stats();
                if (after.warmups, after.recordings) == (before.warmups, before.recordings) {
                    break;
                }
            }
        }
        let restored = rt.core.get_mut().end_saving();
        outcome.and(restored)?;
        progress(CaptureProgress { done: total, total, sizes: &[], symbols: self.spec.symbols });
        rt.synchronize()
    }

    fn combinations(&self) -> Result<Vec<Vec<usize>>> {
        let mut all: Vec<Vec<usize>> = vec![Vec::new()];
        for (symbol, schedule) in self.spec.symbols.iter().zip(&self.schedules) {
            let Some(schedule) = schedule else {
                return Err(Error::Config {
                    what: format!("`{}`", self.spec.name),
                    why: format!(
                        "`capture_all` needs sizes of {symbol}: `.bucket(\"{symbol}\", Schedule::default())`"
                    ),
                });
            };
            all = schedule
                .sizes()
                .iter()
                .flat_map(|&size| {
                    all.iter().map(move |rest| {
                        let mut one = rest.clone();
                        one.push(size);
                        one
                    })
                })
                .collect();
        }
        all.sort_by_key(|sizes| std::cmp::Reverse(sizes.iter().product::<usize>()));
        Ok(all)
    }
}

/// How far `capture_all` is.
#[derive(Clone, Copy, Debug)]
pub struct CaptureProgress<'a> {
    /// Combinations of sizes that are captured.
    pub done: usize,
    /// All of them.
    pub total: usize,
    /// The sizes now at work, one per symbol; empty at the end.
    pub sizes: &'a [usize],
    /// Names of the symbols.
    pub symbols: &'static [&'static str],
}
