//! The host's wait for the device: it spins first, and then sleeps between two looks.
//!
//! A thread that the driver wakes (`CU_EVENT_BLOCKING_SYNC`) costs least, but wakes late: on the virtual H200s of
//! docs/BENCHMARKS.md 30 us after a wait of 20 us, and 350 to 600 us after one of 10 ms. Looking again after a short sleep is
//! never further behind than that sleep, which therefore grows with the wait, up to a limit.

use std::{
    hint, thread,
    time::{Duration, Instant},
};

use super::{driver::Event, shared::Shared};
use crate::Result;

/// The part of a wait that the sleep after it may last: one in so many.
const PART: u32 = 64;
/// No sleep is longer, however long the wait is.
const LONGEST: Duration = Duration::from_micros(250);
/// No sleep is shorter: the system adds about 50 us to each.
const SHORTEST: Duration = Duration::from_micros(20);

/// Returns how long to sleep after having waited for so long, the first `spin` of which is spent spinning; `None` while it
/// lasts.
fn sleep_after(waited: Duration, spin: Duration) -> Option<Duration> {
    (waited >= spin).then(|| (waited / PART).clamp(SHORTEST, LONGEST))
}

impl Shared {
    /// Waits for the event, as [`CudaOptions::spin`](super::CudaOptions::spin) says.
    ///
    /// # Errors
    /// Returns failures on the device before it.
    pub(super) fn wait(&self, event: &Event) -> Result<()> {
        let begin = Instant::now();
        while !event.is_done()? {
            match sleep_after(begin.elapsed(), self.spin) {
                None => hint::spin_loop(),
                Some(pause) => thread::sleep(pause),
            }
        }
        Ok(())
    }

    /// Waits for everything on the stream, and only for that.
    ///
    /// # Errors
    /// Returns failures on the device.
    pub(super) fn wait_for_stream(&self) -> Result<()> {
        let event = Event::new(&self.context, false)?;
        event.record(&self.stream)?;
        self.wait(&event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPIN: Duration = Duration::from_millis(2);

    #[test]
    fn short_waits_spin() {
        for waited in [0, 1, 500, 1999] {
            assert_eq!(sleep_after(Duration::from_micros(waited), SPIN), None, "{waited} us");
            assert_eq!(sleep_after(Duration::from_micros(waited), Duration::MAX), None, "{waited} us");
        }
        assert_eq!(sleep_after(Duration::MAX, Duration::MAX), Some(LONGEST));
        assert_eq!(sleep_after(Duration::ZERO, Duration::ZERO), Some(SHORTEST));
    }

    #[test]
    fn sleeps_stay_a_small_part_of_the_wait() {
        let (mut waited, mut looks) = (SPIN, 0);
        while waited < Duration::from_millis(100) {
            let pause = sleep_after(waited, SPIN).unwrap();
            assert!(
                pause <= waited / PART && pause <= LONGEST && pause >= SHORTEST,
                "{pause:?} after {waited:?}"
            );
            waited += pause;
            looks += 1;
        }
        assert!(looks < 600, "{looks} looks in 100 ms");
    }
}
