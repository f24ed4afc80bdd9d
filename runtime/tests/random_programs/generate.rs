//! Makes programs that are well-typed by construction: the generator knows the shape of every value,
//! with the call's size `B` as a symbol.

use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};

use crate::{
    blocks, drawn, fills, flow,
    instr::{Locals, May},
    logged,
    program::{
        Block, Call, Code, Count, Elem, Func, Host, Input, Kind, Program, Size, Source, StepPlan, Stmt, Ty,
        Var, any_code,
    },
    stated, written,
};

/// Sizes of rows of parameters, states and inputs: few, so that they meet often.
pub(crate) const WIDTHS: [usize; 3] = [2, 4, 6];
/// Rows of tables and states.
pub(crate) const ROWS: usize = 5;

/// What holds for the whole program.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// The seed of the program.
    pub(crate) seed: u64,
    /// `B` is padded: no operation may mix its rows.
    pub(crate) padded: bool,
    /// Values may differ in the last bits between runs: nothing may jump on a small difference.
    pub(crate) approximate: bool,
    /// Sizes are used as such, memory is estimated, graph objects and parameters are made anew. By generators of
    /// their own, so that the other programs are what they always were.
    pub(crate) extended: bool,
    /// No segment and no output has the size that changes.
    pub(crate) apart: bool,
    /// There is control flow on the device.
    pub(crate) flows: bool,
    pub(crate) params: Vec<Vec<usize>>,
    pub(crate) states: Vec<Vec<usize>>,
    /// Generators of random numbers.
    pub(crate) generators: usize,
    /// States with marks of tokens.
    pub(crate) marks: usize,
    /// Logs.
    pub(crate) logs: usize,
    /// Weights in blocks.
    pub(crate) blocks: Vec<(usize, usize)>,
}

/// The program of a seed.
pub(crate) fn program(seed: u64) -> Program {
    let mut rng = StdRng::seed_from_u64(seed);
    let rng = &mut rng;
    let capturable = rng.random_bool(0.3);
    let padded = rng.random_bool(0.35);
    let approximate = padded && rng.random_bool(0.6);
    let mut params = Vec::new();
    for _ in 0..rng.random_range(1..4) {
        let (a, b) = (width(rng), width(rng));
        params.push(match rng.random_range(0..3) {
            0 => vec![a],
            1 => vec![a, b],
            _ => vec![ROWS, a],
        });
    }
    let mut states: Vec<Vec<usize>> = (0..rng.random_range(0..3)).map(|_| vec![ROWS, width(rng)]).collect();
    states.extend(stated::states(seed));
    let marks = stated::marks(seed, &states);
    let logs = logged::logs(seed, &states);
    let (extended, apart) = ([1, 3, 5, 6].contains(&(seed % 7)), seed.is_multiple_of(2));
    let (params_of, states_of) = (params.clone(), states.clone());
    let generators = drawn::generators(seed);
    let rules = Rules {
        seed,
        padded,
        approximate,
        extended,
        apart,
        flows: flow::flows(seed),
        params: params_of,
        states: states_of,
        generators,
        marks,
        logs,
        blocks: blocks::weights(seed),
    };
    let funcs: Vec<Func> = (0..rng.random_range(1..4)).map(|_| function(rng, &rules, capturable)).collect();
    let mut steps = steps(rng, &funcs, &params);
    fills::draw(&mut steps, &funcs, seed);
    written::draw(&mut steps, seed, params.len());
    if extended {
        disturb(&mut steps, seed, funcs.len(), params.len());
    }
    let capture = rng.random_bool(0.4);
    let trip = (states.is_empty() && rng.random_bool(0.7)).then(|| rng.random_range(1..20));
    let program = Program {
        seed,
        params,
        states,
        generators,
        marks,
        logs,
        blocks: rules.blocks,
        funcs,
        steps,
        capturable,
        capture,
        trip,
        approximate,
        apart,
    };
    // A body that fails before its fault is reported has none.
    let trip = if program.picks() || !program.is_pure() { None } else { program.trip };
    Program { trip, ..program }
}

