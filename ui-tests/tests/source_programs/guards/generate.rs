//! Random functions with guards, as text: made by calls and literals, in structs and containers, behind references, moved on
//! some ways or on all of them, and taken apart by patterns; and with values that are none, which nothing may be in the way of.

use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};

use crate::program::{Part, Program, Stmt};

/// Stands behind a statement after which a function may be refused although it holds no guard: one that moves a field, since what
/// is left is asked about as a whole, one that calls a method which takes its receiver, since that is not seen, and one
/// that decides whether there is a guard by what a later condition tests.
pub(super) const UNDECIDED: &str = "/* undecided */";

/// What a variable holds; each has a guard somewhere in it.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Kind {
    /// `Guard`, which has methods.
    Guard,
    /// Another type with a drop.
    Other,
    /// `Wrap`, of a guard and a number.
    Wrap,
    /// A tuple of a value and a number.
    Pair(Box<Kind>),
    /// `Option`.
    Optional(Box<Kind>),
    /// `Vec`.
    List(Box<Kind>),
    /// `[_; 1]`.
    Array(Box<Kind>),
    /// A reference, or a value that holds some.
    Lent,
    /// A closure that has captured one.
    Closure,
}

#[derive(Clone)]
struct Var {
    name: String,
    kind: Kind,
    /// Something that is alive borrows from it.
    lent: bool,
}

/// What is in scope.
#[derive(Clone, Default)]
struct Scope {
    vars: Vec<Var>,
    /// The conditions that are not decided yet by what stands around. Some call has each of them together with each of the others.
    conditions: Vec<&'static str>,
}

impl Scope {
    fn add(&mut self, name: &str, kind: Kind) {
        self.vars.push(Var { name: name.to_owned(), kind, lent: false });
    }

    /// The variables that their names mean.
    fn visible(&self) -> Vec<Var> {
        let hidden = |at: usize, v: &Var| self.vars[at + 1..].iter().any(|w| w.name == v.name);
        self.vars.iter().enumerate().filter(|(at, v)| !hidden(*at, v)).map(|(_, v)| v.clone()).collect()
    }

    /// Marks a variable that was moved away.
    fn gone(&mut self, name: &str) {
        if let Some(at) = self.vars.iter().rposition(|v| v.name == name) {
            self.vars[at].lent = true;
        }
    }

    /// Takes over what a block moved, and the conditions by which it did.
    fn after(&mut self, inner: &Self) {
        if self.vars.iter().zip(&inner.vars).any(|(own, inner)| own.lent != inner.lent) {
            self.conditions.retain(|condition| inner.conditions.contains(condition));
        }
        for (own, inner) in self.vars.iter_mut().zip(&inner.vars) {
            own.lent |= inner.lent;
        }
    }
}

struct Generator {
    rng: StdRng,
    fresh: usize,
    /// Each function has types of its own: rustc reports a type that holds a guard once.
    seed: u64,
}

pub(super) fn program(seed: u64) -> Program {
    let mut g = Generator { rng: StdRng::seed_from_u64(seed ^ 0x9_0a4d), fresh: 0, seed };
    let mut scope = Scope { conditions: vec!["n & 1 == 0", "n & 2 == 0"], ..Scope::default() };
    let mut body = vec![Stmt::text("let mut h = ops::neg(x)?;")];
    let before = g.rng.random_range(1..6);
    body.extend((0..before).map(|_| g.statement(&mut scope, 2)));
    body.push(g.boundary(&scope));
    if g.rng.random_bool(0.4) {
        let between = g.rng.random_range(1..3);
        body.extend((0..between).map(|_| g.statement(&mut scope, 2)));
        body.push(g.boundary(&scope));
    }
    if g.rng.random_bool(0.3) {
        body.push(g.statement(&mut scope, 1));
    }
    body.push(Stmt::text("ops::neg(&h)"));
    Program { seed, by_macro: g.rng.random_bool(0.1), body }
}

impl Generator {
    fn name(&mut self, scope: &Scope) -> String {
        let old: Vec<Var> = scope.visible();
        match old.choose(&mut self.rng) {
            Some(var) if self.rng.random_bool(0.15) => var.name.clone(),
            _ => {
                self.fresh += 1;
                format!("g{}", self.fresh)
            }
        }
    }

    fn chance(&mut self, p: f64) -> bool {
        self.rng.random_bool(p)
    }

