//! Random functions, as text: bindings and shadowing, conditions, closures, patterns, loops and jumps, with boundaries
//! anywhere among them.

mod assigned;
mod beside_boundaries;
mod closures;
mod device_flow;
mod exclusive;
mod host_moved;
mod macros_of_functions;
mod moved_by_patterns;
mod named_before;
mod passed_over;
mod taken_names;

use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};

use crate::program::{Part, Program, Stmt};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Tensor,
    /// `&Tensor`.
    Ref,
    Host,
    Closure,
    /// `Vec<Tensor>`.
    List,
    /// A name that must not be used: moved away, or not given a value yet.
    Gone,
}

#[derive(Clone)]
struct Var {
    name: String,
    kind: Kind,
    mutable: bool,
    /// Borrowed by something that is alive.
    held: bool,
    /// How many loops stand around it, and how many blocks.
    loops: usize,
    blocks: usize,
}

/// What is in scope.
#[derive(Clone, Default)]
struct Scope {
    vars: Vec<Var>,
    loops: usize,
    blocks: usize,
    /// Labels of loops around, and whether a plain `break` has a target.
    labels: Vec<String>,
}

pub(crate) fn program(seed: u64) -> Program {
    let mut rng = StdRng::seed_from_u64(seed);
    let by_macro = rng.random_bool(0.25);
    let whole = rng.random_bool(0.4);
    let conditions = rng.random_bool(0.5);
    let mut g = Generator { rng, by_macro, whole, conditions, fresh: 0, device: 0 };
    let mut scope = Scope::default();
    for name in ["x", "y"] {
        scope.add(name, Kind::Ref, false);
    }
    scope.add("n", Kind::Host, false);
    let length = g.rng.random_range(4..10);
    let mut body = g.block(&mut scope, length, 3);
    // A region somewhere, so that there is something to compare.
    let last = g.region(&scope);
    body.push(Stmt::text(format!("let last = {last};")));
    scope.add("last", Kind::Tensor, false);
    body.extend(g.tail(&scope));
    Program { seed, by_macro, body }
}

impl Scope {
    fn add(&mut self, name: &str, kind: Kind, mutable: bool) {
        let (loops, blocks) = (self.loops, self.blocks);
        self.vars.push(Var { name: name.to_owned(), kind, mutable, held: false, loops, blocks });
    }

    /// The scope of a block inside.
    fn nested(&self) -> Self {
        Self { blocks: self.blocks + 1, ..self.clone() }
    }

    /// What each name means now.
    fn visible(&self) -> impl Iterator<Item = &Var> {
        let hidden = |at: usize, v: &Var| self.vars[at + 1..].iter().any(|w| w.name == v.name);
        self.vars.iter().enumerate().filter(move |(at, v)| !hidden(*at, v)).map(|(_, v)| v)
    }

    fn of(&self, kind: Kind) -> Vec<&Var> {
        self.visible().filter(|v| v.kind == kind).collect()
    }

    /// Names of tensors that can be assigned.
    fn assignable(&self) -> Vec<String> {
        let all = self.visible().filter(|v| v.kind == Kind::Tensor && v.mutable && !v.held);
        all.map(|v| v.name.clone()).collect()
    }

    fn update(&mut self, name: &str, f: impl FnOnce(&mut Var)) {
        if let Some(v) = self.vars.iter_mut().rev().find(|v| v.name == name) {
            f(v);
        }
    }

    fn hold(&mut self, name: &str) {
        self.update(name, |v| v.held = true);
    }
}

struct Generator {
    rng: StdRng,
    by_macro: bool,
    /// Every boundary can be captured, so that full mode has something to do.
    whole: bool,
    conditions: bool,
    fresh: usize,
    /// How many arms of control flow of the device are around.
    device: usize,
}

impl Generator {
    fn chance(&mut self, p: f64) -> bool {
        self.rng.random_bool(p)
    }

