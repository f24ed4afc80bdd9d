//! The views of state that eager code holds for other libraries. Their work may be on other streams, which the runtime's waits
//! for when a view is dropped; until then, nothing else may use state that a view writes, or write state that one reads.

use std::cell::{Cell, RefCell};

use smallvec::SmallVec;

use crate::{Error, Result, backend::View};

/// The open views of a runtime's state.
#[derive(Debug, Default)]
pub(crate) struct OpenViews {
    open: RefCell<SmallVec<[Open; 2]>>,
    next: Cell<u64>,
}

#[derive(Debug)]
struct Open {
    id: u64,
    view: View,
    writes: bool,
}

impl OpenViews {
    /// Opens a view and returns its id.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if the view writes and the state has another, or if the other one writes.
    pub(crate) fn open(&self, op: &'static str, view: View, writes: bool) -> Result<u64> {
        let mut open = self.open.borrow_mut();
        if let Some(other) = open.iter().find(|other| (writes || other.writes) && other.view.overlaps(&view))
        {
            return Err(refused(op, other));
        }
        let id = self.next.get();
        self.next.set(id + 1);
        open.push(Open { id, view, writes });
        Ok(id)
    }

    /// Closes a view, if it is still open.
    pub(crate) fn close(&self, id: u64) {
        self.open.borrow_mut().retain(|open| open.id != id);
    }

    /// Closes the views of a step that has ended: those that were forgotten.
    pub(crate) fn end_step(&mut self) {
        self.open.get_mut().clear();
    }

    /// Refuses an operation that uses state which a view writes, or writes state which one reads.
    ///
    /// # Errors
    /// Returns [`Error::Argument`].
    #[inline]
    pub(crate) fn check_launch(&self, op: &'static str, inputs: &[View], outputs: &[View]) -> Result<()> {
        let open = self.open.borrow();
        if open.is_empty() {
            return Ok(());
        }
        let conflict = open.iter().find(|open| {
            outputs.iter().any(|output| output.overlaps(&open.view))
                || open.writes && inputs.iter().any(|input| input.overlaps(&open.view))
        });
        conflict.map_or(Ok(()), |conflict| Err(refused(op, conflict)))
    }

    /// Refuses a call of a graph: what its recordings write is not known before.
    ///
    /// # Errors
    /// Returns [`Error::Argument`].
    pub(crate) fn check_call(&self, function: &'static str) -> Result<()> {
        self.open.borrow().first().map_or(Ok(()), |open| Err(refused(function, open)))
    }
}

fn refused(op: &'static str, open: &Open) -> Error {
    let by = if open.writes { "cuda_view_mut" } else { "cuda_view" };
    Error::Argument { op, why: format!("a view of the state is open, from `{by}`; drop it first") }
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
        let mut views = OpenViews::default();
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
        views.end_step();
        views.check_call("f").unwrap();
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
