//! Recordings that share executables: who may, and who does.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Identity, Node, Tree};
use crate::{
    backend::{Executable, Recording, Signature},
    event::UnsharedReason,
};

/// Steps for which an executable waits that no recording runs by any more.
const SPARE_STEPS: u64 = 4;

/// A place in the calls of one graph object. A call comes by it once, so the recordings that were made there,
/// for other sizes, keys or addresses, are made for different calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) identity: Identity,
    /// Id of the graph object.
    pub(crate) caller: u64,
    /// How many segments of that identity the call ran before it: the layers of a loop have places of their own.
    pub(crate) ordinal: u32,
}

/// What a recording needs to share its executable.
#[derive(Debug)]
pub(crate) struct Sharing {
    pub(crate) place: Place,
    pub(crate) recording: Arc<dyn Recording>,
    /// The step in which it ran last.
    pub(crate) ran: u64,
    /// Updates for it in a row that were over the budget.
    pub(crate) slow: u8,
    /// Why it shares no more from its next update on.
    pub(crate) parting: Option<UnsharedReason>,
}

/// An executable whose recordings are gone: one that is made soon in its place can have it.
#[derive(Debug)]
struct Spare {
    place: Place,
    signature: Signature,
    exec: Arc<dyn Executable>,
    since: u64,
}

/// The recordings of each place, the executables without one, and the number of the step.
#[derive(Debug, Default)]
pub(super) struct Shares {
    places: FxHashMap<Place, SmallVec<[u32; 4]>>,
    spares: Vec<Spare>,
    step: u64,
}

impl Shares {
    /// As before anything was recorded, in the same step.
    pub(super) fn emptied(&self) -> Self {
        Self { step: self.step, ..Self::default() }
    }

    pub(super) fn add(&mut self, place: Place, at: usize) {
        self.places.entry(place).or_default().push(at as u32);
    }

    /// A node is gone.
    pub(super) fn remove(&mut self, at: usize, node: Node) {
        let (Some(sharing), Some(exec)) = (node.sharing, node.exec) else { return };
        if let Some(list) = self.places.get_mut(&sharing.place) {
            list.retain(|n| *n as usize != at);
            if list.is_empty() {
                self.places.remove(&sharing.place);
            }
        }
        if let (1, Ok(signature)) = (Arc::strong_count(&exec), sharing.recording.signature()) {
            let signature = signature.clone();
            self.spares.push(Spare { place: sharing.place, signature, exec, since: self.step });
        }
    }
}

/// What the tree has for a new recording.
pub(crate) enum Offer {
    /// No recording was made in its place.
    None,
    /// The executable that this recording runs by.
    Of(usize),
    /// Nothing that it can have.
    Nothing(UnsharedReason),
}

impl Tree {
    /// A step begins; gives up spare executables that waited too long.
    pub(crate) fn begin_step(&mut self) {
        self.shares.step += 1;
        let now = self.shares.step;
        self.shares.spares.retain(|s| now - s.since <= SPARE_STEPS);
    }

    /// The number that the next node gets.
    pub(crate) fn next(&self) -> usize {
        self.nodes.len()
    }

    /// A recording that may share its executable, and that.
    pub(crate) fn sharing(&self, at: usize) -> Option<(&Sharing, &Arc<dyn Executable>)> {
        let node = self.node(at)?;
        Some((node.sharing.as_ref()?, node.exec.as_ref()?))
    }

    pub(crate) fn sharing_mut(&mut self, at: usize) -> Option<&mut Sharing> {
        self.nodes.get_mut(at)?.as_mut()?.sharing.as_mut()
    }

    /// A recording runs in this step.
    pub(crate) fn runs_now(&mut self, at: usize) {
        let step = self.shares.step;
        if let Some(sharing) = self.sharing_mut(at) {
            sharing.ran = step;
        }
    }

    /// The recordings that run by the executable of this one, itself left out, in order.
    pub(crate) fn sharers(&self, at: usize) -> SmallVec<[usize; 4]> {
        let Some((sharing, exec)) = self.sharing(at) else { return SmallVec::new() };
        self.users(&sharing.place, exec).filter(|&other| other != at).collect()
    }

    fn users<'t>(
        &'t self,
        place: &Place,
        exec: &'t Arc<dyn Executable>,
    ) -> impl Iterator<Item = usize> + use<'t> {
        let list = self.shares.places.get(place).map_or(&[][..], |list| &list[..]);
        let same = |at: &usize| self.sharing(*at).is_some_and(|(_, other)| Arc::ptr_eq(exec, other));
        list.iter().map(|&at| at as usize).filter(move |at| same(at))
    }

    /// Whether one of the others ran in this step.
    pub(crate) fn met(&self, others: &[usize]) -> bool {
        let now = |at: &usize| self.sharing(*at).is_some_and(|(s, _)| s.ran == self.shares.step);
        others.iter().any(now)
    }

    /// A spare executable for a recording; it is the caller's.
    pub(crate) fn take_spare(&mut self, place: &Place, signature: &Signature) -> Option<Arc<dyn Executable>> {
        let spares = &mut self.shares.spares;
        let at = spares.iter().position(|s| s.place == *place && s.signature == *signature)?;
        Some(spares.swap_remove(at).exec)
    }

    /// Gives up the spare executables of these graph objects.
    pub(crate) fn forget_spares(&mut self, of: impl Fn(u64) -> bool) {
        self.shares.spares.retain(|s| !of(s.place.caller));
    }

    /// The executable of the first recording that one with this signature can share with.
    pub(crate) fn offer(&self, place: &Place, signature: &Signature) -> Offer {
        let Some(list) = self.shares.places.get(place) else { return Offer::None };
        let mut met = false;
        for at in list.iter().map(|&at| at as usize) {
            let Some((sharing, exec)) = self.sharing(at) else { continue };
            if sharing.recording.signature() != Ok(signature) {
                continue;
            }
            let users: SmallVec<[usize; 4]> = self.users(place, exec).collect();
            if sharing.parting.is_none() && !self.met(&users) {
                return Offer::Of(at);
            }
            met = true;
        }
        Offer::Nothing(if met { UnsharedReason::SameStep } else { UnsharedReason::OtherTopology })
    }

    /// A recording has an executable of its own from now on.
    pub(crate) fn part(&mut self, at: usize, exec: Arc<dyn Executable>) {
        let Some(Some(node)) = self.nodes.get_mut(at) else { return };
        node.exec = Some(exec);
        if let Some(sharing) = &mut node.sharing {
            (sharing.parting, sharing.slow) = (None, 0);
        }
        self.parted(at);
    }

    /// The first recording that runs by the executable of this one; each executable counts as its first's.
    pub(crate) fn first_of(&self, at: usize) -> usize {
        let Some((sharing, exec)) = self.sharing(at) else { return at };
        self.users(&sharing.place, exec).next().unwrap_or(at)
    }

    /// Number of executables, spare ones included, their bytes, and the bytes that they would take besides if each
    /// recording had its own.
    pub(crate) fn executables(&self) -> (usize, u64, u64) {
        let spares = &self.shares.spares;
        let mut sum = (spares.len(), spares.iter().map(|s| s.exec.bytes()).sum(), 0);
        for (at, node) in self.numbered() {
            let Some(exec) = &node.exec else { continue };
            if self.first_of(at) == at {
                sum = (sum.0 + 1, sum.1 + exec.bytes(), sum.2);
            } else {
                sum.2 += exec.bytes();
            }
        }
        sum
    }
}