    fn pick(&mut self, of: &[&'static str]) -> &'static str {
        of.choose(&mut self.rng).expect("something to choose from")
    }

    fn name(&mut self) -> String {
        let names: &[&str] =
            if self.by_macro { &["a", "h", "$a", "$h", "t", "$a", "$h"] } else { &["a", "b", "h", "t", "u"] };
        self.pick(names).to_owned()
    }

    fn host_name(&mut self) -> String {
        self.pick(&["k", "i", "w"]).to_owned()
    }

    /// A reference to a tensor.
    fn tensor(&mut self, scope: &Scope) -> String {
        let mut all: Vec<String> = scope.of(Kind::Tensor).iter().map(|v| format!("&{}", v.name)).collect();
        // What was made lately is of most interest.
        let lately: Vec<String> = all.iter().rev().take(2).cloned().collect();
        all.extend(lately);
        all.extend(scope.of(Kind::Ref).iter().map(|v| v.name.clone()));
        all.choose(&mut self.rng).expect("`x` is there").clone()
    }

    fn number(&mut self, scope: &Scope) -> String {
        let hosts: Vec<String> = scope.of(Kind::Host).iter().map(|v| v.name.clone()).collect();
        match hosts.choose(&mut self.rng) {
            Some(name) if self.rng.random_bool(0.6) => name.clone(),
            _ => self.pick(&["0", "1", "2", "3"]).to_owned(),
        }
    }

    fn float(&mut self, scope: &Scope) -> String {
        match self.rng.random_range(0..4) {
            0 => format!("{} as f32", self.number(scope)),
            1 => "m.gain".to_owned(),
            _ => self.pick(&["0.5", "2.0", "-1.0"]).to_owned(),
        }
    }

    fn condition(&mut self, scope: &Scope) -> String {
        let n = self.number(scope);
        match self.rng.random_range(0..4) {
            0 => format!("{n} % 2 == 1"),
            1 => format!("{n} > {}", self.pick(&["0", "1", "2"])),
            2 => format!("n == {}", self.pick(&["1", "2", "3"])),
            _ => {
                let t = self.tensor(scope);
                format!("({t}).rank() == 1 && {n} != 2")
            }
        }
    }

    /// A result of a tensor, by device work.
    fn work(&mut self, scope: &Scope) -> String {
        let a = self.tensor(scope);
        let b = if self.chance(0.15) { format!("&{}?", self.work(scope)) } else { self.tensor(scope) };
        let closures: Vec<String> = scope.of(Kind::Closure).iter().map(|v| v.name.clone()).collect();
        match self.rng.random_range(0..9) {
            0 => format!("ops::neg({a})"),
            1 => format!("ops::sub({a}, {b})"),
            2 => format!("ops::scale({a}, {})", self.float(scope)),
            3 => format!("ops::mul({a}, &m.w)"),
            4 => format!("ops::add({a}, &m.layers[{}].a)", self.pick(&["0", "1", "2", "n % 3"])),
            5 => format!("mix({a}, {b})"),
            6 if !closures.is_empty() => format!("{}({a})", closures.choose(&mut self.rng).expect("one")),
            7 => "ops::load(x.scope(), &kv.s)".to_owned(),
            _ => format!("ops::add({a}, {b})"),
        }
    }

    fn eager(&mut self) -> String {
        if self.device > 0 {
            return String::new();
        }
        let arguments =
            if self.whole { "(support = Always)" } else { self.pick(&["", "", "(support = Always)"]) };
        let under = self.conditions && self.chance(0.1);
        if under {
            format!("⟦cfg_attr(on, eager{arguments})⟧")
        } else {
            format!("⟦eager{arguments}⟧")
        }
    }

    /// A region, with its `?`.
    fn region(&mut self, scope: &Scope) -> String {
        if self.device > 0 {
            return format!("{}?", self.work(scope));
        }
        let (mark, a, b) = (self.eager(), self.tensor(scope), self.tensor(scope));
        match self.rng.random_range(0..5) {
            0 => format!("{mark}mix({a}, {b})?"),
            1 => format!("{mark}{{ let t = att({a})?; ops::add(&t, {b})? }}"),
            _ => format!("{mark}att({a})?"),
        }
    }

    /// A tensor, with its `?`.
    fn value(&mut self, scope: &Scope) -> String {
        if self.chance(0.3) { self.region(scope) } else { format!("{}?", self.work(scope)) }
    }

    fn block(&mut self, scope: &mut Scope, length: usize, depth: usize) -> Vec<Stmt> {
        let mut out = Vec::new();
        for _ in 0..length {
            let before = scope.clone();
            let stmts = self.statement(scope, depth);
            if self.conditions && self.chance(0.15) {
                // One that is not there, which may hide, write or leave.
                let mut other = before.clone();
                let absent = self.statement(&mut other, depth);
                let absent =
                    absent.into_iter().map(|s| if s.condition.is_none() { s.under("off") } else { s });
                if self.chance(0.5) {
                    let absent: Vec<Stmt> = absent.collect();
                    out.extend(absent);
                    out.extend(stmts);
                } else {
                    out.extend(stmts);
                    out.extend(absent);
                }
            } else if self.conditions && self.chance(0.15) {
                out.extend(stmts.into_iter().map(|s| if s.condition.is_none() { s.under("on") } else { s }));
            } else {
                out.extend(stmts);
            }
        }
        out
    }

    /// A block with a value: a tensor, or with `result` a result of one.
    fn valued(&mut self, scope: &Scope, depth: usize, result: bool) -> Part {
        let mut inner = scope.nested();
        let length = self.rng.random_range(0..3);
        let mut stmts = self.block(&mut inner, length, depth);
        let value = if result { self.work(&inner) } else { self.value(&inner) };
        stmts.push(Stmt::text(value));
        Part::Block(stmts)
    }

    fn inner(&mut self, scope: &Scope, depth: usize) -> Vec<Stmt> {
        let length = self.rng.random_range(1..4);
        self.block(&mut scope.nested(), length, depth)
    }

    fn looped(&mut self, scope: &Scope, depth: usize, label: Option<&str>, given: &[&str]) -> Vec<Stmt> {
        let mut inner = scope.nested();
        inner.loops += 1;
        inner.labels.extend(label.map(str::to_owned));
        given.iter().for_each(|name| inner.add(name, Kind::Host, false));
        let length = self.rng.random_range(1..4);
        let mut stmts = self.block(&mut inner, length, depth);
        if self.chance(0.4) {
            let jump = match (self.rng.random_range(0..3), inner.labels.last()) {
                (0, _) => "break".to_owned(),
                (1, Some(label)) => format!("{} {label}", self.pick(&["break", "continue"])),
                _ => "continue".to_owned(),
            };
            let condition = self.condition(&inner);
            let at = self.rng.random_range(0..=stmts.len());
            // Names of this block may not be there yet, so the condition is one of those outside.
            let condition = if at == stmts.len() { condition } else { self.condition(scope) };
            let jump = Stmt::text(format!("{jump};"));
            let jump = if self.conditions && self.chance(0.3) {
                jump.under(self.pick(&["on", "off"]))
            } else {
                jump
            };
            stmts.insert(
                at,
                Stmt {
                    condition: None,
                    parts: vec![Part::Text(format!("if {condition} ")), Part::Block(vec![jump])],
                },
            );
        }
        stmts.extend(self.passed_over(&inner));
        stmts
    }

    fn statement(&mut self, scope: &mut Scope, depth: usize) -> Vec<Stmt> {
        let text = |text: String| vec![Stmt::text(text)];
        let mutable = scope.assignable();
        // Code after a block often needs what is around it.
        let from_around = self.chance(0.2);
        let owned: Vec<String> = scope
            .visible()
            .filter(|v| v.kind == Kind::Tensor && !v.held && v.loops == scope.loops)
            .filter(|v| from_around || v.blocks == scope.blocks)
            // What arms assign leaves them, so it cannot be moved there.
            .filter(|v| self.device == 0 || !v.mutable)
            .map(|v| v.name.clone())
            .collect();
        let choice = if depth == 0 { self.rng.random_range(0..16) } else { self.rng.random_range(0..50) };
        match choice {
            // Nothing leaves an arm, and an error in it would be one of every call.
            5 | 11 | 15 | 24 | 31 if self.device > 0 => {
                let (name, n) = (self.host_name(), self.number(scope));
                scope.add(&name, Kind::Host, false);
                text(format!("let {name} = {n} + 1;"))
            }
            10 if self.device > 0 && owned.is_empty() => Vec::new(),
            0..3 => {
                let (name, mut value) = (self.name(), self.value(scope));
                if !self.whole && self.device == 0 && self.chance(0.07) {
                    let edge = self.pick(&["early", "late"]);
                    value = format!("⟦eager({edge})⟧att({})?", self.tensor(scope));
                }
                let mutable = self.chance(0.6);
                scope.add(&name, Kind::Tensor, mutable);
                text(format!("let {}{name} = {value};", if mutable { "mut " } else { "" }))
            }
            3 | 4 => match mutable.choose(&mut self.rng) {
                Some(name) => {
                    let value = self.value(scope);
                    text(format!("{name} = {value};"))
                }
                None => {
                    let (name, value) = (self.name(), self.region(scope));
                    scope.add(&name, Kind::Tensor, true);
                    text(format!("let mut {name} = {value};"))
                }
            },
            5 => {
                let (name, n) = (self.host_name(), self.number(scope));
                let value = match self.rng.random_range(0..6) {
                    0 => format!("⟦key⟧let {name} = {}count({n});", self.eager()),
                    1 if !self.whole => format!("⟦host⟧let {name} = count({n});"),
                    2 => format!("let {name} = count({n});"),
                    3 => format!("let {name} = m.layers.len() + {n};"),
                    _ => format!("let {name} = {n} + 1;"),
                };
                scope.add(&name, Kind::Host, false);
                text(value)
            }
            6 => {
                // A reference to what stays as it is from here on.
                let (name, t) = (self.name(), self.tensor(scope));
                scope.hold(t.trim_start_matches('&'));
                scope.add(&name, Kind::Ref, false);
                text(format!("let {name} = {t};"))
            }
            7 => self.closure(scope),
            8 => {
                let t = self.tensor(scope);
                let mark = if self.chance(0.3) { self.eager() } else { String::new() };
                text(format!("{mark}ops::store(&kv.s, {t})?;"))
            }
            9 => {
                let (one, two) = (self.value(scope), format!("{}?", self.work(scope)));
                let (a, b) = (self.name(), self.name());
                if a == b {
                    return text(format!("let _ = {two};"));
                }
                let pair = self.chance(0.4);
                if pair {
                    let (l, r) = (self.tensor(scope), self.tensor(scope));
                    let mark = if self.chance(0.5) { self.eager() } else { String::new() };
                    scope.add(&a, Kind::Tensor, true);
                    scope.add(&b, Kind::Tensor, false);
                    return text(format!("let Pair {{ l: mut {a}, r: {b} }} = {mark}pair({l}, {r})?;"));
                }
                let one = if one.contains('⟦') { two.clone() } else { one };
                scope.add(&a, Kind::Tensor, false);
                scope.add(&b, Kind::Tensor, true);
                text(format!("let ({a}, mut {b}) = ({one}, {two});"))
            }
            10 => match owned.choose(&mut self.rng) {
                // A move.
                Some(from) => {
                    let name = self.name();
                    let from = from.clone();
                    scope.update(&from, |v| v.kind = Kind::Gone);
                    scope.add(&name, Kind::Tensor, true);
                    text(format!("let mut {name} = {from};"))
                }
                None => text("refuse(n)?;".to_owned()),
            },
            11 => {
                let mark = if self.chance(0.5) { self.eager() } else { String::new() };
                text(format!("{mark}refuse(n)?;"))
            }
            12 => match (mutable.choose(&mut self.rng).cloned(), mutable.choose(&mut self.rng).cloned()) {
                (Some(a), Some(b)) if a != b => text(format!("({a}, {b}) = ({b}.clone(), {a}.clone());")),
                _ => {
                    let list = self.pick(&["list", "all"]).to_owned();
                    let (a, b) = (self.tensor(scope), self.tensor(scope));
                    scope.add(&list, Kind::List, true);
                    text(format!("let mut {list} = vec![({a}).clone(), ({b}).clone()];"))
                }
            },
            13 => {
                let lists: Vec<String> = scope.of(Kind::List).iter().map(|v| v.name.clone()).collect();
                match lists.choose(&mut self.rng) {
                    Some(list) => {
                        let t = self.tensor(scope);
                        text(format!("{list}.push(({t}).clone());"))
                    }
                    None => {
                        text(format!("assert!(n < 100, \"{{n}} {{{{²}}}} {{:?}}\", {});", self.number(scope)))
                    }
                }
            }
            14 => self.deferred(scope),
            15 => {
                let t = self.tensor(scope);
                let name = self.name();
                let other = self.work(scope);
                scope.add(&name, Kind::Tensor, false);
                let n = self.number(scope);
                text(format!("let Some({name}) = pick({n} + 1, {t}) else {{ return {other}; }};"))
            }
            16..19 => {
                let (c, then) = (self.condition(scope), self.inner(scope, depth - 1));
                let mut parts = vec![Part::Text(format!("if {c} ")), Part::Block(then)];
                if self.chance(0.4) {
                    let other = self.inner(scope, depth - 1);
                    parts.extend([Part::Text(" else ".into()), Part::Block(other)]);
                }
                vec![Stmt { condition: None, parts }]
            }
            19..22 => {
                let label = self.chance(0.4).then(|| {
                    self.fresh += 1;
                    format!("'l{}", self.fresh)
                });
                let lists: Vec<String> = scope.of(Kind::List).iter().map(|v| v.name.clone()).collect();
                let index = self.host_name();
                let head = label.as_ref().map(|l| format!("{l}: ")).unwrap_or_default();
                if let Some(list) = lists.choose(&mut self.rng).filter(|_| self.rng.random_bool(0.5)) {
                    let name = self.name();
                    let mut inner = scope.clone();
                    inner.hold(list);
                    inner.vars.iter_mut().filter(|v| v.name == *list).for_each(|v| v.kind = Kind::Gone);
                    inner.add(&name, Kind::Ref, false);
                    let body = self.looped(&inner, depth - 1, label.as_deref(), &[]);
                    return vec![Stmt {
                        condition: None,
                        parts: vec![Part::Text(format!("{head}for {name} in &{list} ")), Part::Block(body)],
                    }];
                }
                let to = self.pick(&["2", "3", "n", "m.layers.len()"]);
                let body = self.looped(scope, depth - 1, label.as_deref(), &[&index]);
                vec![Stmt {
                    condition: None,
                    parts: vec![Part::Text(format!("{head}for {index} in 0..{to} ")), Part::Block(body)],
                }]
            }
            22 => {
                let (name, c) = (self.name(), self.condition(scope));
                let (one, two) = (self.valued(scope, depth - 1, false), self.valued(scope, depth - 1, false));
                scope.add(&name, Kind::Tensor, true);
                vec![Stmt {
                    condition: None,
                    parts: vec![
                        Part::Text(format!("let mut {name} = if {c} ")),
                        one,
                        Part::Text(" else ".into()),
                        two,
                        Part::Text(";".into()),
                    ],
                }]
            }
            23 => {
                let (name, n) = (self.name(), self.number(scope));
                let arms = [self.valued(scope, depth - 1, false), self.valued(scope, depth - 1, false)];
                let last = self.value(scope);
                let [one, two] = arms;
                scope.add(&name, Kind::Tensor, false);
                vec![Stmt {
                    condition: None,
                    parts: vec![
                        Part::Text(format!("let {name} = match {n} {{ 0 => ")),
                        one,
                        Part::Text(" 1 | 2 if n > 0 => ".into()),
                        two,
                        Part::Text(format!(" _ => {last} }};")),
                    ],
                }]
            }
            24 => {
                let (c, value) = (self.condition(scope), self.work(scope));
                let jump = Stmt::text(format!("return {value};"));
                let jump = if self.conditions && self.chance(0.3) { jump.under("off") } else { jump };
                vec![Stmt {
                    condition: None,
                    parts: vec![Part::Text(format!("if {c} ")), Part::Block(vec![jump])],
                }]
            }
            25 => {
                let (t, n, name) = (self.tensor(scope), self.number(scope), self.name());
                let chain =
                    if self.chance(0.5) { format!(" && {}", self.condition(scope)) } else { String::new() };
                let mut inner = scope.clone();
                inner.add(&name, Kind::Tensor, false);
                let body = self.inner(&inner, depth - 1);
                vec![Stmt {
                    condition: None,
                    parts: vec![
                        Part::Text(format!("if let Some({name}) = pick({n}, {t}){chain} ")),
                        Part::Block(body),
                    ],
                }]
            }
            26 => {
                // A counted loop with a value.
                let (name, value) = (self.name(), self.value(scope));
                self.fresh += 1;
                let turn = format!("turn{}", self.fresh);
                let mut inner = scope.clone();
                inner.loops += 1;
                let length = self.rng.random_range(1..3);
                let mut body = vec![Stmt::text(format!("{turn} += 1;"))];
                body.extend(self.block(&mut inner, length, depth - 1));
                body.push(Stmt::text(format!("if {turn} > 2 {{ break {value}; }}")));
                scope.add(&name, Kind::Tensor, true);
                vec![
                    Stmt::text(format!("let mut {turn} = 0;")),
                    Stmt {
                        condition: None,
                        parts: vec![
                            Part::Text(format!("let mut {name} = loop ")),
                            Part::Block(body),
                            Part::Text(";".into()),
                        ],
                    },
                ]
            }
            27 => {
                self.fresh += 1;
                let (label, name) = (format!("'b{}", self.fresh), self.name());
                let (c, value) = (self.condition(scope), self.value(scope));
                let Part::Block(mut body) = self.valued(scope, depth - 1, false) else { return Vec::new() };
                body.insert(0, Stmt::text(format!("if {c} {{ break {label} {value}; }}")));
                scope.add(&name, Kind::Tensor, false);
                vec![Stmt {
                    condition: None,
                    parts: vec![
                        Part::Text(format!("let {name} = {label}: ")),
                        Part::Block(body),
                        Part::Text(";".into()),
                    ],
                }]
            }
            28 if !self.by_macro && self.chance(0.6) => self.items_of_block(scope),
            28 => {
                let body = self.inner(scope, depth - 1);
                vec![Stmt { condition: None, parts: vec![Part::Block(body)] }]
            }
            29 => self.shadowing(scope, depth),
            30 => self.left_early(scope),
            31 if !self.whole => self.host_moved(scope),
            32 => self.taken_name(scope),
            33..36 if self.device == 0 => self.moved_by_pattern(scope, depth, &owned),
            36..39 => self.device_flow(scope, depth),
            39 => self.named_before(scope),
            41..44 if self.device == 0 => self.written_through(scope),
            44 if self.device == 0 => self.called_in_arm(scope),
            45 | 46 if self.device == 0 => self.beside_boundaries(scope),
            47..50 if self.device == 0 => self.macros_of_functions(scope),
            _ => {
                let name = self.name();
                let value = self.valued(scope, depth - 1, false);
                scope.add(&name, Kind::Tensor, true);
                vec![Stmt {
                    condition: None,
                    parts: vec![Part::Text(format!("let mut {name} = ")), value, Part::Text(";".into())],
                }]
            }
        }
    }

    fn tail(&mut self, scope: &Scope) -> Vec<Stmt> {
        match self.rng.random_range(0..6) {
            5 => vec![self.device_tail(scope)],
            0 => vec![Stmt::text(format!("Ok({}?)", self.work(scope)))],
            1 => {
                let c = self.condition(scope);
                let (one, two) = (self.valued(scope, 1, true), self.valued(scope, 1, true));
                vec![Stmt {
                    condition: None,
                    parts: vec![Part::Text(format!("if {c} ")), one, Part::Text(" else ".into()), two],
                }]
            }
            2 if self.conditions => {
                let (there, absent) = (self.valued(scope, 1, true), self.valued(scope, 1, true));
                let block = |part: Part| Stmt { condition: None, parts: vec![part] };
                vec![block(absent).under("off"), block(there).under("on")]
            }
            3 => {
                let (mark, t) = (self.eager(), self.tensor(scope));
                vec![Stmt::text(format!("{mark}att({t})"))]
            }
            _ => vec![Stmt::text(self.work(scope))],
        }
    }
}
