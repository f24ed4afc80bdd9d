//! Every operation is drawn, often, and with padding where it takes that.

use std::collections::{BTreeMap, BTreeSet};

use super::{all, of};
use crate::{
    generate,
    operations::names,
    program::{Block, Code, Instr, Stmt, each_instr},
    value::drawn::Kind,
};

/// The operations that a code of [`crate::instr`] calls. A cell calls both of its operations; those that call one of several
/// by a number have a row for each.
fn by_code(code: Code) -> &'static [&'static str] {
    match code {
        Code::Add | Code::AddBf16 => &["add"],
        Code::Sub => &["sub"],
        Code::Mul => &["mul"],
        Code::Div => &["div"],
        Code::SiluMul => &["silu_mul"],
        Code::Tanh => &["tanh"],
        Code::Relu => &["relu"],
        Code::Silu => &["silu"],
        Code::Gelu => &["gelu"],
        Code::Neg => &["neg"],
        Code::Scale | Code::ScaleKey => &["scale"],
        Code::MatMul => &["matmul"],
        Code::MatMulNt => &["matmul_nt"],
        Code::Linear | Code::BlocksProduct => &["linear"],
        Code::Softmax => &["softmax"],
        Code::LogSoftmax => &["log_softmax"],
        Code::RmsNorm => &["rms_norm"],
        Code::LayerNorm => &["layer_norm"],
        Code::L2 => &["l2_normalize"],
        Code::Sum => &["sum"],
        Code::Mean => &["mean"],
        Code::Max => &["max"],
        Code::ArgMax => &["argmax"],
        Code::MaskedMean | Code::AllMean => &["masked_mean"],
        Code::Transpose => &["transpose"],
        Code::Merge | Code::Split => &["reshape"],
        Code::Narrow => &["narrow"],
        Code::Contiguous => &["contiguous"],
        Code::Unsqueeze => &["unsqueeze"],
        Code::Squeeze => &["squeeze"],
        Code::Broadcast => &["broadcast_to"],
        Code::Concat => &["concat"],
        Code::Gather | Code::LastRow | Code::Reverse | Code::Pick => &["gather"],
        Code::Embedding | Code::EmbedPick | Code::BlocksRows => &["embedding"],
        Code::Gt => &["gt"],
        Code::Where => &["where_"],
        Code::ToBf16 | Code::ToF32 => &["cast"],
        Code::Scatter => &["scatter_rows"],
        Code::Store => &["store"],
        Code::Load => &["load"],
        Code::Full | Code::FullDim | Code::Grown => &["full"],
        Code::Arange | Code::ArangeDim => &["arange"],
        Code::OnesLike => &["ones_like"],
        Code::Rope => &["rope"],
        Code::Attention | Code::SeenKeys => &["attention"],
        Code::SizeOf | Code::DivSize => &["size"],
        Code::Cell => &["lstm_cell", "gru_cell"],
        Code::Statistics => &["batch_norm_training"],
        Code::RopeScatter => &["rope_scatter"],
        Code::CacheView => &["cache_view"],
        Code::MarkTokens => &["mark_tokens"],
        Code::Append => &["append"],
        // Operations of the tests' own, what calls others, and what a number decides.
        Code::ScaledAdd | Code::IndexedAdd | Code::Accumulate | Code::Drop | Code::Fail | Code::Number => &[],
        Code::Windows | Code::Parts | Code::Listed | Code::Drawn | Code::Flow => &[],
    }
}

/// The operations that [`Code::Windows`] are.
const WINDOWS: [&str; 5] = ["conv2d", "conv_transpose2d", "max_pool2d", "avg_pool2d", "conv2d"];

/// The operations that [`Code::Parts`] are.
const PARTS: [&str; 5] = [
    "adaptive_avg_pool1d",
    "adaptive_max_pool1d",
    "upsample_nearest1d",
    "upsample_linear1d",
    "upsample_linear1d",
];

