//! Control flow on the device: branches and loops, nested, whose decisions come from values.

use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};

use crate::{
    instr::Locals,
    program::{Arg, Code, Elem, Flow, FlowKind, Instr, Part, Size, Ty, each_instr},
    value::flow::Decision,
};

/// Whether the program of a seed has control flow.
pub(crate) fn flows(seed: u64) -> bool {
    StdRng::seed_from_u64(seed ^ 0xf10f << 32).random_bool(0.35)
}

/// How deep it nests.
const DEEPEST: usize = 2;

/// Of what a loop carries, the parameter after that at `at` which has its type, if there is another one.
fn exchanged(params: &[usize], types: &[Ty], at: usize) -> Option<usize> {
    let mut others = (at + 1..params.len()).chain(0..at.min(params.len()));
    others.find(|&other| types[other] == types[at]).map(|other| params[other])
}

impl Locals<'_> {
    /// Adds a branch or a loop, if there is something to decide it.
    pub(crate) fn flow(&mut self, rng: &mut StdRng, depth: usize) {
        let Some((args, nums)) = self.decision(rng) else { return };
        let kind =
            *[FlowKind::Cond, FlowKind::Switch, FlowKind::While].choose(rng).unwrap_or(&FlowKind::Cond);
        let carried = if kind == FlowKind::While { self.carried(rng) } else { Vec::new() };
        let before = std::mem::take(&mut self.code);
        let bodies = match kind {
            FlowKind::Cond => 2,
            FlowKind::Switch => rng.random_range(1..5),
            FlowKind::While => 1,
        };
        let mut parts = Vec::new();
        let mut ends = Vec::new();
        for _ in 0..bodies {
            let first = self.types.len();
            let params: Vec<usize> = carried.iter().map(|(_, ty)| self.push(ty.clone())).collect();
            let pinned = self.pinned.len();
            // A round gives something of each type, whatever it drops.
            let pairs = params.iter().zip(&carried);
            self.pinned.extend(pairs.map(|(&param, (t, _))| if rng.random_bool(0.5) { param } else { *t }));
            self.part(rng, depth);
            if rng.random_bool(0.4) {
                self.leave_behind(rng, first);
            }
            self.pinned.truncate(pinned);
            ends.push(self.alive().collect::<Vec<_>>());
            parts.push(Part {
                params,
                code: std::mem::take(&mut self.code),
                outs: Vec::new(),
                first,
                end: 0,
            });
            for ty in &mut self.types[first..] {
                *ty = None;
            }
        }
        self.code = before;
        let types: Vec<Ty> = match kind {
            FlowKind::While => carried.iter().map(|(_, ty)| ty.clone()).collect(),
            _ => self.common(rng, &ends),
        };
        for (part, alive) in parts.iter_mut().zip(&ends) {
            part.end = self.types.len();
            let exchanges = rng.random_bool(0.5);
            for (at, ty) in types.iter().enumerate() {
                let other = exchanged(&part.params, &types, at);
                if let Some(other) = other.filter(|t| exchanges && alive.iter().any(|(a, _)| a == t))
                    && rng.random_bool(0.7)
                {
                    part.outs.push(other);
                    continue;
                }
                let fits: Vec<usize> = alive.iter().filter(|(_, t)| t == ty).map(|(t, _)| *t).collect();
                let late = &fits[fits.len() / 2..];
                part.outs.extend(if rng.random_bool(0.7) { late.choose(rng) } else { fits.choose(rng) });
            }
        }
        let carried = carried.into_iter().map(|(t, _)| t).collect();
        let results: Vec<usize> = types.into_iter().map(|ty| self.push(ty)).collect();
        let padded = self.is_padded(&args);
        let flow = Some(Box::new(Flow { kind, carried, parts, results }));
        self.code.push(Instr { op: Code::Flow, dst: 0, args, nums, branch: None, flow, padded });
    }

    /// The code of a body. Nothing in it may be refused: a body that fails does so whether or not it runs.
    fn part(&mut self, rng: &mut StdRng, depth: usize) {
        for _ in 0..rng.random_range(0..5) {
            match rng.random_range(0..10) {
                0 | 1 if depth < DEEPEST => self.flow(rng, depth + 1),
                2 if !self.pure && depth < DEEPEST => self.fork(rng, 100 * (depth + 1) + self.code.len()),
                3 | 4 if !self.pure => self.draw(rng),
                5 if !self.pure => self.stated(rng),
                6 if self.rules.extended => self.sized(rng),
                _ => self.grow(rng),
            }
            // By a generator of its own: a program without logs is what it always was.
            let mut logged = StdRng::seed_from_u64(self.rules.seed << 31 ^ self.types.len() as u64);
            self.append(&mut logged, 0.2);
        }
    }

    fn push(&mut self, ty: Ty) -> usize {
        self.types.push(Some(ty));
        self.types.len() - 1
    }

    /// What a loop carries: half of the time several values of one type, so that its body can exchange them.
    fn carried(&self, rng: &mut StdRng) -> Vec<(usize, Ty)> {
        let mut carried: Vec<_> =
            (0..rng.random_range(0..4)).filter_map(|_| self.pick(rng, |_| true)).collect();
        if rng.random_bool(0.5)
            && let Some((_, ty)) = self.pick(rng, |_| true)
        {
            let alike: Vec<_> = self.alive().filter(|(_, t)| *t == ty).collect();
            let number = rng.random_range(2..4);
            carried.extend(alike.choose_multiple(rng, number).cloned());
        }
        carried
    }

    /// Drops a value from outside of a body, mostly one that the body uses: the next round needs it, too. What is made
    /// then may not lie where it was.
    fn leave_behind(&mut self, rng: &mut StdRng, first: usize) {
        let mut used = Vec::new();
        each_instr(&self.code, &mut |instr| {
            let args = instr.args.iter().filter_map(|arg| match arg {
                Arg::Local(t) => Some(*t),
                _ => None,
            });
            used.extend(args.chain(instr.flow.iter().flat_map(|flow| flow.carried.iter().copied())));
        });
        let outer: Vec<usize> = self.droppable().filter(|t| *t < first).collect();
        let read: Vec<usize> = outer.iter().copied().filter(|t| used.contains(t)).collect();
        let Some(&t) = read.choose(rng).or_else(|| outer.choose(rng)) else { return };
        self.release(t);
        for _ in 0..rng.random_range(1..3) {
            self.grow(rng);
        }
    }

    /// Types that each body has something of.
    fn common(&self, rng: &mut StdRng, ends: &[Vec<(usize, Ty)>]) -> Vec<Ty> {
        let in_all = |ty: &Ty| ends.iter().all(|end| end.iter().any(|(_, t)| t == ty));
        let all: Vec<&Ty> = ends[0].iter().map(|(_, ty)| ty).filter(|ty| in_all(ty)).collect();
        (0..rng.random_range(0..4)).filter_map(|_| all.choose(rng).copied().cloned()).collect()
    }

    /// A value on the device: an element, a size, or a random number.
    fn decision(&self, rng: &mut StdRng) -> Option<(Vec<Arg>, Vec<usize>)> {
        let has_element = |ty: &Ty| !self.rules.padded || !ty.dims.contains(&Size::B);
        let exact = |ty: &Ty| ty.elem == Elem::U32 || ty.elem == Elem::F32 && !self.rules.approximate;
        let any = self.pick(rng, |_| true)?.0;
        match rng.random_range(0..4) {
            0 if self.rules.generators > 0 && self.may.draw && !self.pure => {
                let generator = rng.random_range(0..self.rules.generators);
                Some((vec![Arg::Local(any), Arg::Generator(generator)], vec![Decision::Drawn as usize]))
            }
            0 | 1 => {
                let (t, ty) = self.pick(rng, |ty| !ty.dims.is_empty())?;
                let axis = rng.random_range(0..ty.dims.len());
                Some((vec![Arg::Local(t)], vec![Decision::Size as usize, axis]))
            }
            _ => {
                let (t, _) = self.pick(rng, |ty| has_element(ty) && exact(ty))?;
                Some((vec![Arg::Local(t)], vec![Decision::Element as usize]))
            }
        }
    }
}
