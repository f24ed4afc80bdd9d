//! Descriptions of operations that have run, on their way back to the caller, which uses them again.
//!
//! They are large, and what one thread allocates and another one frees goes through lists of the allocator that threads share.

use std::{
    mem,
    sync::{Arc, Mutex},
};

use crate::backend::{Launch, Op, Operation};

/// Descriptions that go back at a time, so that the threads seldom meet.
const BATCH: usize = 32;

/// Descriptions that may wait for the caller.
const MOST: usize = 256;

type FreeList = Vec<Box<Launch>>;
type Waiting = Arc<Mutex<FreeList>>;

/// The side of the worker.
pub(super) struct FreeListSender {
    waiting: Waiting,
    own: FreeList,
    /// An operation that owns nothing, for descriptions that wait.
    fixed: Option<&'static dyn Operation>,
}

/// The side of the caller.
pub(super) struct FreeListReceiver {
    waiting: Waiting,
    own: FreeList,
}

/// Returns both sides, without any descriptions.
pub(super) fn free_list() -> (FreeListSender, FreeListReceiver) {
    let waiting = Waiting::default();
    let giver = FreeListSender { waiting: Arc::clone(&waiting), own: Vec::new(), fixed: None };
    (giver, FreeListReceiver { waiting, own: Vec::new() })
}

impl FreeListSender {
    /// Gives a description back. What the operation owns is dropped at once, and so are long lists.
    pub(super) fn give(&mut self, mut launch: Box<Launch>) {
        if launch.inputs.spilled() || launch.outputs.spilled() {
            return;
        }
        match (launch.op.as_fixed(), self.fixed) {
            (Some(fixed), _) => self.fixed = Some(fixed),
            (None, Some(fixed)) => launch.op = Op::fixed(fixed),
            (None, None) => return,
        }
        self.own.push(launch);
        if self.own.len() < BATCH {
            return;
        }
        // Never waits: the next one tries again.
        if let Ok(mut waiting) = self.waiting.try_lock() {
            let room = MOST.saturating_sub(waiting.len());
            self.own.truncate(room);
            waiting.append(&mut self.own);
        } else if self.own.len() >= MOST {
            self.own.clear();
        }
    }
}

impl FreeListReceiver {
    /// Returns a copy of a description, in memory that is used again if there is some.
    pub(super) fn copy_of(&mut self, launch: &Launch) -> Box<Launch> {
        if self.own.is_empty()
            && let Ok(mut waiting) = self.waiting.try_lock()
        {
            mem::swap(&mut self.own, &mut waiting);
        }
        let Some(mut copy) = self.own.pop() else { return Box::new(launch.clone()) };
        copy.describe(launch.op.clone(), &launch.inputs, &launch.outputs, launch.workspace);
        copy
    }
}

#[cfg(test)]
mod tests {
    use std::{hash::Hasher, sync::Arc};

    use super::{BATCH, MOST, free_list};
    #[cfg(feature = "cuda")]
    use crate::backend::cuda::kernels::Submit;
    use crate::{
        DType,
        backend::{
            Launch, Op, Operation, View,
            cpu::{Access, Fault},
        },
        memory::COPY,
        value::layout::Layout,
    };

    fn view(addr: u64) -> View {
        View { addr, dtype: DType::F32, layout: Layout::contiguous(&[2, 3]).unwrap() }
    }

    fn launch(inputs: u64) -> Launch {
        let mut launch = Launch::of(COPY);
        let inputs: Vec<View> = (0..inputs).map(view).collect();
        launch.describe(COPY, &inputs, &[view(100)], 7);
        launch
    }

    #[test]
    fn descriptions_come_back_in_batches_and_say_what_they_are_told() {
        let (mut giver, mut taker) = free_list();
        let first: Vec<_> = (0..BATCH).map(|_| taker.copy_of(&launch(2))).collect();
        let places: Vec<*const Launch> = first.iter().map(|launch| &raw const **launch).collect();
        for launch in first {
            assert!(taker.own.is_empty());
            giver.give(launch);
        }
        let again = taker.copy_of(&launch(3));
        assert!(places.contains(&(&raw const *again)), "it is memory that was used before");
        assert_eq!(taker.own.len(), BATCH - 1);
        assert_eq!((again.inputs.len(), again.outputs.len(), again.workspace), (3, 1, 7));
        assert_eq!(again.inputs[2], view(2));
        // Fewer operands than before leave none of those.
        giver.give(again);
        let fewer = taker.copy_of(&launch(0));
        assert_eq!((fewer.inputs.len(), fewer.outputs.len()), (0, 1));
    }

    #[test]
    fn what_waits_is_bounded() {
        let (mut giver, mut taker) = free_list();
        for _ in 0..10 * MOST {
            giver.give(Box::new(launch(1)));
        }
        assert!(giver.waiting.lock().unwrap().len() <= MOST && giver.own.len() < BATCH);
        // Also while the other side holds the list.
        let waiting = giver.waiting.clone();
        let held = waiting.lock().unwrap();
        for _ in 0..10 * MOST {
            giver.give(Box::new(launch(1)));
        }
        assert!(giver.own.len() < MOST);
        drop(held);
        taker.copy_of(&launch(1));
        assert!(taker.own.len() < MOST);
    }

    #[test]
    fn what_an_operation_owns_is_dropped_when_it_has_run() {
        let (mut giver, mut taker) = free_list();
        let owned = Arc::new(Owner);
        let mut owning = launch(1);
        owning.op = Op::shared(owned.clone());
        // Before and after there is an operation that takes its place.
        for kept in [0, 1] {
            let sent = taker.copy_of(&owning);
            assert_eq!(Arc::strong_count(&owned), 3);
            giver.give(sent);
            assert_eq!((Arc::strong_count(&owned), giver.own.len()), (2, 2 * kept));
            giver.give(Box::new(launch(1)));
        }
        // Long lists are not kept.
        let kept = giver.own.len();
        giver.give(taker.copy_of(&launch(9)));
        assert_eq!(giver.own.len(), kept);
    }

    /// An operation that is not fixed.
    #[derive(Debug)]
    struct Owner;

    impl Operation for Owner {
        fn name(&self) -> &'static str {
            "owner"
        }

        fn parameters(&self, _: &mut dyn Hasher) {}

        fn run_cpu(&self, _: &Access<'_>, _: &Launch) -> Result<(), Fault> {
            Ok(())
        }

        #[cfg(feature = "cuda")]
        fn launch_cuda(&self, _: &mut dyn Submit, _: &Launch) -> crate::Result<()> {
            Ok(())
        }
    }
}
