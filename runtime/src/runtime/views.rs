//! The views of memory that eager code holds for other libraries. Their work may be on other streams, which the runtime's waits
//! for when a view is dropped; until then, nothing else may use state that a view writes, or write state that one reads. For
//! views that are forgotten (`std::mem::forget`), the host waits at the end of their region or step.

use std::cell::{Cell, RefCell};

use smallvec::SmallVec;

#[cfg(feature = "cuda")]
use crate::backend::cuda::CudaBackend;
use crate::{Error, Result, Runtime, backend::View};

/// The open views of a runtime.
#[derive(Debug, Default)]
pub(crate) struct OpenViews {
    open: RefCell<SmallVec<[Open; 2]>>,
    next: Cell<u64>,
}

#[derive(Debug)]
struct Open {
    id: u64,
    /// `None` for memory of a step, which nothing else writes.
    state: Option<OfState>,
}

/// A view of state.
#[derive(Clone, Copy, Debug)]
struct OfState {
    view: View,
    writes: bool,
}

impl OpenViews {
    /// Opens a view of state and returns its id.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if the view writes and the state has another, or if the other one writes.
    pub(crate) fn open(&self, op: &'static str, view: View, writes: bool) -> Result<u64> {
        let conflict =
            self.conflict(|other| (writes || other.writes) && other.view.overlaps(&view)).map(refused(op));
        conflict.map_or_else(|| Ok(self.add(Some(OfState { view, writes }))), Err)
    }

    /// Opens a view of memory of a step and returns its id.
    pub(crate) fn show(&self) -> u64 {
        self.add(None)
    }

    fn add(&self, state: Option<OfState>) -> u64 {
        let id = self.next();
        self.next.set(id + 1);
        self.open.borrow_mut().push(Open { id, state });
        id
    }

    /// Returns the id that the next view will have.
    pub(crate) fn next(&self) -> u64 {
        self.next.get()
    }

    /// Closes a view, if it is still open.
    pub(crate) fn close(&self, id: u64) {
        self.open.borrow_mut().retain(|open| open.id != id);
    }

    /// Closes the views that have this id or a later one, and returns their number. Their region or step has ended, so they
    /// were forgotten.
    pub(crate) fn end_from(&self, first: u64) -> usize {
        let mut open = self.open.borrow_mut();
        let before = open.len();
        open.retain(|open| open.id < first);
        before - open.len()
    }

    /// The first view of state for which `is_conflict` holds.
    fn conflict(&self, is_conflict: impl Fn(&OfState) -> bool) -> Option<OfState> {
        self.open.borrow().iter().filter_map(|open| open.state).find(is_conflict)
    }

    /// Refuses an operation that uses state which a view writes, or writes state which one reads.
    ///
    /// # Errors
    /// Returns [`Error::Argument`].
    #[inline]
    pub(crate) fn check_launch(&self, op: &'static str, inputs: &[View], outputs: &[View]) -> Result<()> {
        if self.open.borrow().is_empty() {
            return Ok(());
        }
        let conflict = self.conflict(|open| {
            outputs.iter().any(|output| output.overlaps(&open.view))
                || open.writes && inputs.iter().any(|input| input.overlaps(&open.view))
        });
        conflict.map(refused(op)).map_or(Ok(()), Err)
    }

    /// Refuses a call of a graph: what its recordings write is not known before.
    ///
    /// # Errors
    /// Returns [`Error::Argument`].
    pub(crate) fn check_call(&self, function: &'static str) -> Result<()> {
        self.conflict(|_| true).map(refused(function)).map_or(Ok(()), Err)
    }
}

fn refused(op: &'static str) -> impl Fn(OfState) -> Error {
    move |open| {
        let by = if open.writes { "cuda_view_mut" } else { "cuda_view" };
        Error::Argument { op, reason: format!("a view of the state is open, from `{by}`; drop it first") }
    }
}

