//! Every operation is drawn.

use std::collections::{BTreeMap, BTreeSet};

use super::{all, of};
use crate::{
    generate,
    operations::names,
    program::{Block, Stmt},
};

/// Operations that codes of [`crate::instr`] call.
const CODES: [&str; 47] = [
    "add",
    "sub",
    "mul",
    "div",
    "silu_mul",
    "tanh",
    "relu",
    "silu",
    "gelu",
    "neg",
    "scale",
    "matmul",
    "matmul_nt",
    "linear",
    "softmax",
    "log_softmax",
    "rms_norm",
    "layer_norm",
    "l2_normalize",
    "sum",
    "mean",
    "max",
    "argmax",
    "masked_mean",
    "transpose",
    "reshape",
    "narrow",
    "contiguous",
    "unsqueeze",
    "squeeze",
    "broadcast_to",
    "concat",
    "gather",
    "embedding",
    "gt",
    "where_",
    "cast",
    "scatter_rows",
    "store",
    "load",
    "full",
    "ones_like",
    "rope",
    "attention",
    "lstm_cell",
    "gru_cell",
    "adaptive_avg_pool1d",
];
const MORE_CODES: [&str; 12] = [
    "adaptive_max_pool1d",
    "masked_sum",
    "uniform",
    "normal",
    "exponential",
    "gumbel",
    "randint",
    "bernoulli",
    "dropout",
    "randperm",
    "rng_state",
    "set_rng_state",
];

/// Operations that no program draws, and what tests them under recordings.
const ELSEWHERE: [(&str, &str); 5] = [
    ("mark_tokens", "it writes a state of `bool`: `tests/ops/sampling.rs`"),
    ("sample", "`uniform` and `sample_with`, which are drawn, in one: `tests/ops/sampling.rs`"),
    ("batch_norm_training", "it moves two states: `tests/ops/training.rs`"),
    ("cache_view", "an argument of `attention` alone: `tests/ops/attention.rs`"),
    ("rope_scatter", "`rope` and `scatter_rows`, which are drawn, in one: `tests/ops/fused.rs`"),
];

#[test]
fn every_operation_is_in_a_table() {
    let drawn: BTreeSet<&str> = all()
        .map(|listed| listed.name)
        .chain(CODES)
        .chain(MORE_CODES)
        .chain(ELSEWHERE.map(|(name, _)| name))
        .collect();
    let known = names();
    let missing: Vec<_> = known.difference(&drawn).collect();
    let unknown: Vec<_> = drawn.difference(&known).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "operations without an entry in `random_programs/listed`: {missing:?}; names that are no operation: {unknown:?}"
    );
}

#[test]
fn every_entry_is_drawn() {
    let mut counts: BTreeMap<usize, usize> = (0..all().count()).map(|number| (number, 0)).collect();
    for seed in 0..crate::PROGRAMS {
        for func in generate::program(seed).funcs {
            count(&func.body, &mut |block| {
                for instr in block.code.iter().filter(|i| of(i).is_some()) {
                    *counts.entry(instr.nums[0]).or_default() += 1;
                }
            });
        }
    }
    let rare: Vec<_> =
        all().zip(counts.values()).filter(|(_, count)| **count < 5).map(|(l, n)| (l.name, *n)).collect();
    assert!(rare.is_empty(), "hardly drawn in {} programs: {rare:?}", crate::PROGRAMS);
}

fn count(body: &[Stmt], add: &mut impl FnMut(&Block)) {
    for stmt in body {
        match stmt {
            Stmt::Segment(block) | Stmt::Eager { block, .. } => add(block),
            Stmt::Loop { body, .. } => count(body, add),
            Stmt::If { then, other, .. } => {
                count(then, add);
                count(other, add);
            }
            Stmt::Read { .. } | Stmt::Drop(_) | Stmt::Copy { .. } => {}
        }
    }
}
