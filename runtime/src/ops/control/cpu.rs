//! Decisions on the CPU.

use super::operation::{NextRound, STOP, Switch};
use crate::backend::{
    Launch, View,
    cpu::{Access, Fault},
};

#[cfg(test)]
mod tests;

fn is_true(access: &Access<'_>, pred: &View) -> bool {
    access.slice::<u8>(pred).first().is_some_and(|&bits| bits != 0)
}

fn set(access: &Access<'_>, to: &View, value: u32) {
    access.slice_mut::<u32>(to).fill(value);
}

pub(super) fn choose(access: &Access<'_>, launch: &Launch) {
    set(access, &launch.outputs[0], u32::from(!is_true(access, &launch.inputs[0])));
}

pub(super) fn choose_case(access: &Access<'_>, launch: &Launch, op: &Switch) {
    let index = access.slice::<u32>(&launch.inputs[0]).first();
    let case = op.table.iter().find(|case| Some(&case.value) == index);
    set(access, &launch.outputs[0], case.map_or(op.default, |case| case.body));
}

pub(super) fn begin_loop(access: &Access<'_>, launch: &Launch) {
    set(access, &launch.outputs[0], if is_true(access, &launch.inputs[0]) { 0 } else { STOP });
    set(access, &launch.outputs[1], 0);
}

pub(super) fn next_round(access: &Access<'_>, launch: &Launch, op: &NextRound) -> Result<(), Fault> {
    let goes_on = is_true(access, &launch.inputs[0]);
    let mut rounds = 0;
    for count in access.slice_mut::<u32>(&launch.outputs[1]) {
        *count += 1;
        rounds = *count;
    }
    let is_over = rounds >= op.limit;
    set(access, &launch.outputs[0], if goes_on && !is_over { 0 } else { STOP });
    if goes_on && is_over { Err(Fault::LoopLimit { at: op.at, limit: op.limit }) } else { Ok(()) }
}
