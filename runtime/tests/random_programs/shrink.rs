//! Cuts a failing program down while it still fails in the same way.

use crate::{
    check::{Failure, check},
    program::{Arg, Block, Code, Instr, Program, Source, Stmt, each_instr},
};

/// Programs tried at most.
const TRIES: usize = 3000;

/// The smallest program found that fails as `failure` says.
pub(crate) fn shrink(program: &Program, failure: &Failure) -> (Program, Failure) {
    let mut best = (program.clone(), failure.clone());
    let mut tries = 0;
    loop {
        let mut smaller = None;
        for candidate in candidates(&best.0) {
            tries += 1;
            if tries > TRIES {
                return best;
            }
            match check(&candidate) {
                Err(f) if f.class == failure.class => {
                    smaller = Some((candidate, f));
                    break;
                }
                _ => {}
            }
        }
        match smaller {
            Some(found) => best = found,
            None => return best,
        }
    }
}

fn candidates(p: &Program) -> Vec<Program> {
    let mut all = Vec::new();
    for at in 0..p.steps.len() {
        let mut q = p.clone();
        q.steps.remove(at);
        all.push(q);
    }
    for at in 0..p.steps.len() {
        for call in (0..p.steps[at].calls.len()).rev() {
            all.push(without_call(p, at, call));
        }
        let mut q = p.clone();
        q.steps[at].replace.clear();
        all.push(q);
        for write in 0..p.steps[at].writes.len() {
            let mut q = p.clone();
            q.steps[at].writes.remove(write);
            all.push(q);
        }
        let mut q = p.clone();
        q.steps[at].rebuild.clear();
        all.push(q);
        let mut q = p.clone();
        q.steps[at].estimate = false;
        all.push(q);
    }
    // The same call out of every step.
    for call in 0..3 {
        let q = (0..p.steps.len()).fold(p.clone(), |q, at| without_call(&q, at, call));
        all.push(q);
    }
    for (f, func) in p.funcs.iter().enumerate() {
        for edit in 0..edits(&func.body) {
            let mut q = p.clone();
            let mut left = edit;
            apply(&mut q.funcs[f].body, &mut left);
            all.push(q);
        }
        for o in 0..func.outputs.len() {
            if func.outputs.len() > 1 {
                let mut q = p.clone();
                q.funcs[f].outputs.remove(o);
                q.funcs[f].out_types.remove(o);
                all.push(q);
            }
        }
        if p.capture {
            all.push(Program { capture: false, ..p.clone() });
        }
        if func.buckets.is_some() {
            let mut q = p.clone();
            q.funcs[f].buckets = None;
            all.push(q);
        }
    }
    for (at, step) in p.steps.iter().enumerate() {
        for (c, call) in step.calls.iter().enumerate() {
            let mut edit = |change: &dyn Fn(&mut crate::program::Call)| {
                let mut q = p.clone();
                change(&mut q.steps[at].calls[c]);
                all.push(q);
            };
            if call.b > 2 {
                edit(&|c| c.b = 2);
            }
            if call.key > 0 {
                edit(&|c| c.key = 0);
            }
            if call.hold {
                edit(&|c| c.hold = false);
            }
            for fill in 0..call.fills.len() {
                edit(&|c| drop(c.fills.remove(fill)));
                edit(&|c| c.fills[fill].earlier.clear());
                edit(&|c| c.fills[fill].fault = None);
                edit(&|c| c.fills[fill].held = false);
            }
            if call.sources.iter().any(|s| *s != Source::Upload { behind: Vec::new() }) {
                edit(&|c| c.sources.iter_mut().for_each(|s| *s = Source::Upload { behind: Vec::new() }));
            }
        }
    }
    all.retain(|q| q != p);
    all
}

fn without_call(p: &Program, at: usize, gone: usize) -> Program {
    let mut q = p.clone();
    let calls = &mut q.steps[at].calls;
    if gone >= calls.len() {
        return q;
    }
    calls.remove(gone);
    for source in calls.iter_mut().flat_map(|c| &mut c.sources) {
        if let Source::Result { call, .. } | Source::Derived { call, .. } = source {
            match (*call).cmp(&gone) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => *source = Source::Upload { behind: Vec::new() },
                std::cmp::Ordering::Greater => *call -= 1,
            }
        }
    }
    q
}

/// How many ways there are to make a block smaller.
fn block_edits(b: &Block) -> usize {
    let mut inside = 0;
    each_instr(&b.code, &mut |_| inside += 1);
    b.code.len() + b.outs.len() + inside
}

/// Removes the `left`-th instruction of the bodies in some code; whether it was there.
fn cut_inside(code: &mut [Instr], left: &mut usize) -> bool {
    for part in code.iter_mut().filter_map(|i| i.flow.as_mut()).flat_map(|flow| &mut flow.parts) {
        if *left < part.code.len() {
            part.code.remove(*left);
            return true;
        }
        *left -= part.code.len();
        if cut_inside(&mut part.code, left) {
            return true;
        }
    }
    false
}

/// How many ways there are to make a body smaller.
fn edits(body: &[Stmt]) -> usize {
    body.iter()
        .map(|s| {
            1 + match s {
                Stmt::Segment(b) | Stmt::Eager { block: b, .. } => block_edits(b),
                Stmt::Loop { body, .. } => 1 + edits(body),
                Stmt::If { then, other, .. } => 2 + edits(then) + edits(other),
                _ => 0,
            }
        })
        .sum()
}

/// Makes the `left`-th of them; whether it was in this body.
fn apply(body: &mut Vec<Stmt>, left: &mut usize) -> bool {
    for at in 0..body.len() {
        if *left == 0 {
            body.remove(at);
            return true;
        }
        *left -= 1;
        let inline = |n: usize, left: &mut usize| {
            if *left < n {
                return true;
            }
            *left -= n;
            false
        };
        match &mut body[at] {
            Stmt::Segment(b) | Stmt::Eager { block: b, .. } => {
                let n = block_edits(b);
                if *left < n {
                    cut(b, *left);
                    return true;
                }
                *left -= n;
            }
            Stmt::Loop { body: inner, .. } => {
                if inline(1, left) {
                    let inner = std::mem::take(inner);
                    body.splice(at..=at, inner);
                    return true;
                }
                if apply(inner, left) {
                    return true;
                }
            }
            Stmt::If { then, other, .. } => {
                if *left < 2 {
                    let inner = std::mem::take(if *left == 0 { then } else { other });
                    body.splice(at..=at, inner);
                    return true;
                }
                *left -= 2;
                if apply(then, left) || apply(other, left) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// Removes an output, an instruction, or an instruction whose uses take its first argument instead.
fn cut(b: &mut Block, edit: usize) {
    if edit < b.outs.len() {
        b.outs.remove(edit);
        return;
    }
    let mut edit = edit - b.outs.len();
    if edit >= 2 * b.code.len() {
        edit -= 2 * b.code.len();
        cut_inside(&mut b.code, &mut edit);
        return;
    }
    let gone = b.code.remove(b.code.len() - 1 - edit / 2);
    if edit % 2 == 1
        && gone.op != Code::Drop
        && let Some(Arg::Local(first)) = gone.args.first().copied()
    {
        for arg in b.code.iter_mut().flat_map(|i| &mut i.args) {
            if *arg == Arg::Local(gone.dst) {
                *arg = Arg::Local(first);
            }
        }
        for (local, _) in &mut b.outs {
            if *local == gone.dst {
                *local = first;
            }
        }
    }
}