    /// Under a condition that decides about no guard.
    fn boundary(&mut self, scope: &Scope) -> Stmt {
        let condition = scope.conditions.choose(&mut self.rng);
        Stmt::text(match (self.rng.random_range(0..4), condition) {
            (0, _) => "let mut h = ⟦eager⟧ held(&h)?;".to_owned(),
            (1, Some(condition)) => format!("if {condition} {{ h = ⟦eager⟧ held(&h)?; }}"),
            (2, _) => "{ h = ⟦eager⟧ held(&h)?; }".to_owned(),
            _ => "h = ⟦eager⟧ held(&h)?;".to_owned(),
        })
    }

    /// A value that is made here, and nothing else has.
    fn made(&mut self) -> (String, Kind) {
        let (by, of) = (self.rng.random_range(1..5), self.seed);
        let literal = |text: String| (format!("⟪{text}¦{{ made(); {text} }}⟫"), Kind::Other);
        match self.rng.random_range(0..12) {
            0..=2 => (format!("Guard::<{of}>::new({by}.0)"), Kind::Guard),
            3 => (format!("guard::<{of}>(n)?"), Kind::Guard),
            4 => (format!("wrap::<{of}>({by}.0)"), Kind::Wrap),
            5 => (format!("guarded::<{of}>({by}.0)"), Kind::Pair(Box::new(Kind::Guard))),
            6 => (format!("optional_guard::<{of}>(n)"), Kind::Optional(Box::new(Kind::Guard))),
            7 => literal(format!("Literal::<{of}> {{ by: {by}.0 }}")),
            8 => literal(format!("Tuple::<{of}>({by}.0)")),
            9 => literal(format!("Unit::<{of}>")),
            _ => (format!("Box::new(Guard::<{of}>::new({by}.0))"), Kind::Other),
        }
    }

    /// A variable that can be moved, which it is.
    fn moved(&mut self, scope: &mut Scope) -> Option<Var> {
        let all: Vec<Var> = scope.visible().into_iter().filter(|v| !v.lent).collect();
        let var = all.choose(&mut self.rng)?.clone();
        scope.gone(&var.name);
        Some(var)
    }

    /// A value: made here, or a variable that is moved.
    fn value(&mut self, scope: &mut Scope) -> (String, Kind) {
        if self.chance(0.4)
            && let Some(var) = self.moved(scope)
        {
            return (var.name, var.kind);
        }
        self.made()
    }

    /// A value that holds another one.
    fn composed(&mut self, scope: &mut Scope) -> (String, Kind) {
        let (value, kind) = self.value(scope);
        let inner = Box::new(kind.clone());
        match self.rng.random_range(0..8) {
            0 => (format!("({value}, 2.0f32)"), Kind::Pair(inner)),
            1 => (format!("Some({value})"), Kind::Optional(inner)),
            2 => (format!("Vec::from([{value}])"), Kind::List(inner)),
            3 => (format!("[{value}]"), Kind::Array(inner)),
            4 if kind == Kind::Guard => (format!("Wrap {{ g: {value}, n: 1 }}"), Kind::Wrap),
            5 => (format!("Holds {{ it: {value} }}"), Kind::Other),
            6 => (self.some_if(scope, &value), Kind::Optional(inner)),
            _ => (value, kind),
        }
    }

    /// A condition that decides whether there is a guard, and a mark if what comes later may test it as well.
    fn deciding(&mut self, scope: &mut Scope) -> (&'static str, &'static str) {
        let same = self.chance(0.3);
        match scope.conditions.len() {
            0 => ("n == 3", UNDECIDED),
            count if same => (scope.conditions[self.rng.random_range(0..count)], UNDECIDED),
            count => (scope.conditions.remove(self.rng.random_range(0..count)), ""),
        }
    }

    /// A value that is there on some calls. Later conditions test something else, or nothing is decided.
    fn some_if(&mut self, scope: &mut Scope, value: &str) -> String {
        let (condition, mark) = self.deciding(scope);
        format!("if {condition} {{ Some({value}) }} else {{ None }}{mark}")
    }

