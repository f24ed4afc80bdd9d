//! A bounded cache that admits a key only after repeated use.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// The number of values, and the required uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Uses of a key before something is made for it.
    pub(super) after: u32,
    /// Things that are kept.
    pub(super) kept: usize,
    /// Keys that are counted.
    pub(super) known: usize,
    /// A thing makes room for another's when so many uses of any keys passed it by.
    pub(super) idle: u64,
}

/// The action for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// There is something: [`UsageGatedCache::get`].
    Made(usize),
    /// The value should be made now, and passed to [`UsageGatedCache::put`], or [`UsageGatedCache::refuse`]
    /// called.
    Make,
    /// There is nothing, and nothing is to be made.
    Plain,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Counted(u32),
    Made(usize),
    Refused,
}

#[derive(Debug)]
struct Thing<K, T> {
    key: K,
    used: u64,
    thing: T,
}

/// Values for the keys that are used most.
#[derive(Debug)]
pub(super) struct UsageGatedCache<K, T> {
    limits: Limits,
    states: FxHashMap<K, State>,
    things: Vec<Thing<K, T>>,
    clock: u64,
}

impl<K: Copy + Eq + Hash, T> UsageGatedCache<K, T> {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, states: FxHashMap::default(), things: Vec::new(), clock: 0 }
    }

    /// Counts a use of `key`.
    pub(super) fn count(&mut self, key: K) -> Use {
        self.clock += 1;
        match self.states.get_mut(&key) {
            Some(State::Made(at)) => {
                self.things[*at].used = self.clock;
                return Use::Made(*at);
            }
            Some(State::Refused) => return Use::Plain,
            Some(State::Counted(uses)) if *uses < self.limits.after => {
                *uses += 1;
                return Use::Plain;
            }
            // From the start again, so that the search for room is not made at every use.
            Some(State::Counted(uses)) => *uses = 1,
            None if self.limits.after > 0 => {
                self.learn(key, State::Counted(1));
                return Use::Plain;
            }
            None => self.learn(key, State::Counted(0)),
        }
        if self.things.len() < self.limits.kept || self.passed_by().is_some() {
            Use::Make
        } else {
            Use::Plain
        }
    }

    /// Returns the index of the value made for `key`, if it is cached.
    pub(super) fn find(&self, key: K) -> Option<usize> {
        match self.states.get(&key) {
            Some(State::Made(at)) => Some(*at),
            _ => None,
        }
    }

    /// Returns the value.
    pub(super) fn get(&self, at: usize) -> &T {
        &self.things[at].thing
    }

    /// Caches the value made for `key`; returns the value evicted for it.
    pub(super) fn put(&mut self, key: K, thing: T) -> Option<T> {
        let thing = Thing { key, used: self.clock, thing };
        if self.things.len() < self.limits.kept {
            self.learn(key, State::Made(self.things.len()));
            self.things.push(thing);
            return None;
        }
        let Some(at) = self.passed_by() else { return Some(thing.thing) };
        self.learn(key, State::Made(at));
        let gone = std::mem::replace(&mut self.things[at], thing);
        self.states.remove(&gone.key);
        Some(gone.thing)
    }

    /// Notes that no value can be made for `key`, or that it cannot be used: then it is returned.
    pub(super) fn refuse(&mut self, key: K) -> Option<T> {
        let gone = self.find(key).map(|at| {
            // Another takes its place.
            let gone = self.things.swap_remove(at);
            if let Some(moved) = self.things.get(at) {
                self.states.insert(moved.key, State::Made(at));
            }
            gone.thing
        });
        self.learn(key, State::Refused);
        gone
    }

    /// Everything that was made; all keys are new again.
    pub(super) fn take(&mut self) -> impl Iterator<Item = T> + use<K, T> {
        self.states.clear();
        std::mem::take(&mut self.things).into_iter().map(|thing| thing.thing)
    }

    /// Everything that was made.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.things.iter().map(|thing| &thing.thing)
    }

    fn learn(&mut self, key: K, state: State) {
        if self.states.len() >= self.limits.known.max(self.limits.kept + 1) && !self.states.contains_key(&key)
        {
            // Counted from the beginning: what is used often returns soon.
            self.states.retain(|_, state| matches!(state, State::Made(_)));
        }
        self.states.insert(key, state);
    }

    /// The thing that was longest not used, if that is long enough.
    fn passed_by(&self) -> Option<usize> {
        let (at, oldest) = self.things.iter().enumerate().min_by_key(|(_, thing)| thing.used)?;
        (self.clock - oldest.used >= self.limits.idle).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { after: 2, kept: 2, known: 4, idle: 5 };

    fn hot() -> UsageGatedCache<char, u32> {
        UsageGatedCache::new(LIMITS)
    }

    /// Uses `key` until something is made.
    fn heat(hot: &mut UsageGatedCache<char, u32>, key: char, thing: u32) -> Option<u32> {
        assert_eq!([hot.count(key), hot.count(key), hot.count(key)], [Use::Plain, Use::Plain, Use::Make]);
        hot.put(key, thing)
    }

    #[test]
    fn something_is_made_for_what_comes_again() {
        let mut hot = hot();
        assert_eq!(heat(&mut hot, 'a', 1), None);
        assert_eq!(heat(&mut hot, 'b', 2), None);
        assert_eq!((hot.count('a'), hot.count('b')), (Use::Made(0), Use::Made(1)));
        assert_eq!((hot.find('b'), hot.find('c')), (Some(1), None));
        assert_eq!((*hot.get(0), *hot.get(1)), (1, 2));
        assert_eq!(hot.iter().copied().collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn nothing_in_use_makes_room() {
        let mut hot = hot();
        heat(&mut hot, 'a', 1);
        heat(&mut hot, 'b', 2);
        for _ in 0..20 {
            assert_eq!(
                (hot.count('a'), hot.count('b'), hot.count('c')),
                (Use::Made(0), Use::Made(1), Use::Plain)
            );
        }
        assert_eq!(hot.put('c', 3), Some(3), "it comes back to its maker");
        assert_eq!(hot.count('c'), Use::Plain);
    }

    #[test]
    fn what_was_passed_by_makes_room() {
        let mut hot = hot();
        heat(&mut hot, 'a', 1);
        heat(&mut hot, 'b', 2);
        let makes =
            std::iter::repeat_with(|| (hot.count('b'), hot.count('c')).1).position(|c| c == Use::Make);
        assert!(makes.is_some_and(|after| after < 10), "{makes:?}");
        assert_eq!(hot.put('c', 3), Some(1), "the oldest");
        assert_eq!(
            (hot.count('b'), hot.count('c'), hot.count('a')),
            (Use::Made(1), Use::Made(0), Use::Plain)
        );
        assert_eq!(*hot.get(0), 3);
    }

    #[test]
    fn the_keys_are_bounded_and_what_was_made_stays() {
        let mut hot = hot();
        heat(&mut hot, 'a', 1);
        assert_eq!(hot.refuse('b'), None);
        assert_eq!(hot.count('b'), Use::Plain);
        ('c'..='z').for_each(|key| assert_eq!(hot.count(key), Use::Plain));
        assert!(hot.states.len() <= LIMITS.known, "{}", hot.states.len());
        assert_eq!(hot.count('a'), Use::Made(0));
    }

    #[test]
    fn what_cannot_be_used_is_given_back_and_not_made_again() {
        let mut hot = hot();
        heat(&mut hot, 'a', 1);
        heat(&mut hot, 'b', 2);
        assert_eq!(hot.refuse('a'), Some(1));
        assert_eq!((hot.count('b'), *hot.get(0)), (Use::Made(0), 2));
        (0..9).for_each(|_| assert_eq!(hot.count('a'), Use::Plain));
        assert_eq!(heat(&mut hot, 'c', 3), None, "there is room");
        assert_eq!(hot.refuse('c'), Some(3), "the last one");
    }

    #[test]
    fn all_is_given_back() {
        let mut hot = hot();
        heat(&mut hot, 'a', 1);
        heat(&mut hot, 'b', 2);
        assert_eq!(hot.take().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(hot.count('a'), Use::Plain);
        assert_eq!(heat(&mut hot, 'b', 3), None);
    }

    #[test]
    fn at_once_where_nothing_is_to_be_counted() {
        let mut hot = UsageGatedCache::<char, u32>::new(Limits { after: 0, kept: 1, known: 1, idle: 1 });
        assert_eq!((hot.count('a'), hot.put('a', 1), hot.count('a')), (Use::Make, None, Use::Made(0)));
        // It was used just now, by this count.
        assert_eq!((hot.count('b'), hot.put('b', 2)), (Use::Make, Some(1)));
        assert_eq!((hot.count('b'), hot.count('a')), (Use::Made(0), Use::Make));
    }
}