impl Runtime {
    /// Closes the views that have this id or a later one, whose region or step has ended. If there are any, they were
    /// forgotten: nobody knows which streams work on their memory, so the host waits for all of the device.
    ///
    /// # Errors
    /// Returns failures of that work.
    pub(crate) fn end_views(&self, first: u64) -> Result<()> {
        let forgotten = self.views.end_from(first);
        if forgotten == 0 {
            return Ok(());
        }
        tracing::warn!(
            target: "graphable::device",
            forgotten,
            "views of memory for CUDA were forgotten instead of dropped; waiting for the whole device"
        );
        #[cfg(feature = "cuda")]
        if let Some(gpu) = CudaBackend::of(self.core.borrow().stream.backend()) {
            return gpu.wait_for_device();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Device, Error, Result, Runtime, State, ops, runtime::views::OpenViews};

    fn is_refused<T>(result: Result<T>, by: &str) {
        let error = result.err().unwrap();
        assert!(matches!(&error, Error::Argument { .. }), "{error}");
        assert!(error.to_string().contains(by), "{error}");
    }

    #[test]
    fn a_state_has_one_writable_view_or_any_number_of_others() {
        let rt = Runtime::new(Device::cpu()).unwrap();
        let [a, b] = [1, 2].map(|n| State::<f32>::zeros(&rt, &[n]).unwrap().view());
        let views = OpenViews::default();
        let read = views.open("cuda_view", a, false).unwrap();
        let other = views.open("cuda_view", a, false).unwrap();
        is_refused(views.open("cuda_view_mut", a, true), "from `cuda_view`; drop it");
        let written = views.open("cuda_view_mut", b, true).unwrap();
        is_refused(views.open("cuda_view_mut", b, true), "`cuda_view_mut`");
        is_refused(views.open("cuda_view", b, false), "`cuda_view_mut`");
        views.close(written);
        views.open("cuda_view_mut", b, true).unwrap();
        views.close(read);
        is_refused(views.open("cuda_view_mut", a, true), "`cuda_view`");
        views.close(other);
        views.open("cuda_view_mut", a, true).unwrap();
        is_refused(views.check_call("f"), "`cuda_view_mut`");
        // Forgotten ones end with their step.
        assert_eq!(views.end_from(0), 2);
        views.check_call("f").unwrap();
        assert_eq!(views.end_from(0), 0);
    }

    #[test]
    fn views_of_a_region_end_with_it() {
        let rt = Runtime::new(Device::cpu()).unwrap();
        let [a, b] = [1, 2].map(|n| State::<f32>::zeros(&rt, &[n]).unwrap().view());
        let views = OpenViews::default();
        let of_step = [views.show(), views.open("cuda_view", a, false).unwrap()];
        let first = views.next();
        views.show();
        views.open("cuda_view_mut", b, true).unwrap();
        let dropped = views.show();
        views.close(dropped);
        assert_eq!(views.end_from(first), 2);
        views.open("cuda_view_mut", b, true).unwrap();
        is_refused(views.open("cuda_view_mut", a, true), "`cuda_view`");
        views.close(of_step[1]);
        views.open("cuda_view_mut", a, true).unwrap();
        assert_eq!(views.end_from(0), 3);
    }

    #[test]
    fn memory_of_a_step_is_in_nobodys_way() {
        let mut rt = Runtime::new(Device::cpu()).unwrap();
        let state = State::<f32>::zeros(&rt, &[2]).unwrap();
        let step = rt.step().unwrap();
        let views = &step.scope().rt.views;
        views.show();
        views.check_call("f").unwrap();
        let x = step.tensor(&[2], &[1.0f32; 2]).unwrap();
        ops::store(&state, &x).unwrap();
        // Forgotten, on a device that has no streams.
        assert_eq!(step.read(&x).unwrap(), [1.0; 2]);
        drop((x, step));
        let step = rt.step().unwrap();
        assert_eq!(step.scope().rt.views.end_from(0), 0);
    }

    #[test]
    fn operations_wait_until_a_view_is_dropped() {
        let mut rt = Runtime::new(Device::cpu()).unwrap();
        let state = State::<f32>::zeros(&rt, &[2]).unwrap();
        let other = State::<f32>::zeros(&rt, &[2]).unwrap();
        let step = rt.step().unwrap();
        let views = &step.scope().rt.views;
        let x = step.tensor(&[2], &[1.0f32; 2]).unwrap();
        for writes in [false, true] {
            let id = views.open("a view", state.view(), writes).unwrap();
            is_refused(ops::store(&state, &x), "drop it first");
            let loaded = ops::load(step.scope(), &state);
            match writes {
                true => is_refused(loaded, "drop it first"),
                false => assert_eq!(step.read(&loaded.unwrap()).unwrap(), [0.0; 2]),
            }
            ops::store(&other, &x).unwrap();
            views.close(id);
        }
        ops::store(&state, &x).unwrap();
    }
}