    /// A reference to a value without a name.
    fn lent(&mut self) -> String {
        let (value, _) = self.made();
        let ((other, _), of) = (self.made(), self.seed);
        match self.rng.random_range(0..11) {
            0 => format!("&{value}"),
            1 => format!("(&{value}, 1usize)"),
            2 => format!("[&{value}]"),
            3 => format!("Some(&{value})"),
            4 => format!("Holds {{ it: &{value} }}"),
            5 => format!("(1usize, (&{value}, &{other}))"),
            6 => format!("&wrap::<{of}>(3.0).g"),
            7 => format!("(&wrap::<{of}>(3.0).n, 1usize)"),
            8 => format!("{{ let _k = 1usize; &{value} }}"),
            9 => format!("if n & 2 == 0 {{ &Guard::<{of}>::new(1.0) }} else {{ &Guard::<{of}>::new(2.0) }}"),
            _ => format!("match n {{ 0 => &Guard::<{of}>::new(1.0), _ => &Guard::<{of}>::new(2.0) }}"),
        }
    }

    fn statement(&mut self, scope: &mut Scope, depth: usize) -> Stmt {
        let mut draw = self.rng.random_range(0..34);
        if depth == 0 && (22..26).contains(&draw) {
            draw = 12;
        }
        match draw {
            0..=3 => {
                let (value, kind) = self.composed(scope);
                let name = self.name(scope);
                scope.add(&name, kind);
                Stmt::text(format!("let {name} = {value};"))
            }
            4 | 5 => self.binding_by_reference(scope),
            6 => self.deferred(scope),
            7 => {
                let (value, _) = self.composed(scope);
                Stmt::text(format!("let _ = {value};"))
            }
            8..=10 => self.divided(scope),
            11 => self.untouched(scope),
            12..=15 => self.ended(scope),
            16..=18 => self.ended_on_some_ways(scope),
            19 => self.captured(scope),
            20 => self.part_of(scope),
            21 => Stmt::text("h = ops::scale(&h, 0.5)?;"),
            22..=25 => self.nested(scope, depth),
            26 => self.given(scope),
            27 | 28 => self.rebound(scope),
            _ => self.without_guard(),
        }
    }

    /// Values that are no guards, written out, borrowed from, moved and assigned in all the ways that a question about one could be in.
    fn without_guard(&mut self) -> Stmt {
        self.fresh += 1;
        let (p, made) = (format!("p{}", self.fresh), format!("Plain::<{}> {{ n: 2 }}", self.seed));
        let call = format!("plain::<{}>(n)", self.seed);
        let (statements, number) = match self.rng.random_range(0..16) {
            10 => (
                format!("let {p} = ops::neg(&h); let {p} = {p}?; let {p} = {p}.rank();"),
                format!("({p} + 1)"),
            ),
            11 => (
                format!(
                    "let {p} = vec![1.0f32, 2.0]; let mut k = 0.0; {p}.into_iter().for_each(|v| k += v);"
                ),
                "k".into(),
            ),
            12 => (
                format!("let {p} = (1..3).map(|v| ops::scale(&h, v as f32)).collect::<Result<Vec<_>>>();"),
                format!("{p}?.len()"),
            ),
            13 => (
                format!(
                    "let {p} = ops::neg(&h); let k = match {p} {{ Ok(_) => 2, Err(_) => return ops::neg(x) }};"
                ),
                "k".into(),
            ),
            14 => (format!("let {p} = Box::new(vec![n, 2]); let {p} = *{p};"), format!("{p}.len()")),
            15 => (
                format!(
                    "let mut {p} = vec![2usize, 3].into_iter().enumerate(); let k = {p}.next().map_or(1, |k| k.1);"
                ),
                "k".into(),
            ),
            0 => (format!("let {p} = {made};"), format!("{p}.build()")),
            1 => (format!("let {p} = {made}; let {p} = vec![{p}];"), format!("{p}.len()")),
            2 => (format!("let {p} = (&{made}, 1usize);"), format!("{p}.0.n")),
            3 => (
                format!("let {p}: (&'static Plain<{}>, usize) = (&{made}, n);", self.seed),
                format!("{p}.0.n"),
            ),
            4 => (
                format!("let {p}; if n & 1 == 0 {{ {p} = {call}; }} else {{ {p} = {made}; }}"),
                format!("{p}.n"),
            ),
            5 => {
                (format!("let {p} = {{ let mut v = Vec::new(); v.push({made}); v }};"), format!("{p}.len()"))
            }
            6 => (
                format!(
                    "let mut {p}; if n & 2 == 0 {{ {p} = Vec::new(); }} else {{ {p} = Vec::with_capacity(n); }} \
                     {p}.push({made});"
                ),
                format!("{p}.len()"),
            ),
            7 => (format!("let {p} = Some({made});"), format!("{p}.map_or(1, |p| p.build())")),
            8 => (
                format!("let {p}: (&dyn Fn(usize) -> usize, usize) = (&|v| v + 1, 2);"),
                format!("({p}.0)({p}.1)"),
            ),
            _ => (
                format!("let ({p}, k) = (&[&ops::neg(&h)?, x], 2usize); let {p} = {p}.len();"),
                format!("({p} + k)"),
            ),
        };
        Stmt::text(format!("{statements} h = ops::scale(&h, {number} as f32)?;"))
    }