/// What happens between the steps, besides.
fn disturb(steps: &mut [StepPlan], seed: u64, funcs: usize, params: usize) {
    let mut own = StdRng::seed_from_u64(seed ^ 0x5eed << 32);
    let (often, twins) = (own.random_bool(0.3), own.random_bool(0.5));
    for (at, step) in steps.iter_mut().enumerate() {
        step.v = [1, 40, 65, 300, 700][own.random_range(0..5)];
        step.twin = twins && own.random_bool(0.4);
        step.estimate = at > 0 && own.random_bool(0.25);
        if own.random_bool(if often { 0.5 } else { 0.1 }) {
            step.rebuild = vec![own.random_range(0..funcs)];
        }
        if own.random_bool(if often { 0.4 } else { 0.05 }) {
            step.replace = vec![own.random_range(0..params)];
        }
    }
}

fn width(rng: &mut StdRng) -> usize {
    WIDTHS[rng.random_range(0..WIDTHS.len())]
}

// ---- functions

struct Gen<'a> {
    rng: &'a mut StdRng,
    rules: &'a Rules,
    capturable: bool,
    /// What can be used now.
    live: Vec<(Var, Ty)>,
    hosts: Vec<Host>,
    vars: usize,
    host_count: usize,
    sites: usize,
    /// Statements that may still be made.
    budget: usize,
    fails: bool,
    /// What blocks of it may still do.
    may: May,
}

fn function(rng: &mut StdRng, rules: &Rules, capturable: bool) -> Func {
    let mut inputs = vec![input(rng, true, rules)];
    for _ in 0..rng.random_range(0..4) {
        let with_b = rng.random_bool(0.6);
        inputs.push(input(rng, with_b, rules));
    }
    let buckets = (rules.padded && rng.random_bool(0.85)).then(|| match rng.random_range(0..3) {
        0 => vec![4, 8],
        1 => vec![1, 2, 4, 8],
        _ => vec![8],
    });
    let live = inputs.iter().enumerate().map(|(v, i)| (v, i.ty.clone())).collect();
    let budget = rng.random_range(2..12);
    let dims = rng.random_bool(0.7);
    let vars = inputs.len();
    let fails = rng.random_bool(0.12) && (!capturable || rules.states.is_empty());
    // A body that fails does so whether or not it runs.
    let blamed = rules.extended && rules.states.is_empty() && !fails && !rules.flows;
    let mut own = StdRng::seed_from_u64(rules.seed << 20 ^ vars as u64);
    let may = match own.random_range(0..6) {
        // Few programs have a padded size at hand.
        0..=3 if blamed && rules.padded => May { number: true, ..May::default() },
        0 | 1 if blamed => May { number: true, ..May::default() },
        2..=4 if blamed => May { pick: true, ..May::default() },
        _ => May { draw: !fails, ..May::default() },
    };
    let hosts = vec![0];
    let mut g =
        Gen { rng, rules, capturable, live, hosts, vars, host_count: 1, sites: 0, budget, fails, may };
    let mut body = g.body(0);
    if g.sites == 0 {
        let block = g.block(May::default());
        body.extend(block.map(Stmt::Segment));
    }
    let mut outputs = Vec::new();
    let mut out_types = Vec::new();
    let mut live = g.live.clone();
    live.retain(|(_, ty)| !rules.apart || !ty.dims.contains(&Size::V));
    for _ in 0..g.rng.random_range(1..4) {
        // Mostly what was made last; sometimes an input, or a value twice.
        let from = if g.rng.random_bool(0.7) { live.len().saturating_sub(3) } else { 0 };
        if let Some((v, ty)) = live[from..].choose(g.rng) {
            outputs.push(*v);
            out_types.push(ty.clone());
        }
    }
    let (vars, hosts, sites) = (g.vars, g.host_count, g.sites);
    let fails = fails || any_code(&body, &|op| matches!(op, Code::Pick | Code::EmbedPick | Code::Number));
    Func { inputs, buckets, dims, body, outputs, out_types, vars, hosts, sites, fails }
}

