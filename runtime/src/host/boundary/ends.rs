//! What generated code asks of the types of values that end with their segment although their block continues after a
//! boundary: whether dropping them has an effect.
//!
//! A replay does not make such a value, so the code behind the boundary would not find that effect as it stands in the source.

use std::mem::needs_drop;

use super::inert::Inert;
use crate::value::live_in::LiveIn;

/// A value that ends with its segment, although its block continues. Method resolution determines the
/// consequence, in the order of the traits below.
#[derive(Debug)]
pub struct Ends<'a, T: ?Sized>(pub &'a T);

/// Dropping the value has no effect.
#[derive(Debug)]
pub struct Plain;

/// A value that can be part of a key: it holds nothing but memory.
pub trait EndsAsLiveIn {
    /// Returns the consequence of dropping it.
    fn what(&self) -> &Plain {
        &Plain
    }
}
impl<T: LiveIn + ?Sized> EndsAsLiveIn for &&&Ends<'_, T> {}

/// A container of the standard library, for which its contents decide.
pub trait EndsAsContainer {
    /// Returns the consequence of dropping it.
    fn what(&self) -> &Plain;
}
// Tried between `EndsAsLiveIn` and the one below.
impl<T: Inert + ?Sized> EndsAsContainer for &&&&Ends<'_, T> {
    fn what(&self) -> &Plain {
        &Plain
    }
}
impl<T: Container + ?Sized> EndsAsContainer for &&Ends<'_, T> {
    fn what(&self) -> &Plain {
        const { assert!(!needs_drop::<T::Items>(), "{}", GUARD) }
        &Plain
    }
}

/// Dropping the value has an effect: returns the value itself, which [`EndsWithSegment`] rejects.
pub trait EndsAsGuard<'a, T: ?Sized> {
    /// Returns the value.
    fn what(&self) -> &'a T;
}
#[allow(drop_bounds, reason = "a guard is a type that says itself what happens when it goes")]
impl<'a, T: Drop + ?Sized> EndsAsGuard<'a, T> for &Ends<'a, T> {
    fn what(&self) -> &'a T {
        self.0
    }
}

/// Any other value: rustc knows whether a part of it has an effect, once all types are known.
pub trait EndsAsOther {
    /// Returns the consequence of dropping it.
    fn what(&self) -> &Plain;
}
impl<T: ?Sized> EndsAsOther for Ends<'_, T> {
    fn what(&self) -> &Plain {
        const { assert!(!needs_drop::<T>(), "{}", GUARD) }
        &Plain
    }
}

/// A value that ends with its segment, and what is in it was asked before, or moved out of it.
#[derive(Debug)]
pub struct EndsItself<'a, T: ?Sized>(pub &'a T);

impl<T: LiveIn + ?Sized> EndsAsLiveIn for &&&EndsItself<'_, T> {}
impl<T: Inert + ?Sized> EndsAsContainer for &&&&EndsItself<'_, T> {
    fn what(&self) -> &Plain {
        &Plain
    }
}
impl<T: Container + ?Sized> EndsAsContainer for &&EndsItself<'_, T> {
    fn what(&self) -> &Plain {
        const { assert!(!needs_drop::<T::Items>(), "{}", GUARD) }
        &Plain
    }
}
#[allow(drop_bounds, reason = "a guard is a type that says itself what happens when it goes")]
impl<'a, T: Drop + ?Sized> EndsAsGuard<'a, T> for &EndsItself<'a, T> {
    fn what(&self) -> &'a T {
        self.0
    }
}
impl<T: ?Sized> EndsAsOther for EndsItself<'_, T> {
    fn what(&self) -> &Plain {
        &Plain
    }
}

/// A value, and a part of it that a pattern leaves in it, to end with its segment. A reference has no parts.
#[derive(Debug)]
pub struct EndsIn<'a, W: ?Sized, T: ?Sized>(pub &'a W, pub &'a T);

impl<W: ?Sized, T: ?Sized> EndsAsLiveIn for &&&&EndsIn<'_, &W, T> {}
impl<W: ?Sized, T: ?Sized> EndsAsLiveIn for &&&&EndsIn<'_, &mut W, T> {}
impl<W: ?Sized, T: LiveIn + ?Sized> EndsAsLiveIn for &&&EndsIn<'_, W, T> {}
impl<W: ?Sized, T: Inert + ?Sized> EndsAsContainer for &&&&&EndsIn<'_, W, T> {
    fn what(&self) -> &Plain {
        &Plain
    }
}
impl<W: ?Sized, T: Container + ?Sized> EndsAsContainer for &&EndsIn<'_, W, T> {
    fn what(&self) -> &Plain {
        const { assert!(!needs_drop::<T::Items>(), "{}", GUARD) }
        &Plain
    }
}
#[allow(drop_bounds, reason = "a guard is a type that says itself what happens when it goes")]
impl<'a, W: ?Sized, T: Drop + ?Sized> EndsAsGuard<'a, T> for &EndsIn<'a, W, T> {
    fn what(&self) -> &'a T {
        self.1
    }
}
impl<W: ?Sized, T: ?Sized> EndsAsOther for EndsIn<'_, W, T> {
    fn what(&self) -> &Plain {
        const { assert!(!needs_drop::<T>(), "{}", GUARD) }
        &Plain
    }
}

const GUARD: &str = "[G067] a value made in a segment would be held across a boundary, and a replay does not acquire it: end its \
                     scope with a block before the boundary, or make it an `#[eager]` value";

/// Types whose drop only drops their contents.
pub trait Container {
    /// The type of their contents.
    type Items: ?Sized;
}
macro_rules! containers {
    ($($ty:ty: [$($t:ident)*] $items:ty;)*) => {$(
        impl<$($t),*> Container for $ty {
            type Items = $items;
        }
    )*};
}
containers! {
    Vec<T>: [T] T;
    std::vec::IntoIter<T>: [T] T;
    std::vec::Drain<'_, T>: [T] T;
    std::rc::Rc<T>: [T] T;
    std::sync::Arc<T>: [T] T;
    std::collections::VecDeque<T>: [T] T;
    std::collections::BTreeMap<A, B>: [A B] (A, B);
    std::collections::BTreeSet<T>: [T] T;
    std::collections::BinaryHeap<T>: [T] T;
    std::collections::LinkedList<T>: [T] T;
    std::collections::HashMap<A, B, C>: [A B C] (A, B, C);
    std::collections::HashSet<A, C>: [A C] (A, C);
}
impl<T: ?Sized> Container for Box<T> {
    type Items = T;
}

/// A value that may end with its segment while its block continues after a boundary.
#[diagnostic::on_unimplemented(
    message = "[G067] `{Self}` would be held across a boundary, and a replay does not acquire it",
    label = "released where its segment ends, before the boundary",
    note = "end its scope with a block before the boundary, or make it an `#[eager]` value"
)]
pub trait EndsWithSegment {
    /// Requires the trait.
    fn ends(&self) {}
}

#[diagnostic::do_not_recommend]
impl EndsWithSegment for Plain {}