    fn binding_by_reference(&mut self, scope: &mut Scope) -> Stmt {
        let name = self.name(scope);
        if self.chance(0.4) {
            let (value, _) = self.made();
            scope.add(&name, Kind::Lent);
            let by_ref = self.chance(0.5);
            return Stmt::text(match by_ref {
                true => format!("let ref {name} = {value};"),
                false => format!("let ({name}, _k) = (&{value}, 1usize);"),
            });
        }
        let value = self.lent();
        scope.add(&name, Kind::Lent);
        Stmt::text(format!("let {name} = {value};"))
    }

    fn deferred(&mut self, scope: &mut Scope) -> Stmt {
        let (one, kind) = self.made();
        let name = self.name(scope);
        // In arms, only the type of the value itself is asked about.
        let is_guard = matches!(kind, Kind::Guard | Kind::Other);
        scope.add(&name, kind);
        if self.chance(0.2) {
            let (open, close) = if is_guard && self.chance(0.5) { ("{", "}") } else { ("", "") };
            return Stmt::text(format!("let {name}; let _k; {open} ({name}, _k) = ({one}, 1usize); {close}"));
        }
        if self.chance(0.15) {
            let of = self.seed;
            scope.vars.last_mut().expect("it was added").kind = Kind::Guard;
            return Stmt::text(format!("let {name}; let _k; ({name}, _k) = guarded::<{of}>(2.0);"));
        }
        if is_guard && self.chance(0.6) {
            return Stmt::text(format!(
                "let {name}; if n & 2 == 0 {{ {name} = {one}; }} else {{ {name} = {one}; }}"
            ));
        }
        Stmt::text(format!("let {name}; {name} = {one};"))
    }

    /// A pattern that takes a value apart.
    fn divided(&mut self, scope: &mut Scope) -> Stmt {
        let fits = |v: &Var| {
            !v.lent && matches!(v.kind, Kind::Wrap | Kind::Pair(_) | Kind::Array(_) | Kind::Optional(_))
        };
        let all: Vec<Var> = scope.visible().into_iter().filter(fits).collect();
        let (value, kind, var) = match all.choose(&mut self.rng) {
            Some(var) if self.chance(0.7) => (var.name.clone(), var.kind.clone(), Some(var.name.clone())),
            _ => {
                let (value, kind) = self.composed(scope);
                (value, kind, None)
            }
        };
        if let Some(var) = &var {
            // Nothing refers to it again, whatever the pattern leaves.
            scope.gone(var);
        }
        let name = self.name(scope);
        let (pattern, inner) = match kind {
            Kind::Wrap => match self.rng.random_range(0..4) {
                0 => (format!("Wrap {{ g: {name}, n: _k }}"), Some(Kind::Guard)),
                1 => ("Wrap { n: _k, .. }".into(), None),
                2 => (format!("Wrap {{ g: ref {name}, n: _k }}"), Some(Kind::Lent)),
                _ => ("Wrap { g: _, n: _k }".into(), None),
            },
            Kind::Pair(inner) => match self.rng.random_range(0..5) {
                0 | 1 => (format!("({name}, _k)"), Some(*inner)),
                2 => ("(_, _k)".into(), None),
                3 => (format!("(ref {name}, _)"), Some(Kind::Lent)),
                _ => (format!("({name}, ..)"), Some(*inner)),
            },
            Kind::Array(inner) => match self.rng.random_range(0..3) {
                0 => (format!("[{name}]"), Some(*inner)),
                1 => ("[_]".into(), None),
                _ => (format!("[ref {name}]"), Some(Kind::Lent)),
            },
            Kind::Optional(inner) => {
                scope.add(&name, *inner);
                let value = if value.starts_with("if ") { format!("({value})") } else { value };
                return Stmt::text(format!(
                    "let Some({name}) = {value} else {{ return Ok(h) }}; {UNDECIDED}"
                ));
            }
            kind => (name.clone(), Some(kind)),
        };
        if let Some(kind) = inner {
            scope.add(&name, kind);
        }
        Stmt::text(format!("let {pattern} = {value};"))
    }