fn input(rng: &mut StdRng, with_b: bool, rules: &Rules) -> Input {
    let first = if with_b { Size::B } else { Size::N(width(rng)) };
    let pick = rng.random_range(0..if with_b { 7 } else { 9 });
    let floats = |dims: Vec<Size>| Ty { elem: Elem::F32, dims, bound: 0 };
    let ids = |dims: Vec<Size>| Ty { elem: Elem::U32, dims, bound: ROWS };
    let row = Size::N(match rules.params.choose(rng) {
        Some(p) => p[p.len() - 1],
        None => width(rng),
    });
    match pick {
        0 | 1 => Input { kind: Kind::Host, ty: floats(vec![first, row]) },
        2 => Input { kind: Kind::Host, ty: ids(vec![first]) },
        3 | 4 => Input { kind: Kind::Device, ty: floats(vec![first, row]) },
        5 => Input { kind: Kind::Device, ty: ids(vec![first]) },
        6 => Input { kind: Kind::Device, ty: floats(vec![row, first]) },
        7 => Input { kind: Kind::Scalar, ty: floats(Vec::new()) },
        _ => Input { kind: Kind::Scalar, ty: ids(Vec::new()) },
    }
}

impl Gen<'_> {
    fn site(&mut self) -> usize {
        self.sites += 1;
        self.sites - 1
    }

    fn body(&mut self, depth: usize) -> Vec<Stmt> {
        let mut body = Vec::new();
        let most = if depth == 0 { 12 } else { 4 };
        for _ in 0..most {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            self.stmt(depth, &mut body);
        }
        body
    }

    fn stmt(&mut self, depth: usize, body: &mut Vec<Stmt>) {
        let pick = self.rng.random_range(0..20);
        match pick {
            0..=8 => body.extend(self.block(May::default()).map(Stmt::Segment)),
            9..=11 => {
                let capturable = self.capturable || self.rng.random_bool(0.2);
                let may = May { grow: self.rules.extended && !capturable, ..May::default() };
                body.extend(self.block(may).map(|block| Stmt::Eager { block, capturable }));
            }
            12 | 13 if !self.capturable => {
                let readable: Vec<Var> = self
                    .live
                    .iter()
                    .filter(|(_, ty)| !self.rules.approximate || ty.elem == Elem::U32)
                    .map(|(v, _)| *v)
                    .collect();
                if let Some(&var) = readable.choose(self.rng) {
                    let (site, host) = (self.site(), self.host_count);
                    self.host_count += 1;
                    self.hosts.push(host);
                    body.push(Stmt::Read { site, var, host });
                }
            }
            14 | 15 if depth < 2 => {
                let count = match self.hosts.choose(self.rng) {
                    Some(&h) if self.rng.random_bool(0.5) => Count::Host(h),
                    _ => Count::Times(self.rng.random_range(1..4)),
                };
                // What the loop's body drops would be missing the second time.
                let (inner, _) = self.scope(depth, false);
                body.push(Stmt::Loop { count, body: inner });
            }
            16 | 17 if depth < 2 => {
                let cond = *self.hosts.choose(self.rng).unwrap_or(&0);
                let (then, gone) = self.scope(depth, true);
                let (other, more) = self.scope(depth, true);
                // Dropped on one path, alive on the other: used on none.
                self.live.retain(|(v, _)| !gone.contains(v) && !more.contains(v));
                body.push(Stmt::If { cond, then, other });
            }
            18 => {
                if self.live.len() > 2 {
                    let at = self.rng.random_range(0..self.live.len());
                    body.push(Stmt::Drop(self.live.remove(at).0));
                }
            }
            _ => {
                if let Some((from, ty)) = self.live.choose(self.rng).cloned() {
                    let to = self.target(&ty);
                    body.push(Stmt::Copy { from, to });
                }
            }
        }
    }

    /// A nested block: its variables go at its end. Gives the outer variables that it dropped.
    fn scope(&mut self, depth: usize, may_drop: bool) -> (Vec<Stmt>, Vec<Var>) {
        let (outer, hosts) = (self.live.clone(), self.hosts.clone());
        let mut body = self.body(depth + 1);
        if !may_drop {
            fn keep(body: &mut Vec<Stmt>, outer: &[(Var, Ty)]) {
                body.retain(|s| !matches!(s, Stmt::Drop(v) if outer.iter().any(|(o, _)| o == v)));
                for s in body {
                    match s {
                        Stmt::Loop { body, .. } => keep(body, outer),
                        Stmt::If { then, other, .. } => {
                            keep(then, outer);
                            keep(other, outer);
                        }
                        _ => {}
                    }
                }
            }
            keep(&mut body, &outer);
        }
        let inner: Vec<Var> =
            self.live.iter().map(|(v, _)| *v).filter(|v| !outer.iter().any(|(o, _)| o == v)).collect();
        body.extend(inner.into_iter().map(Stmt::Drop));
        let gone = outer.iter().map(|(v, _)| *v).filter(|v| !self.live.iter().any(|(l, _)| l == v)).collect();
        self.live = outer;
        self.hosts = hosts;
        (body, if may_drop { gone } else { Vec::new() })
    }

    /// Where a value goes: to a new variable, or to one of its type.
    fn target(&mut self, ty: &Ty) -> Var {
        let same: Vec<Var> = self.live.iter().filter(|(_, t)| t == ty).map(|(v, _)| *v).collect();
        match same.choose(self.rng) {
            Some(&v) if self.rng.random_bool(0.4) => v,
            _ => {
                self.vars += 1;
                self.live.push((self.vars - 1, ty.clone()));
                self.vars - 1
            }
        }
    }

    fn block(&mut self, may: May) -> Option<Block> {
        let mut ins: Vec<Var> = Vec::new();
        let mut locals = Locals::new(self.rules);
        locals.may = May { grow: may.grow, ..self.may };
        let mut usable = self.live.clone();
        // Regions may have anything.
        usable.retain(|(_, ty)| may.grow || !self.rules.apart || !ty.dims.contains(&Size::V));
        for _ in 0..self.rng.random_range(1..5) {
            // The latest values are the likeliest.
            let from = if self.rng.random_bool(0.5) { usable.len().saturating_sub(3) } else { 0 };
            let (v, ty) = usable[from..].choose(self.rng)?.clone();
            if !ins.contains(&v) {
                ins.push(v);
                locals.input(ty);
            }
        }
        let mut shapes = StdRng::seed_from_u64(self.rules.seed << 22 ^ self.sites as u64);
        let by_shape = self.rules.extended && shapes.random_bool(0.25);
        if by_shape {
            if shapes.random_bool(0.6) {
                ins.truncate(1);
            }
            locals.only_the_shape(ins.len());
        }
        let keys: Vec<Host> = if self.rng.random_bool(0.3) {
            self.hosts.choose(self.rng).copied().into_iter().collect()
        } else {
            Vec::new()
        };
        locals.keys = keys.len();
        // By a generator of their own, so that a seed without forks gives the program that it always gave.
        let mut own = StdRng::seed_from_u64(self.rules.seed << 16 ^ self.sites as u64);
        let mut sized = StdRng::seed_from_u64(self.rules.seed << 18 ^ self.sites as u64);
        let mut drawn = StdRng::seed_from_u64(self.rules.seed << 24 ^ self.sites as u64);
        let mut stated = StdRng::seed_from_u64(self.rules.seed << 26 ^ self.sites as u64);
        let mut logged = StdRng::seed_from_u64(self.rules.seed << 30 ^ self.sites as u64);
        let mut blocks = StdRng::seed_from_u64(self.rules.seed << 34 ^ self.sites as u64);
        let mut again = StdRng::seed_from_u64(self.rules.seed << 32 ^ self.sites as u64);
        let grown = if may.grow && sized.random_bool(0.5) { locals.grown(&mut sized) } else { None };
        for _ in 0..self.rng.random_range(1..9) {
            if self.rules.extended && sized.random_bool(0.3) {
                locals.sized(&mut sized);
            }
            if self.fails && !keys.is_empty() && self.rng.random_bool(0.2) {
                locals.fail(self.rng);
            }
            locals.grow(self.rng);
            if self.rules.seed % 4 == 3 && again.random_bool(0.4) {
                locals.again(&mut again);
            }
            if drawn.random_bool(0.3) {
                locals.draw(&mut drawn);
            }
            if stated.random_bool(0.4) {
                locals.stated(&mut stated);
            }
            locals.append(&mut logged, 0.2);
            locals.blocks(&mut blocks, 0.35);
        }
        self.may.pick &= locals.may.pick;
        let mut flow = StdRng::seed_from_u64(self.rules.seed << 28 ^ self.sites as u64);
        if self.rules.flows && !self.fails && flow.random_bool(0.6) {
            locals.flow(&mut flow, 0);
            (0..flow.random_range(0..3)).for_each(|_| locals.grow(&mut flow));
        }
        if own.random_bool(0.2) {
            locals.may.pick = false;
            locals.fork(&mut own, 0);
            (0..own.random_range(0..3)).for_each(|_| locals.grow(&mut own));
            if own.random_bool(0.3) {
                locals.fork(&mut own, 1);
            }
        }
        let mut outs = Vec::new();
        if let Some((t, ty)) = grown.filter(|(t, _)| locals.is_there(*t)) {
            outs.push((t, self.target(&ty)));
        }
        for _ in 0..self.rng.random_range(1..4) {
            if let Some((t, ty)) = locals.choose(self.rng) {
                let v = self.target(&ty);
                if !outs.iter().any(|&(_, o)| o == v) {
                    outs.push((t, v));
                }
            }
        }
        Some(Block { site: self.site(), ins, by_shape, keys, code: locals.code, outs })
    }
}

