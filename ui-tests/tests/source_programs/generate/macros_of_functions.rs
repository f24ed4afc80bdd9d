//! Macros that functions define, and names that tokens bind: calls within the tokens of other calls, and names of values that cannot
//! leave the device work beside them. And other names of such values, which must not end that work.

use rand::{Rng, seq::IndexedRandom};

use super::{Generator, Scope};
use crate::program::{Part, Stmt};

impl Generator {
    /// One of the forms.
    pub(super) fn macros_of_functions(&mut self, scope: &Scope) -> Vec<Stmt> {
        let stmts = match self.rng.random_range(0..11) {
            8 => self.kept_by_a_closure(scope),
            9 => self.bound_under_a_condition(scope),
            10 => self.defined_again(scope),
            0 => self.called_within_a_call(scope),
            1 => self.bound_in_a_call(scope),
            2 | 3 => self.bound_in_rules(scope),
            4 => self.fields_of_a_macro(scope),
            5 => self.written_by_macros(scope),
            _ => self.beside_what_stays(scope),
        };
        let block = Part::Block(stmts.into_iter().map(Stmt::text).collect());
        vec![Stmt { condition: None, parts: vec![block] }]
    }

    /// Two names of host values, which differ only by hygiene if the function is made by a macro.
    fn two_names(&mut self) -> (&'static str, &'static str) {
        let pairs: &[(&str, &str)] = match self.by_macro {
            true => &[("a", "$a"), ("$a", "a"), ("h", "$h"), ("$h", "h")],
            false => &[("a", "h"), ("h", "a")],
        };
        *pairs.choose(&mut self.rng).expect("there are some")
    }

    /// A region that depends on a host value, and is seen in the state.
    fn shown(&mut self, tensor: &str, by: &str) -> String {
        let mark = self.eager();
        format!("let shown = {mark}scaled({tensor}, {by} as f32)?; ops::store(&kv.s, &shown)?;")
    }

    /// A host value whose call of a macro stands among the tokens of another call, behind device work that changes what the macro
    /// names.
    fn called_within_a_call(&mut self, scope: &Scope) -> Vec<String> {
        let (n, t, made) = (self.number(scope), self.tensor(scope), self.work(scope));
        let call = self.pick(&[
            "vec![held!() + 1, 0][0]",
            "format!(\"{:03}\", held!()).len() + vec![held!()][0]",
            "usize::from(matches!(held!(), 1 | 3))",
            "{ assert!(held!() < 9); held!() }",
            "held!()",
        ]);
        let mark = "⟦key⟧";
        let mut stmts = vec![
            format!("let mut held = count({n});"),
            "macro_rules! held { () => { held } }".to_owned(),
            format!("let base = ({t}).clone();"),
        ];
        if self.chance(0.5) {
            stmts.push(format!("let _ = {};", self.region(scope)));
        }
        stmts.extend([
            format!("let own = {made}?;"),
            "held = count(held + n);".to_owned(),
            "let own = ops::sub(&own, &base)?;".to_owned(),
            format!("{mark}let by = {call};"),
            self.shown("&own", "(by * 10 + held)"),
        ]);
        stmts
    }

    /// Names that the tokens of a call bind, beside variables of these names.
    fn bound_in_a_call(&mut self, scope: &Scope) -> Vec<String> {
        let ((one, two), t, n) = (self.two_names(), self.tensor(scope), self.number(scope));
        let mut elements: Vec<String> = (0..3)
            .map(|_| {
                let (x, y) = (self.pick_of(one, two), self.pick_of(one, two));
                match self.rng.random_range(0..7) {
                    0 => format!("match {y} {{ 0 => 1, {x} if {x} > 2 => {x} * 2, {x} => {x} }}"),
                    1 => format!("(|{x}: usize| {x} * 3 + {one})({y})"),
                    2 => format!("{{ let {x} = {y} + 1; {x} }}"),
                    3 => format!("if let Some({x}) = Some({y}) {{ {x} }} else {{ {one} }}"),
                    4 => format!("{{ let mut all = {two}; for {x} in 0..{y} {{ all += {x}; }} all }}"),
                    5 => format!("Named {{ {one}, ..named({y}) }}.sum()"),
                    _ => format!("{{ let Named {{ {x}, .. }} = named({y}); {x} + {two} }}"),
                }
            })
            .collect();
        elements.push(format!("{one} + {two}"));
        vec![
            format!("let base = ({t}).clone();"),
            format!("let {one} = {n} + 3; let {two} = n + 1;"),
            format!("let all = vec![{}];", elements.join(", ")),
            "let all = all.iter().fold(0, |all, v| all * 20 + v);".to_owned(),
            self.shown("&base", "all"),
        ]
    }

