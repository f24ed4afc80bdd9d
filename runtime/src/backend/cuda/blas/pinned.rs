//! A bounded map whose entries recordings can pin.
//!
//! A pinned entry remains, and its user must not replace it: a recording made with a plan is compared with
//! its body, and recorded again, with the same plan. An entry that is not pinned is removed when it has not
//! been used for a long time.

use std::{hash::Hash, sync::Arc};

use rustc_hash::FxHashMap;

/// Keeps an entry unchanged while it lives. Recordings hold it, so it can be dropped on any thread.
#[derive(Clone, Debug)]
pub(crate) struct Pin(Arc<()>);

#[derive(Debug)]
struct Entry<V> {
    value: V,
    used: u64,
    pin: Pin,
}

impl<V> Entry<V> {
    fn is_pinned(&self) -> bool {
        Arc::strong_count(&self.pin.0) > 1
    }
}

/// At most `bound` entries that are not pinned, the most recently used.
#[derive(Debug)]
pub(super) struct PinnedMap<K, V> {
    entries: FxHashMap<K, Entry<V>>,
    bound: usize,
    /// Entries that were dropped because there were too many.
    evicted: u64,
    /// At that many entries the next sweep: an insertion costs a constant share of one.
    sweep_at: usize,
    clock: u64,
}

impl<K: Copy + Eq + Hash, V> PinnedMap<K, V> {
    pub(super) fn new(bound: usize) -> Self {
        Self { entries: FxHashMap::default(), bound, evicted: 0, sweep_at: bound, clock: 0 }
    }

    /// The value of `key`, which counts as a use.
    pub(super) fn get(&mut self, key: &K) -> Option<&mut V> {
        self.clock += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.clock;
        Some(&mut entry.value)
    }

    /// Adds or replaces a value; pins of `key` stay.
    pub(super) fn insert(&mut self, key: K, value: V) {
        self.clock += 1;
        if let Some(entry) = self.entries.get_mut(&key) {
            (entry.value, entry.used) = (value, self.clock);
            return;
        }
        if self.entries.len() >= self.sweep_at {
            self.sweep();
        }
        self.entries.insert(key, Entry { value, used: self.clock, pin: Pin(Arc::default()) });
    }

    /// Keeps the entry of `key` while the pin lives.
    pub(super) fn pin(&self, key: &K) -> Option<Pin> {
        self.entries.get(key).map(|entry| entry.pin.clone())
    }

    /// Returns whether a recording needs the entry unchanged.
    pub(super) fn is_pinned(&self, key: &K) -> bool {
        self.entries.get(key).is_some_and(Entry::is_pinned)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the number of entries that recordings need.
    pub(super) fn pinned(&self) -> usize {
        self.entries.values().filter(|entry| entry.is_pinned()).count()
    }

    /// Returns how many entries were dropped because there were too many.
    pub(super) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Drops the entries that no recording needs.
    pub(super) fn clear(&mut self) {
        self.entries.retain(|_, entry| entry.is_pinned());
        self.sweep_at = self.entries.len() + self.bound.div_ceil(2).max(1);
    }

    /// Drops the older half of the entries that are not pinned.
    fn sweep(&mut self) {
        let mut ages: Vec<u64> =
            self.entries.values().filter(|entry| !entry.is_pinned()).map(|entry| entry.used).collect();
        let spared = (self.bound / 2).max(1);
        if ages.len() > spared {
            let cut = ages.len() - spared;
            // Uses are numbered: no two are equal.
            let (_, oldest_kept, _) = ages.select_nth_unstable(cut);
            let (oldest_kept, before) = (*oldest_kept, self.entries.len());
            self.entries.retain(|_, entry| entry.is_pinned() || entry.used >= oldest_kept);
            self.evicted += (before - self.entries.len()) as u64;
        }
        self.sweep_at = self.entries.len() + self.bound.div_ceil(2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_long_goes() {
        let mut map = PinnedMap::new(8);
        for key in 0..100_000u32 {
            map.insert(key, key * 2);
            assert_eq!(map.get(&7).copied(), (key >= 7).then_some(14), "used at each step");
            assert!(map.len() <= 8, "{} entries", map.len());
        }
        assert_eq!(map.get(&99_999).copied(), Some(199_998));
        assert!(map.get(&500).is_none());
        assert_eq!(map.evicted() as usize, 100_000 - map.len());
    }

    #[test]
    fn clearing_leaves_what_is_pinned() {
        let mut map = PinnedMap::new(4);
        (0..4).for_each(|key| map.insert(key, key));
        let pin = map.pin(&2);
        map.clear();
        assert_eq!((map.len(), map.pinned(), map.evicted()), (1, 1, 0));
        assert_eq!((map.get(&2).copied(), map.get(&3)), (Some(2), None));
        (10..100).for_each(|key| map.insert(key, key));
        assert!(map.len() <= 5 && map.get(&2).is_some() && map.evicted() > 80, "{}", map.len());
        drop(pin);
        map.clear();
        assert_eq!(map.len(), 0);
    }

    #[test]
    fn what_is_pinned_stays_and_the_rest_is_bounded() {
        let mut map = PinnedMap::new(8);
        let mut pins = Vec::new();
        for key in 0..10_000u32 {
            map.insert(key, key);
            if key % 100 == 0 {
                pins.push(map.pin(&key).unwrap());
            }
        }
        for key in (0..10_000).step_by(100) {
            assert_eq!(map.get(&key).copied(), Some(key));
            assert!(map.is_pinned(&key));
        }
        assert!(map.len() <= pins.len() + 8, "{}", map.len());
        drop(pins);
        assert!(!map.is_pinned(&0));
        for key in 10_000..10_200 {
            map.insert(key, key);
        }
        assert!(map.len() <= 8, "{}", map.len());
    }

    #[test]
    fn pins_hold_an_entry_and_not_its_value() {
        let mut map = PinnedMap::new(2);
        map.insert('a', 1);
        let pin = map.pin(&'a').unwrap();
        map.insert('a', 2);
        assert!(map.is_pinned(&'a'));
        assert_eq!(map.get(&'a').copied(), Some(2));
        drop(pin);
        assert!(!map.is_pinned(&'a'));
        assert!(map.pin(&'b').is_none());
    }
}