/// The operations of a way to draw.
fn by_kind(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Uniform => &["uniform"],
        Kind::Normal => &["normal"],
        Kind::Exponential => &["exponential"],
        Kind::Gumbel => &["gumbel"],
        Kind::Randint => &["randint"],
        Kind::Bernoulli => &["bernoulli"],
        Kind::Dropout => &["dropout"],
        Kind::Randperm => &["randperm"],
        Kind::State => &["rng_state"],
        Kind::Again => &["rng_state", "uniform", "set_rng_state"],
        Kind::Sample => &["sample"],
        Kind::Noisy | Kind::Signs => &[],
    }
}

/// The operations that an instruction calls.
fn called(instr: &Instr) -> Vec<&'static str> {
    match instr.op {
        Code::Listed => of(instr).map(|listed| listed.name).into_iter().collect(),
        Code::Drawn => Kind::ALL.get(instr.nums[0]).map_or(Vec::new(), |kind| by_kind(*kind).to_vec()),
        Code::Windows => vec![WINDOWS[instr.nums[0]]],
        Code::Parts => vec![PARTS[instr.nums[0]]],
        code => by_code(code).to_vec(),
    }
}

/// Programs that are generated and not run, more than those that are.
const PROGRAMS: u64 = 3000;

/// Operations that never work on a padded size here, and why.
const UNPADDED: [(&str, &str); 1] = [("store", "a state has no dimension of a call")];

#[test]
fn every_operation_is_drawn() {
    let drawn: BTreeSet<&str> = all()
        .map(|listed| listed.name)
        .chain(Code::ALL.iter().flat_map(|code| by_code(*code)).copied())
        .chain(Kind::ALL.iter().flat_map(|kind| by_kind(*kind)).copied())
        .chain(WINDOWS.into_iter().chain(PARTS))
        .collect();
    let known = names();
    let missing: Vec<_> = known.difference(&drawn).collect();
    let unknown: Vec<_> = drawn.difference(&known).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "operations without an entry in `random_programs/listed`: {missing:?}; names that are no operation: {unknown:?}"
    );
}

/// Calls of an operation in the programs, and those of them with a size that a bucket pads.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    calls: usize,
    padded: usize,
}

#[test]
fn every_operation_is_drawn_often() {
    let mut entries: BTreeMap<usize, usize> = (0..all().count()).map(|number| (number, 0)).collect();
    let mut counts: BTreeMap<&str, Count> =
        names().into_iter().map(|name| (name, Count::default())).collect();
    for seed in 0..PROGRAMS {
        for func in generate::program(seed).funcs {
            count(&func.body, &mut |block| {
                each_instr(&block.code, &mut |instr| {
                    if instr.op == Code::Listed {
                        *entries.entry(instr.nums[0]).or_default() += 1;
                    }
                    for name in called(instr) {
                        let count = counts.entry(name).or_default();
                        count.calls += 1;
                        count.padded += usize::from(instr.padded && func.buckets.is_some());
                    }
                });
            });
        }
    }
    let rare: Vec<_> =
        all().zip(entries.values()).filter(|(_, count)| **count < 3).map(|(l, n)| (l.name, *n)).collect();
    assert!(rare.is_empty(), "entries hardly drawn in {} programs: {rare:?}", PROGRAMS);
    let rare: Vec<_> = counts.iter().filter(|(_, count)| count.calls < 5).collect();
    assert!(rare.is_empty(), "hardly drawn in {} programs: {rare:?}", PROGRAMS);
    let exempt: BTreeSet<&str> = UNPADDED.iter().map(|(name, _)| *name).collect();
    let rare: Vec<_> =
        counts.iter().filter(|(name, count)| count.padded == 0 && !exempt.contains(**name)).collect();
    assert!(rare.is_empty(), "never drawn with padding: {rare:?}");
    // A list of those that never are would otherwise outlive its reasons.
    let stale: Vec<_> =
        counts.iter().filter(|(name, count)| count.padded > 0 && exempt.contains(**name)).collect();
    assert!(stale.is_empty(), "drawn with padding: {stale:?}");
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