    fn pick_of(&mut self, one: &'static str, two: &'static str) -> &'static str {
        if self.chance(0.5) { one } else { two }
    }

    /// Names that the rules of a macro bind, beside variables of these names.
    fn bound_in_rules(&mut self, scope: &Scope) -> Vec<String> {
        let ((one, two), t, n) = (self.two_names(), self.tensor(scope), self.number(scope));
        let (x, y) = (self.pick_of(one, two), self.pick_of(one, two));
        let code = match self.rng.random_range(0..8) {
            0 => format!("match $v {{ 0 => {y}, {x} if {x} > 2 => {x} * 2, {x} => {x} }}"),
            1 => format!("(|k: usize, {x}: usize| {x} * 10 + k + {y})($v, $w)"),
            2 => format!("{{ let {x} = $v + {y}; {x} * $w }}"),
            3 => format!("{{ fn inner({x}: usize) -> usize {{ {x} + 1 }} inner($v) + {y} }}"),
            4 => format!("{{ let mut all = $w; for {x} in 0..$v {{ all += {x}; }} all + {y} }}"),
            5 => format!("if let Some({x}) = (0..$v).last() {{ {x} }} else {{ {y} + $w }}"),
            6 => format!("'l: {{ if $v > 2 {{ break 'l {y}; }} $w }}"),
            _ => {
                format!("{{ let Named {{ {x}, .. }} = named($v); Named {{ {x}, ..named($w) }}.sum() + {y} }}")
            }
        };
        vec![
            format!("let base = ({t}).clone();"),
            format!("let {one} = {n} + 3; let {two} = n + 1;"),
            format!("macro_rules! bound {{ ($v:expr, $w:expr) => {{ {code} }} }}"),
            format!("let _ = {}att(&base)?;", self.eager()),
            self.shown("&base", &format!("(bound!({one}, {two}) * 40 + bound!({two}, n))")),
        ]
    }

    /// A closure takes a variable, or a part of one, to which a statement of the same block gives another value
    /// before the closure is called.
    fn kept_by_a_closure(&mut self, scope: &Scope) -> Vec<String> {
        let (made, other, t) = (self.work(scope), self.work(scope), self.tensor(scope));
        let (declared, taken, place) = match self.rng.random_range(0..3) {
            0 => (format!("let mut held = {made}?;"), "held", "held"),
            1 => (format!("let mut held = ({made}?, {other}?);"), "held.0", "held.0"),
            _ => (format!("let mut held = ({made}?, {other}?);"), "{ let part = held.1; part }", "held.1"),
        };
        let (closure, call) = match self.chance(0.5) {
            true => (format!("let keeps = || {{ let part = {taken}; ops::scale(&part, 0.5) }};"), "keeps()?"),
            false => {
                (format!("let keeps = |v| {{ let part = {taken}; ops::sub(&part, v) }};"), "keeps(&base)?")
            }
        };
        let set = format!("{place} = {}?;", self.work(scope));
        let mut stmts = vec![format!("let base = ({t}).clone();"), declared, closure];
        if self.chance(0.3) {
            stmts.push(format!("let _ = {};", self.region(scope)));
        }
        stmts.extend([set, self.shown(&format!("&{place}"), "n")]);
        stmts.push(format!("let own = {call};"));
        stmts.push(format!("let own = ops::sub(&own, &{place})?;"));
        stmts.push(self.shown("&own", "n"));
        stmts
    }

    /// What a macro binds under a condition that does not hold, which is a closure or a number that changes outside.
    fn bound_under_a_condition(&mut self, scope: &Scope) -> Vec<String> {
        let (n, t) = (self.number(scope), self.tensor(scope));
        let condition =
            self.pick(&["cfg(any())", "cfg(all())", "cfg_attr(all(), cfg(any()))", "allow(unused)"]);
        let rule = match self.rng.random_range(0..4) {
            0 => format!("($k:expr) => {{{{ #[{condition}] let adds = |k: usize| k; adds($k) + held }}}}"),
            1 => format!("($k:expr) => {{{{ #[{condition}] let mut held = 7; adds($k) + held }}}}"),
            2 => format!(
                "($k:expr) => {{{{ #[{condition}] fn adds(k: usize) -> usize {{ k }} adds($k) + held }}}}"
            ),
            _ => format!(
                "($k:expr) => {{ vec![{{ #[{condition}] let held = 5usize; held + adds($k) }}, 2][0] }}"
            ),
        };
        vec![
            format!("let more = {n} + 1; let mut held = n; let base = ({t}).clone();"),
            "let adds = |k: usize| k + more;".to_owned(),
            format!("macro_rules! sum {{ {rule} }}"),
            self.shown("&base", "sum!(3)"),
            "let own = ops::neg(&base)?;".to_owned(),
            "held = count(held + 2);".to_owned(),
            self.shown("&own", "sum!(n)"),
            "let own = scaled(&own, held as f32)?;".to_owned(),
            self.shown("&own", "sum!(held)"),
        ]
    }

    /// A macro calls one that is defined again, once or in a block.
    fn defined_again(&mut self, scope: &Scope) -> Vec<String> {
        let (t, made, n) = (self.tensor(scope), self.work(scope), self.number(scope));
        let mut stmts = vec![
            format!("let base = ({t}).clone();"),
            "macro_rules! inner { () => { 1 } }".to_owned(),
            "macro_rules! outer { () => { inner!() + 10 } }".to_owned(),
            format!("let own = scaled(&{made}?, outer!() as f32)?;"),
        ];
        if self.chance(0.5) {
            stmts.push(self.shown("&own", "outer!()"));
        }
        if self.chance(0.5) {
            stmts.push(format!("let own = scaled(&own, (outer!() + {n}) as f32)?;"));
        }
        let again = "macro_rules! inner { () => { 2 } }";
        stmts.extend(match self.chance(0.5) {
            true => vec![again.to_owned()],
            false => vec![format!(
                "{{ {again} let own = scaled(&own, outer!() as f32)?; {} }}",
                self.shown("&own", "outer!()")
            )],
        });
        stmts.push("let own = scaled(&own, outer!() as f32)?;".to_owned());
        stmts.push(self.shown("&own", "outer!()"));
        stmts.push("ops::store(&kv.s, &ops::sub(&own, &base)?)?;".to_owned());
        stmts
    }

    /// Structs of a macro have the value of a closure, and of a variable that changes.
    fn fields_of_a_macro(&mut self, scope: &Scope) -> Vec<String> {
        let (n, t) = (self.number(scope), self.tensor(scope));
        let mut stmts = vec![
            format!("let more = {n} + 1; let mut held = n; let base = ({t}).clone();"),
            "let f = |k: usize| k + more;".to_owned(),
            "macro_rules! made { () => { Named { a: f(3), h: held, b: 0 } } }".to_owned(),
            self.shown("&base", "made!().sum()"),
            "let own = ops::neg(&base)?;".to_owned(),
            "held = count(held + 2);".to_owned(),
        ];
        if self.chance(0.5) {
            stmts.push("let more = 50usize; let _ = more;".to_owned());
        }
        stmts.push(self.shown("&own", "made!().sum()"));
        stmts
    }

    /// Macros that a segment defines write through a `&mut` of host code, or pass it on.
    fn written_by_macros(&mut self, scope: &Scope) -> Vec<String> {
        let (made, t) = (self.work(scope), self.tensor(scope));
        let write = self.pick(&[
            "_ = change(place, $t)?",
            "_ = change(&mut *place, $t)?",
            "*place = ops::sub(place, $t)?",
            "put!(*place, ops::sub(place, $t)?)",
            "{ let to = &mut *place; *to = ops::sub(to, $t)?; }",
        ]);
        let rule = format!("macro_rules! to_place {{ ($t:expr) => {{ {write} }} }}");
        let mut stmts = vec![
            format!("let (mut own, base) = ({made}?, ({t}).clone());"),
            "let place = &mut own;".to_owned(),
        ];
        for _ in 0..self.rng.random_range(2..5) {
            let mark = self.eager();
            stmts.push(match self.rng.random_range(0..3) {
                0 => format!("let base = {mark}mix(&*place, &base)?;"),
                _ => format!("{{ {rule} to_place!(&base); }}"),
            });
        }
        stmts.push("ops::store(&kv.s, &own)?;".to_owned());
        stmts
    }

    /// A value that cannot leave device work, which nothing there ends but a boundary.
    fn beside_what_stays(&mut self, scope: &Scope) -> Vec<String> {
        let (made, other, t, n) =
            (self.work(scope), self.work(scope), self.tensor(scope), self.number(scope));
        let mut stmts = vec![format!("let base = ({t}).clone();"), format!("let other = {other}?;")];
        let stays = |name: &str| format!("let {name} = Stays::of(&{made}?, {n});");
        let more = match self.rng.random_range(0..6) {
            0 => {
                let rules = [
                    "($k:expr) => { $k.iter().map(|w| w + 1).sum::<usize>() }",
                    "($k:expr) => {{ let mut all = 1; for w in $k { all += w; } all }}",
                    "($k:expr) => { if let Some(w) = $k.first() { *w } else { 0 } }",
                    "($k:expr) => { 'w: { if n > 1 { break 'w 3; } $k[0] } }",
                    // A macro around the function would take these for its own.
                    "($(w)? $k:expr) => { $k[0] }",
                    "([$($k:expr),*]) => { [$($k),*].iter().sum::<usize>() }",
                ];
                let rule = self.pick(if self.by_macro { &rules[..4] } else { &rules });
                vec![
                    stays("w"),
                    format!("macro_rules! total {{ {rule} }}"),
                    "let own = w.scaled(&base)?;".to_owned(),
                    self.shown("&own", "total!([n, 2])"),
                ]
            }
            1 => vec![
                stays("w"),
                "macro_rules! w { ($k:expr) => { $k + 1 } }".to_owned(),
                "let own = w.scaled(&base)?;".to_owned(),
                self.shown("&own", "w!(n)"),
            ],
            2 => vec![
                stays("w"),
                "let g = |v| ops::sub(v, &base);".to_owned(),
                "let other = |v| ops::add(&g(v)?, &other);".to_owned(),
                "let own = w.scaled(&other(&base)?)?;".to_owned(),
                self.shown("&own", "n"),
                "let own = other(&own)?;".to_owned(),
            ],
            3 => vec![
                stays("w"),
                "let other = |v| ops::scale(v, 3.0);".to_owned(),
                "let own = w.scaled(&other(&base)?)?;".to_owned(),
                self.shown("&own", "n"),
                "let own = other(&own)?;".to_owned(),
            ],
            4 => vec![
                format!("let mut tuple = (1, {n} + 2, 3);"),
                stays("w"),
                "let part = &tuple.1;".to_owned(),
                "let own = w.scaled(&ops::scale(&other, *part as f32)?)?;".to_owned(),
                "tuple.0 = n + 5;".to_owned(),
                "tuple.2 += tuple.0;".to_owned(),
                "let own = w.scaled(&own)?;".to_owned(),
                self.shown("&own", "(tuple.0 + tuple.2)"),
            ],
            _ => {
                let region = self.region(scope);
                vec![
                    "let parts = (ops::neg(&base)?, other);".to_owned(),
                    "let g = |v| { let part = parts.0; mix(&part, v) };".to_owned(),
                    format!("let _ = {region};"),
                    "let own = ops::sub(&g(&base)?, &parts.1)?;".to_owned(),
                    "let parts = ops::neg(&own)?;".to_owned(),
                    self.shown("&parts", "n"),
                ]
            }
        };
        stmts.extend(more);
        stmts.push("ops::store(&kv.s, &own)?;".to_owned());
        stmts
    }
}