    /// A statement that mentions a value and leaves it where it is.
    fn untouched(&mut self, scope: &mut Scope) -> Stmt {
        let all: Vec<Var> = scope.visible().into_iter().filter(|v| !v.lent).collect();
        let Some(var) = all.choose(&mut self.rng).cloned() else { return Stmt::text("h = ops::neg(&h)?;") };
        let name = &var.name;
        if var.kind == Kind::Guard && self.chance(0.3) {
            let (value, new) = (format!("{name}.clone()"), self.name(scope));
            scope.add(&new, Kind::Guard);
            return Stmt::text(format!("let {new} = {value};"));
        }
        Stmt::text(match self.rng.random_range(0..4) {
            0 => format!("let _ = {name};"),
            1 => format!("_ = {name};"),
            2 => format!("let _r = &{name};"),
            _ => format!("seen(&{name});"),
        })
    }

    /// A statement that ends a value, or moves it to where it ends, on every way.
    fn ended(&mut self, scope: &mut Scope) -> Stmt {
        let Some(Var { name, kind, .. }) = self.moved(scope) else {
            let (value, _) = self.composed(scope);
            return Stmt::text(format!("drop({value});"));
        };
        Stmt::text(match self.rng.random_range(0..9) {
            0 if kind == Kind::Guard => format!("h = ops::scale(&h, {name}.finish())?; {UNDECIDED}"),
            1 => format!("{{ let _moved = {name}; }}"),
            2 => format!("if n & 1 == 0 {{ drop({name}); }} else {{ let _b = {name}; }}"),
            3 => format!("match n {{ 0 => drop({name}), 1 => end({name}), _ => {{ drop({name}); }} }}"),
            4 => format!("{{ let inner = ({name}, 1usize); h = ops::scale(&h, inner.1 as f32)?; }}"),
            5 => format!(
                "h = ops::scale(&h, if n & 2 == 0 {{ drop({name}); 1.0 }} else {{ end({name}); 2.0 }})?;"
            ),
            6 => format!("end({name});"),
            7 => format!("let _k = (end({name}), 1usize);"),
            _ => format!("drop({name});"),
        })
    }

    /// A statement that ends a value on some ways, and leaves it where it is on others.
    fn ended_on_some_ways(&mut self, scope: &mut Scope) -> Stmt {
        let Some(Var { name, kind, .. }) = self.moved(scope) else { return Stmt::text("h = ops::neg(&h)?;") };
        let (condition, mark) = self.deciding(scope);
        let text = match self.rng.random_range(0..9) {
            0 => format!("if {condition} {{ drop({name}); }}"),
            1 => format!("if {condition} {{ h = ops::neg(&h)?; }} else {{ end({name}); }}"),
            2 => format!("match n {{ 0 | 3 => drop({name}), _ => {{}} }}"),
            3 => format!("if {condition} {{ drop({name}); return Ok(h); }}"),
            4 => {
                let (new, value) = (self.name(scope), self.some_if(scope, &name));
                scope.add(&new, Kind::Optional(Box::new(kind)));
                format!("let {new} = {value};")
            }
            5 => format!("let _b = {condition} && {{ drop({name}); true }};"),
            6 => format!("while {condition} {{ drop({name}); break; }}"),
            7 => format!("let _k = if {condition} {{ end({name}); 1usize }} else {{ 2 }};"),
            _ => format!("for i in 0..n {{ if i == 1 {{ drop({name}); break; }} }}"),
        };
        Stmt::text(format!("{text} {mark}"))
    }

    fn captured(&mut self, scope: &mut Scope) -> Stmt {
        let Some(Var { name, .. }) = self.moved(scope) else { return Stmt::text("h = ops::neg(&h)?;") };
        let text = match self.rng.random_range(0..13) {
            0..=3 => format!("let end_it = || drop({name}); end_it();"),
            4 => format!("end(move || seen(&{name}));"),
            5 => format!("{{ let see = move || seen(&{name}); see(); }}"),
            12 => format!("let end_it = || {{ let see = move || seen(&{name}); see() }}; end_it();"),
            6 => {
                format!("if n & 1 == 0 {{ let see = move || seen(&{name}); see(); }} else {{ end({name}); }}")
            }
            keeps => {
                let new = self.name(scope);
                scope.add(&new, Kind::Closure);
                match keeps {
                    7 => format!("let {new} = move || {{ let see = || seen(&{name}); see() }}; {new}();"),
                    8 => format!("let {new} = move || seen(&{name});"),
                    9 => format!("let {new} = || drop({name});"),
                    _ => format!("let {new} = move || seen(&{name}); {new}();"),
                }
            }
        };
        Stmt::text(text)
    }