// ---- steps

fn steps(rng: &mut StdRng, funcs: &[Func], params: &[Vec<usize>]) -> Vec<StepPlan> {
    let count = rng.random_range(4..9);
    let templates: Vec<Vec<Call>> = (0..rng.random_range(1..4)).map(|_| calls(rng, funcs)).collect();
    let steady = rng.random_bool(0.5);
    (0..count)
        .map(|at| {
            let template =
                if steady { at * templates.len() / count } else { rng.random_range(0..templates.len()) };
            let replace =
                if rng.random_bool(0.12) { vec![rng.random_range(0..params.len())] } else { Vec::new() };
            let calls = templates[template].clone();
            StepPlan {
                replace,
                writes: Vec::new(),
                rebuild: Vec::new(),
                twin: false,
                estimate: false,
                v: 1,
                calls,
                data: rng.random(),
            }
        })
        .collect()
}

fn calls(rng: &mut StdRng, funcs: &[Func]) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let b = rng.random_range(1..8);
    let twice = rng.random_bool(0.3);
    for at in 0..rng.random_range(1..4) {
        let func = match calls.first() {
            Some(first) if twice && at == 1 => first.func,
            _ => rng.random_range(0..funcs.len()),
        };
        let b = if rng.random_bool(0.8) { b } else { rng.random_range(1..8) };
        let key = rng.random_range(0..3);
        let sources = funcs[func]
            .inputs
            .iter()
            .filter(|i| i.kind == Kind::Device)
            .map(|i| {
                let mut fits = Vec::new();
                for (c, call) in calls.iter().enumerate().filter(|(_, c)| c.b == b && !funcs[c.func].fails) {
                    for (o, ty) in funcs[call.func].out_types.iter().enumerate() {
                        if ty.elem == i.ty.elem
                            && ty.dims == i.ty.dims
                            && (i.ty.bound == 0 || (1..=i.ty.bound).contains(&ty.bound))
                        {
                            fits.push((c, o));
                        }
                    }
                }
                match fits.choose(rng) {
                    Some(&(call, out)) if rng.random_bool(0.6) => Source::Result { call, out },
                    Some(&(call, out)) if rng.random_bool(0.5) => Source::Derived { call, out },
                    _ if rng.random_bool(0.3) => Source::Upload { behind: vec![rng.random_range(1..300)] },
                    _ => Source::Upload { behind: Vec::new() },
                }
            })
            .collect();
        calls.push(Call { func, b, key, sources, hold: rng.random_bool(0.6), fills: Vec::new() });
    }
    calls
}
