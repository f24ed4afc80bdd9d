//! Weights that can sleep, as the rest of the runtime uses them.

use super::{
    Memory,
    weights::{WeightArena, WeightUsage},
};
use crate::{
    Error, Result,
    backend::{Backend, SharedMemory},
};

impl Memory {
    /// From here on, weights are placed where they can sleep, or where they cannot.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`] if there are no addresses for them.
    pub(crate) fn let_weights_sleep(&mut self, backend: &mut dyn Backend, on: bool) -> Result<()> {
        if on && self.weights.is_none() {
            self.weights = Some(WeightArena::new(backend)?);
        }
        self.places_weights = on;
        Ok(())
    }

    /// Returns memory for a weight that can sleep, with whatever is there; `None` if weights are not to.
    ///
    /// # Errors
    /// Returns [`Error::Asleep`], and [`Error::OutOfMemory`].
    pub(crate) fn place_weight(
        &mut self,
        backend: &mut dyn Backend,
        bytes: u64,
    ) -> Result<Option<SharedMemory>> {
        match &mut self.weights {
            Some(weights) if self.places_weights => weights.place(backend, bytes).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns whether some weight sleeps, or holds nothing.
    #[inline]
    pub(crate) fn has_unusable_weights(&self) -> bool {
        self.weights.as_ref().is_some_and(WeightArena::has_unusable)
    }

    /// Rejects memory of a weight that sleeps, or whose contents were discarded.
    ///
    /// # Errors
    /// Returns [`Error::Asleep`] or [`Error::Discarded`].
    #[inline]
    pub(crate) fn check_weight(&self, op: &'static str, addr: u64) -> Result<()> {
        match &self.weights {
            Some(weights) if weights.has_unusable() => weights.check(op, addr),
            _ => Ok(()),
        }
    }

    /// Rejects a write to a weight that sleeps, and to a part of one whose contents were discarded.
    ///
    /// # Errors
    /// As [`check_weight`](Self::check_weight).
    pub(crate) fn check_weight_write(&self, op: &'static str, addr: u64, bytes: u64) -> Result<()> {
        match &self.weights {
            Some(weights) if weights.has_unusable() => weights.check_write(op, addr, bytes),
            _ => Ok(()),
        }
    }

    /// Notes that a weight was written.
    pub(crate) fn wrote_weight(&mut self, addr: u64, bytes: u64) {
        if let Some(weights) = &mut self.weights {
            weights.wrote(addr, bytes);
        }
    }

    /// Puts the weights to sleep. Called between steps. Returns the number of bytes that were given back.
    ///
    /// # Errors
    /// Returns [`Error::Config`] if none can sleep, and on a device that cannot give memory back; and errors of the device. The weights
    /// are awake then.
    pub(crate) fn sleep(&mut self, backend: &mut dyn Backend, saves: bool) -> Result<u64> {
        match &mut self.weights {
            Some(weights) => weights.sleep(backend, saves),
            None => Err(Error::Config {
                what: "Runtime::sleep".into(),
                reason:
                    "no weight can sleep; call `Runtime::weights_can_sleep(true)` before a model is loaded"
                        .into(),
            }),
        }
    }

    /// Wakes the weights. Called between steps. Returns the number of bytes that were taken.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`], and errors of the device; the weights are asleep then, and can be woken again.
    pub(crate) fn wake(&mut self, backend: &mut dyn Backend) -> Result<u64> {
        self.weights.as_mut().map_or(Ok(0), |weights| weights.wake(backend))
    }

    pub(crate) fn are_weights_asleep(&self) -> bool {
        self.weights.as_ref().is_some_and(WeightArena::is_asleep)
    }

    /// Returns the memory of weights that can sleep.
    pub(crate) fn weight_usage(&self) -> WeightUsage {
        self.weights.as_ref().map(WeightArena::usage).unwrap_or_default()
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::{
        fs::{self, File},
        io::{Read as _, Seek as _, SeekFrom},
    };

    use crate::{Device, Param, Runtime, Sleep};

    /// The number of these bytes that are in memory, by whole pages: `Documentation/admin-guide/mm/pagemap.rst` of Linux.
    fn resident(addr: u64, bytes: u64) -> u64 {
        let maps = fs::read_to_string("/proc/self/smaps").unwrap();
        let size = maps.lines().find_map(|line| line.strip_prefix("KernelPageSize:")).unwrap();
        let page = 1024 * size.trim().trim_end_matches(" kB").parse::<u64>().unwrap();
        let mut file = File::open("/proc/self/pagemap").unwrap();
        file.seek(SeekFrom::Start(addr / page * 8)).unwrap();
        let mut entries = vec![0; (bytes / page * 8) as usize];
        file.read_exact(&mut entries).unwrap();
        // Present, or swapped.
        let is_there = |entry: &&[u8]| entry[7] & 0xc0 != 0;
        entries.chunks_exact(8).filter(is_there).count() as u64 * page
    }

    #[test]
    fn a_sleeping_weight_takes_no_memory() {
        const BYTES: u64 = 4 << 20;
        let mut rt = Runtime::new(Device::cpu()).unwrap();
        rt.weights_can_sleep(true).unwrap();
        let values: Vec<f32> = (0..BYTES / 4).map(|i| i as f32).collect();
        let weight = Param::new(&rt, &[values.len()], &values).unwrap();
        rt.synchronize().unwrap();
        let addr = weight.owned.memory.addr();
        assert_eq!(resident(addr, BYTES), BYTES);
        rt.sleep(Sleep::Save).unwrap();
        rt.synchronize().unwrap();
        assert_eq!(resident(addr, BYTES), 0);
        rt.wake().unwrap();
        assert_eq!(weight.owned.memory.addr(), addr);
        let step = rt.step().unwrap();
        assert!(weight.read(&step).unwrap().wait().unwrap() == values);
        assert_eq!(resident(addr, BYTES), BYTES);
    }
}
