//! An open conditional node, and the results of its bodies.

use super::carried::{Bodies, Carried, Description, contiguous_like};
use crate::{
    Result, Runtime, Tensor,
    backend::{Conditional, View},
    memory::COPY,
    record::NodeStart,
    value::raw::RawTensor,
};

/// An open node. It is given up when dropped before its end, also by `?` and by panics, so that the surrounding
/// capture can be ended.
#[derive(Debug)]
pub(super) struct Node<'s> {
    rt: &'s Runtime,
    node: Conditional,
    /// Kept until the end.
    selector: Tensor<'s, u32>,
    /// `None` once it has ended.
    start: Option<NodeStart>,
}

impl<'s> Node<'s> {
    pub(super) fn open(
        name: &'static str,
        selector: Tensor<'s, u32>,
        bodies: usize,
        repeats: bool,
    ) -> Result<Self> {
        let rt = selector.rt;
        let node = Conditional { name, selector: selector.view(name)?, bodies, repeats };
        let start = rt.core.borrow_mut().body_runner().begin_conditional(node)?;
        Ok(Self { rt, node, selector, start: Some(start) })
    }

    /// Runs the code of body `index`, and `finish` with its results, whose handles are dropped before the body ends
    /// unless `finish` returns them.
    pub(super) fn body<R, O, E: From<crate::Error>>(
        &self,
        index: usize,
        body: impl FnOnce() -> Result<R, E>,
        finish: impl FnOnce(R) -> Result<O, E>,
    ) -> Result<O, E> {
        self.rt.core.borrow_mut().body_runner().begin_body(&self.node, index)?;
        let out = body().and_then(finish)?;
        self.rt.core.borrow_mut().body_runner().end_body();
        Ok(out)
    }

    /// Moves the results of the first body out of it. Those that are not all of a block that the body made are
    /// copied.
    pub(super) fn take_out<R: Carried>(&self, results: R) -> Result<R> {
        let control = self.node.name;
        let given = Description::of(&results);
        given.check_runtime(control, self.rt)?;
        // First: what is returned twice is moved out with its first handle, and copied from there for the others.
        given.tensors.iter().try_for_each(|raw| self.rt.check_live(control, raw))?;
        let mut moved: Vec<RawTensor> = Vec::with_capacity(given.tensors.len());
        let outcome = given.tensors.iter().try_for_each(|raw| {
            moved.push(self.taken_out(raw)?);
            Ok(())
        });
        if let Err(error) = outcome {
            moved.iter().for_each(|raw| self.rt.release(raw.slot, raw.epoch));
            return Err(error);
        }
        let mut moved = moved.into_iter();
        Ok(results.replace(&mut |rt, old| {
            rt.release(old.slot, old.epoch);
            moved.next().unwrap_or(old)
        }))
    }

    fn taken_out(&self, raw: &RawTensor) -> Result<RawTensor> {
        let can_leave = self.rt.core.borrow_mut().body_runner().can_take_out(raw);
        if can_leave {
            return Ok(self.rt.core.borrow_mut().body_runner().take_out(*raw));
        }
        let copy = copied(self.rt, self.node.name, raw)?;
        let moved = self.rt.core.borrow_mut().body_runner().take_out(copy);
        // The reference to the slot that it had.
        self.rt.release(copy.slot, copy.epoch);
        Ok(moved)
    }

    /// Copies the results of another body to where those of the first one are.
    pub(super) fn copy_out<R: Carried>(
        &self,
        results: &R,
        first: &Description,
        names: &Bodies<'_>,
    ) -> Result<()> {
        let given = Description::of(results);
        given.check_runtime(self.node.name, self.rt)?;
        given.check_like(first, names, self.rt)?;
        for (from, to) in given.tensors.iter().zip(&first.tensors) {
            self.rt.check_live(self.node.name, from)?;
            copy(self.rt, from.view(), to.view())?;
        }
        Ok(())
    }

    /// Ends the node, whose results are `used`.
    pub(super) fn close(mut self, used: &Description) -> Result<()> {
        self.start = None;
        let mut used = used.tensors.clone();
        used.push(self.selector.raw);
        let mut core = self.rt.core.borrow_mut();
        let frees_at_last_use = core.settings.frees_at_last_use();
        core.body_runner().end_conditional(&self.node, &used, frees_at_last_use)
    }
}

impl Drop for Node<'_> {
    fn drop(&mut self) {
        if let Some(start) = self.start.take() {
            self.rt.core.borrow_mut().body_runner().abort_conditional(start);
        }
    }
}

/// Copies elements, if there are any.
pub(super) fn copy(rt: &Runtime, from: View, to: View) -> Result<()> {
    if to.layout.count() == 0 {
        return Ok(());
    }
    rt.launch(COPY, &[from], &[to])
}

/// Returns a contiguous copy, with one reference.
pub(super) fn copied(rt: &Runtime, control: &'static str, raw: &RawTensor) -> Result<RawTensor> {
    let (dtype, layout) = contiguous_like(raw)?;
    let copy_of = rt.allocate_output(control, dtype, layout, raw.marks)?;
    match copy(rt, raw.view(), copy_of.view()) {
        Ok(()) => Ok(copy_of),
        Err(error) => {
            rt.release(copy_of.slot, copy_of.epoch);
            Err(error)
        }
    }
}
