//! Values that are made once for each key, by the first caller that needs one; callers with other keys do not
//! wait.

use std::{
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
};

use rustc_hash::FxHashMap;

/// The place of one value: its lock is held while the value is made.
type Place<V> = Arc<Mutex<Option<V>>>;

#[derive(Debug)]
pub(super) struct OnceMap<K, V> {
    places: Mutex<FxHashMap<K, Place<V>>>,
}

impl<K, V> Default for OnceMap<K, V> {
    fn default() -> Self {
        Self { places: Mutex::default() }
    }
}

impl<K: Eq + Hash, V: Clone> OnceMap<K, V> {
    /// Returns the value of `key`, which `make` makes unless it exists. Concurrent callers with the same key
    /// wait for it, and try themselves if it failed.
    ///
    /// # Errors
    /// Returns the error of `make`.
    pub(super) fn get_or_make<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        let place = {
            let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(places.entry(key).or_default())
        };
        let mut value = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = &*value {
            return Ok(made.clone());
        }
        let made = make()?;
        *value = Some(made.clone());
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        sync::{
            atomic::{AtomicUsize, Ordering},
            mpsc,
        },
        thread,
    };

    use super::*;

    #[test]
    fn another_key_does_not_wait() {
        let map = OnceMap::<u32, u32>::default();
        let (begun, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let map = &map;
            let slow = scope.spawn(move || {
                map.get_or_make(1, || {
                    begun.send(()).unwrap();
                    may_go_on.recv().map(|()| 10)
                })
            });
            has_begun.recv().unwrap();
            // The first is being made all the while.
            assert_eq!(map.get_or_make::<()>(2, || Ok(20)), Ok(20));
            assert_eq!(map.get_or_make::<()>(2, || Err(())), Ok(20));
            go_on.send(()).unwrap();
            assert_eq!(slow.join().unwrap(), Ok(10));
        });
    }

    #[test]
    fn one_thread_makes_it_for_all() {
        let (map, made) = (OnceMap::<u32, usize>::default(), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let got = map.get_or_make::<()>(1, || Ok(made.fetch_add(1, Ordering::Relaxed)));
                    assert_eq!(got, Ok(0));
                });
            }
        });
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn what_failed_is_tried_again() {
        let map = OnceMap::<u32, u32>::default();
        assert_eq!(map.get_or_make(1, || Err("no")), Err("no"));
        let panicked = catch_unwind(AssertUnwindSafe(|| map.get_or_make::<()>(1, || panic!("in making"))));
        assert!(panicked.is_err());
        assert_eq!(map.get_or_make::<()>(1, || Ok(5)), Ok(5));
    }
}