    /// A variable that is assigned what another one had, or a closure under another name.
    fn given(&mut self, scope: &mut Scope) -> Stmt {
        let Some(Var { name, kind, .. }) = self.moved(scope) else { return Stmt::text("h = ops::neg(&h)?;") };
        let new = self.name(scope);
        let optional = Kind::Optional(Box::new(kind.clone()));
        let (kind, text) = match self.rng.random_range(0..5) {
            0 => (kind, format!("let {new}; {{ {new} = {name}; }}")),
            1 => (optional, format!("let mut {new} = None; seen(&{new}); {new} = Some({name});")),
            2 => (Kind::Closure, format!("let {new}; {{ {new} = move || seen(&{name}); }} {new}();")),
            3 => {
                let arms = format!("{{ {new} = Some({name}); }} else {{ end({name}); {new} = None; }}");
                (optional, format!("let {new}; if n & 2 == 0 {arms} {UNDECIDED}"))
            }
            _ => return Stmt::text(format!("let take = || drop({name}); let end_it = take; end_it();")),
        };
        scope.add(&new, kind);
        Stmt::text(text)
    }

    /// A variable that is made of one of the same name.
    fn rebound(&mut self, scope: &mut Scope) -> Stmt {
        let of = self.seed;
        if self.chance(0.2) {
            let new = self.name(scope);
            scope.add(&new, Kind::Guard);
            return Stmt::text(format!("let {new} = guard::<{of}>(n); let {new} = {new}?;"));
        }
        let Some(Var { name, kind, .. }) = self.moved(scope) else { return Stmt::text("h = ops::neg(&h)?;") };
        let inner = Box::new(kind.clone());
        let (kind, text) = match self.rng.random_range(0..7) {
            0 => (kind, format!("let mut {name} = {name}; seen(&mut {name});")),
            1 => (kind, format!("let {name} = ({name});")),
            2 => (Kind::Pair(inner), format!("let {name} = ({name}, 2.0f32);")),
            3 => (Kind::Optional(inner), format!("let {name} = Some({name});")),
            4 => (Kind::List(inner), format!("let {name} = vec![{name}];")),
            5 => (Kind::Other, format!("let {name} = Holds {{ it: {name} }};")),
            _ => (kind, format!("let ({name}, _k) = ({name}, 1usize);")),
        };
        scope.add(&name, kind);
        Stmt::text(text)
    }

    /// A statement that takes or reads a part of a value.
    fn part_of(&mut self, scope: &mut Scope) -> Stmt {
        let fits = |v: &Var| !v.lent && matches!(v.kind, Kind::Wrap | Kind::Pair(_));
        let all: Vec<Var> = scope.visible().into_iter().filter(fits).collect();
        let Some(Var { name, kind, .. }) = all.choose(&mut self.rng).cloned() else {
            return Stmt::text("h = ops::neg(&h)?;");
        };
        let (field, rest, inner) = match kind {
            Kind::Pair(inner) => ("0", "1", *inner),
            _ => ("g", "n", Kind::Guard),
        };
        match self.rng.random_range(0..3) {
            0 => Stmt::text(format!("h = ops::scale(&h, {name}.{rest} as f32)?;")),
            1 => {
                scope.gone(&name);
                Stmt::text(format!("drop({name}.{field}); {UNDECIDED}"))
            }
            _ => {
                scope.gone(&name);
                let new = self.name(scope);
                scope.add(&new, inner);
                Stmt::text(format!("let {new} = {name}.{field}; {UNDECIDED}"))
            }
        }
    }

    /// A block, or an arm.
    fn nested(&mut self, scope: &mut Scope, depth: usize) -> Stmt {
        let mut inner = scope.clone();
        let head = if self.chance(0.5) || scope.conditions.is_empty() {
            String::new()
        } else {
            let at = self.rng.random_range(0..inner.conditions.len());
            format!("if {} ", inner.conditions.remove(at))
        };
        let count = self.rng.random_range(1..4);
        let mut body: Vec<Stmt> = (0..count).map(|_| self.statement(&mut inner, depth - 1)).collect();
        if self.chance(0.25) {
            body.push(Stmt::text("h = ⟦eager⟧ held(&h)?;"));
        }
        scope.after(&inner);
        Stmt { condition: None, parts: vec![Part::Text(head), Part::Block(body)] }
    }
}
