//! A bounded number of buffers between host and device, each used again after the work that uses it.
//!
//! The host may run ahead of the device, but only up to a limit: when all buffers are in use, it waits for
//! the oldest one. Nothing is freed where a buffer is returned, which may be on any thread waiting for
//! something else, because freeing pinned memory may wait for the device. The backend frees the surplus
//! later.

use std::collections::VecDeque;

use crate::Result;

/// Memory of some size.
pub(super) trait Buffer {
    fn len(&self) -> usize;
}

/// A point in the device's work, after which a buffer is free.
pub(super) trait Point {
    /// # Errors
    /// Returns failures on the device before it.
    fn is_reached(&self) -> Result<bool>;
}

/// The limits on the number of buffers and on their bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) buffers: usize,
    pub(super) bytes: usize,
}

/// The way to get a buffer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken<B, P> {
    /// One that nothing uses any more.
    Free(B, P),
    /// There is room: make one.
    Make,
    /// Too many are in use. Wait for this one, the oldest; then use it, if [it fits](fits), or free it and
    /// try again.
    Wait(B, P),
}

/// The buffers that nobody holds, the oldest first.
#[derive(Debug)]
pub(super) struct Ring<B, P> {
    list: VecDeque<(B, P)>,
    bytes: usize,
    limits: Limits,
}

/// Returns whether a buffer of `len` bytes is suitable for `bytes`: not a much larger one, which others need.
pub(super) fn fits(len: usize, bytes: usize) -> bool {
    len >= bytes && len <= bytes.max(4096).saturating_mul(4)
}

impl<B: Buffer, P: Point> Ring<B, P> {
    pub(super) fn new(limits: Limits) -> Self {
        Self { list: VecDeque::new(), bytes: 0, limits }
    }

    /// A buffer for `bytes` bytes.
    ///
    /// # Errors
    /// Returns failures on the device.
    pub(super) fn take(&mut self, bytes: usize) -> Result<Taken<B, P>> {
        let mut best: Option<usize> = None;
        for (at, (buffer, point)) in self.list.iter().enumerate() {
            let better = best.is_none_or(|best| buffer.len() < self.list[best].0.len());
            if fits(buffer.len(), bytes) && better && point.is_reached()? {
                best = Some(at);
            }
        }
        if let Some((buffer, point)) = best.and_then(|at| self.remove(at)) {
            return Ok(Taken::Free(buffer, point));
        }
        let room = self.list.len() < self.limits.buffers && self.bytes + bytes <= self.limits.bytes;
        match room {
            true => Ok(Taken::Make),
            // None there: a buffer that is larger than all may be.
            false => Ok(self.remove(0).map_or(Taken::Make, |(buffer, point)| Taken::Wait(buffer, point))),
        }
    }

    /// Takes a buffer back, in use until `point`.
    pub(super) fn put(&mut self, buffer: B, point: P) {
        self.bytes += buffer.len();
        self.list.push_back((buffer, point));
    }

    /// A buffer beyond the limits that nothing uses any more, to be freed.
    pub(super) fn surplus(&mut self) -> Option<(B, P)> {
        if self.list.len() <= self.limits.buffers && self.bytes <= self.limits.bytes {
            return None;
        }
        // A failure there is reported to whoever waits for it.
        let at = self.list.iter().position(|(_, point)| point.is_reached().unwrap_or(false))?;
        self.remove(at)
    }

    fn remove(&mut self, at: usize) -> Option<(B, P)> {
        let (buffer, point) = self.list.remove(at)?;
        self.bytes -= buffer.len();
        Some((buffer, point))
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, rc::Rc};

    use super::*;

    impl Buffer for usize {
        fn len(&self) -> usize {
            *self
        }
    }

    /// A piece of work with its number, and how many pieces the device has done.
    #[derive(Clone, Debug)]
    struct Work(u32, Rc<Cell<u32>>);

    impl Point for Work {
        fn is_reached(&self) -> Result<bool> {
            Ok(self.1.get() > self.0)
        }
    }

    const LIMITS: Limits = Limits { buffers: 4, bytes: 64 << 10 };

    /// Sends `bytes` for piece of work `n`; returns how many buffers were made, and how often was waited.
    fn send(ring: &mut Ring<usize, Work>, bytes: usize, n: u32, done: &Rc<Cell<u32>>) -> (u32, u32) {
        let (mut made, mut waits) = (0, 0);
        let buffer = loop {
            match ring.take(bytes).unwrap() {
                Taken::Free(buffer, _) => break buffer,
                Taken::Make => {
                    made += 1;
                    break bytes;
                }
                Taken::Wait(buffer, point) => {
                    if !point.is_reached().unwrap() {
                        waits += 1;
                        done.set(point.0 + 1);
                    }
                    if fits(buffer, bytes) {
                        break buffer;
                    }
                }
            }
        };
        assert!(fits(buffer, bytes));
        ring.put(buffer, Work(n, Rc::clone(done)));
        (made, waits)
    }

    #[test]
    fn a_host_that_runs_ahead_waits_for_the_oldest() {
        let (mut ring, done) = (Ring::new(LIMITS), Rc::default());
        let (mut made, mut waits) = (0, 0);
        for n in 0..1000 {
            let (m, w) = send(&mut ring, 8192, n, &done);
            (made, waits) = (made + m, waits + w);
            assert!(done.get() + 4 > n, "no more than four are under way");
        }
        assert_eq!((made, waits), (4, 996));
    }

    #[test]
    fn bytes_are_bounded_too() {
        let (mut ring, done) = (Ring::new(LIMITS), Rc::default());
        let sent: Vec<_> = (0..10).map(|n| send(&mut ring, 30 << 10, n, &done)).collect();
        assert_eq!(sent[..3], [(1, 0), (1, 0), (0, 1)]);
        assert_eq!(ring.bytes, 60 << 10);
    }

    #[test]
    fn a_device_that_keeps_up_is_never_waited_for() {
        let (mut ring, done) = (Ring::new(LIMITS), Rc::default());
        for n in 0..100 {
            assert_eq!(send(&mut ring, 8192, n, &done), (u32::from(n == 0), 0));
            done.set(n + 1);
        }
    }

    #[test]
    fn other_sizes_take_the_place_of_what_is_not_used() {
        let (mut ring, done) = (Ring::new(LIMITS), Rc::default());
        for n in 0..4 {
            send(&mut ring, 4096, n, &done);
        }
        done.set(4);
        // The small ones are in the way, and free.
        assert_eq!(send(&mut ring, 40 << 10, 4, &done), (1, 0));
        assert!(ring.list.len() <= 4 && ring.bytes <= LIMITS.bytes);
    }

    #[test]
    fn what_comes_back_beyond_the_limits_goes_when_it_is_free() {
        let (mut ring, done) = (Ring::new(LIMITS), Rc::<Cell<u32>>::default());
        // Larger than everything together, as a read may be.
        assert!(matches!(ring.take(1 << 20).unwrap(), Taken::Make));
        ring.put(1 << 20, Work(0, Rc::clone(&done)));
        ring.put(4096, Work(1, Rc::clone(&done)));
        assert!(ring.surplus().is_none(), "in use");
        done.set(1);
        assert_eq!(ring.surplus().map(|(buffer, _)| buffer), Some(1 << 20));
        assert!(ring.surplus().is_none());
        assert_eq!(ring.list.len(), 1);
    }
}
