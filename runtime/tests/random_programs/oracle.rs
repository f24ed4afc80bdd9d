//! The plain meaning of a program: every operation launched on its own, outside any call, on a fresh
//! runtime, and every value of a step kept to its end, so that no memory is used twice.

use graphable::{Result, Runtime, Step, backend::cpu::CpuOptions};

use crate::{
    program::{Block, Call, Count, Func, Kind, Program, Source, Stmt},
    value::{End, Live, Val, nonsense, pending},
    world::{StepOut, World, data_of, derive, grow, seed_of, shape_of, upload},
    written::{self, Versions},
};

/// Outputs, state and decisions of every step.
pub(crate) fn run(program: &Program) -> Result<Vec<StepOut>> {
    let mut rt = Runtime::new(crate::device::device(CpuOptions::default().threads(1)))?;
    let mut world = World::new(&rt, program)?;
    let mut out = Vec::new();
    for at in 0..program.steps.len() {
        world.replace(&rt, program, at)?;
        let versions = written::versions(&rt, program, at)?;
        let step = rt.step()?;
        out.push(one_step(&step, &mut world, program, at, versions)?);
    }
    Ok(out)
}

fn one_step<'s>(
    step: &Step<'s>,
    world: &mut World,
    program: &Program,
    at: usize,
    mut versions: Versions,
) -> Result<StepOut> {
    let plan = &program.steps[at];
    grow(plan.v);
    let picks = program.picks();
    let readers = world.readers(step)?;
    let mut ends = Vec::new();
    let mut machine = Machine { step, world, kept: Vec::new(), decisions: Vec::new() };
    let mut results: Vec<Vec<Val<'s>>> = Vec::new();
    for (index, call) in plan.calls.iter().enumerate() {
        for (_, i, param) in versions.extract_if(.., |(before, ..)| *before == index) {
            machine.world.put_param(i, param);
        }
        let func = program.funcs.get(call.func).ok_or_else(|| nonsense("no such function".into()))?;
        let mut sources = call.sources.iter();
        let mut vars: Vec<Option<Val<'s>>> = vec![None; func.vars];
        for (i, input) in func.inputs.iter().enumerate() {
            let given = || data_of(input, call.b, seed_of(plan.data, index, i));
            let source = if input.kind == Kind::Device { sources.next() } else { None };
            let result = |call: &usize, out: &usize| {
                let found = results.get(*call).and_then(|r: &Vec<Val<'s>>| r.get(*out)).cloned();
                found.ok_or_else(|| nonsense("no such result".into()))
            };
            let val = match source {
                Some(Source::Result { call, out }) => result(call, out)?,
                Some(Source::Derived { call, out }) => derive(&result(call, out)?)?,
                _ => upload(step, &shape_of(&input.ty, call.b), &given())?,
            };
            if val.shape() != shape_of(&input.ty, call.b) {
                return Err(nonsense("an input of another shape".into()));
            }
            // A copy to static memory is contiguous, and the bits of a product depend on the layout of what it multiplies.
            let copied = call.fills.iter().any(|fill| fill.input == i && fill.given);
            vars[i] = Some(if copied && source.is_some() { machine.keep(val.contiguous()?) } else { val });
        }
        let (result, mut end) = match machine.call(func, call, vars) {
            Err(error) => (Vec::new(), Some(End::of(&error).ok_or(error)?)),
            Ok(result) => (result, None),
        };
        if picks {
            let later = pending(step)?;
            end = end.or(later);
        }
        results.push(if end.is_none() { result } else { Vec::new() });
        ends.push(end);
    }
    let calls = results
        .iter()
        .map(|r| r.iter().map(|v| v.read(step)).collect::<Result<_>>())
        .collect::<Result<_>>()?;
    Ok(StepOut { calls, states: machine.world.states(step, readers)?, decisions: machine.decisions, ends })
}

struct Machine<'a, 's> {
    step: &'a Step<'s>,
    world: &'a mut World,
    kept: Vec<Val<'s>>,
    decisions: Vec<u64>,
}

struct Scene<'s> {
    vars: Vec<Option<Val<'s>>>,
    hosts: Vec<u64>,
    pretends: bool,
}

impl<'s> Scene<'s> {
    fn var(&self, v: usize) -> Result<Val<'s>> {
        self.vars.get(v).cloned().flatten().ok_or_else(|| nonsense(format!("v{v} is not there")))
    }

    fn host(&self, h: usize) -> Result<u64> {
        self.hosts.get(h).copied().ok_or_else(|| nonsense(format!("h{h} is not there")))
    }
}

impl<'s> Machine<'_, 's> {
    fn call(&mut self, func: &Func, call: &Call, vars: Vec<Option<Val<'s>>>) -> Result<Vec<Val<'s>>> {
        let mut hosts = vec![0; func.hosts.max(1)];
        hosts[0] = call.key;
        let mut scene = Scene { vars, hosts, pretends: func.buckets.is_some() };
        self.body(&func.body, &mut scene)?;
        func.outputs.iter().map(|&v| scene.var(v)).collect()
    }

    fn keep(&mut self, val: Val<'s>) -> Val<'s> {
        self.kept.push(val.clone());
        val
    }

    fn block(&mut self, block: &Block, scene: &mut Scene<'s>) -> Result<()> {
        let vals = block.ins.iter().map(|&v| scene.var(v)).collect::<Result<_>>()?;
        let keys = block.keys.iter().map(|&h| scene.host(h)).collect::<Result<_>>()?;
        let live = Live::of(block, vals, keys, self.world.owned(block)?, scene.pretends);
        let outs = live.run_plainly(&mut self.kept, self.step)?;
        for (&(_, v), val) in block.outs.iter().zip(outs) {
            self.kept.push(val.clone());
            scene.vars[v] = Some(val);
        }
        Ok(())
    }

    fn body(&mut self, body: &[Stmt], scene: &mut Scene<'s>) -> Result<()> {
        for stmt in body {
            match stmt {
                Stmt::Segment(block) | Stmt::Eager { block, .. } => self.block(block, scene)?,
                Stmt::Read { var, host, .. } => {
                    let digest = scene.var(*var)?.read(self.step)?.digest();
                    self.decisions.push(digest);
                    scene.hosts[*host] = digest;
                }
                Stmt::Loop { count, body } => {
                    let times = match count {
                        Count::Times(n) => *n as u64,
                        Count::Host(h) => scene.host(*h)?,
                    };
                    for _ in 0..times {
                        self.body(body, scene)?;
                    }
                }
                Stmt::If { cond, then, other } => {
                    let odd = scene.host(*cond)? % 2 == 1;
                    self.body(if odd { then } else { other }, scene)?;
                }
                // Kept for ever, but gone for the program.
                Stmt::Drop(v) => scene.vars[*v] = None,
                Stmt::Copy { from, to } => scene.vars[*to] = Some(scene.var(*from)?),
            }
        }
        Ok(())
    }
}
