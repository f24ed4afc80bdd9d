//! Control flow that the device decides. Without attributes it is the same text, whose predicates and indices are computed on
//! the host: both come from a parameter that changes from call to call, or from a number of the host.

use rand::{Rng, seq::IndexedRandom};

use super::{Generator, Kind, Scope};
use crate::program::{Part, Stmt};

impl Generator {
    /// A predicate, in both forms.
    pub(super) fn predicate(&mut self, scope: &Scope) -> String {
        let k = self.pick(&["0", "1", "2"]);
        match self.rng.random_range(0..7) {
            0 => format!("⟪ops::gt(q, {k})?¦q > {k}⟫"),
            1 => format!("⟪ops::eq(q, {k})?¦q == {k}⟫"),
            2 => format!("⟪ops::logical_not(&ops::le(q, {k})?)?¦!(q <= {k})⟫"),
            3 => {
                let n = self.number(scope);
                format!("⟪&ops::lt(&ops::full(x.scope(), (), {n} as i32)?, {k})?¦({n} as i32) < {k}⟫")
            }
            4 => format!("⟪ops::logical_and(&ops::ge(q, {k})?, &ops::ne(q, 2)?)?¦q >= {k} && q != 2⟫"),
            5 => format!("⟪Scalar::from_tensor(ops::ne(q, {k})?)?¦q != {k}⟫"),
            _ => format!("⟪ops::lt(q, {k})?¦q < {k}⟫"),
        }
    }

    /// Runs with the scope of an arm: what would change a list of the host there, or leave it, is not generated.
    pub(super) fn arm<R>(&mut self, scope: &Scope, f: impl FnOnce(&mut Self, &Scope) -> R) -> R {
        let mut inner = scope.clone();
        inner.labels.clear();
        inner.vars.iter_mut().filter(|v| v.kind == Kind::List).for_each(|v| v.kind = Kind::Gone);
        self.device += 1;
        let result = f(self, &inner);
        self.device -= 1;
        result
    }

    fn arm_block(&mut self, scope: &Scope, depth: usize) -> Part {
        Part::Block(self.arm(scope, |g, inner| {
            let mut stmts = g.inner(inner, depth);
            // Something that is seen from outside.
            if let Some(name) = inner.assignable().choose(&mut g.rng).cloned() {
                let value = g.work(inner);
                stmts.insert(0, Stmt::text(format!("{name} = {value}?;")));
            }
            stmts
        }))
    }

    fn arm_value(&mut self, scope: &Scope, depth: usize, result: bool) -> Part {
        self.arm(scope, |g, inner| g.valued(inner, depth, result))
    }

    pub(super) fn device_flow(&mut self, scope: &mut Scope, depth: usize) -> Vec<Stmt> {
        let depth = depth - 1;
        match self.rng.random_range(0..9) {
            8 => self.beside_operand(scope),
            6 => self.taken_in_arms(scope),
            7 if self.chance(0.5) => self.assigned_fields(scope, depth),
            7 => self.carried_struct(scope, depth),
            0 => {
                let mut parts = vec![Part::Text(format!("⟦device⟧if {} ", self.predicate(scope)))];
                parts.push(self.arm_block(scope, depth));
                if self.chance(0.3) {
                    parts.push(Part::Text(format!(" else if {} ", self.predicate(scope))));
                    parts.push(self.arm_block(scope, depth));
                }
                if self.chance(0.5) {
                    parts.push(Part::Text(" else ".into()));
                    parts.push(self.arm_block(scope, depth));
                }
                vec![Stmt { condition: None, parts }]
            }
            1 => {
                let (name, head) = (self.name(), format!("⟦device⟧if {} ", self.predicate(scope)));
                let (one, two) = (self.arm_value(scope, depth, false), self.arm_value(scope, depth, false));
                scope.add(&name, Kind::Tensor, true);
                let head = Part::Text(format!("let mut {name} = {head}"));
                let parts = vec![head, one, Part::Text(" else ".into()), two, Part::Text(";".into())];
                vec![Stmt { condition: None, parts }]
            }
            2 | 3 => self.rounds(scope, depth),
            4 => {
                // A variable without a value, which every arm gives one; a pair.
                let (name, index) = (self.name(), self.index(scope));
                let hidden = {
                    let mut hidden = scope.clone();
                    hidden.add(&name, Kind::Gone, false);
                    hidden
                };
                let values: Vec<String> =
                    (0..3).map(|_| self.arm(&hidden, |g, inner| g.work(inner))).collect();
                scope.add(&name, Kind::Tensor, false);
                let arms = format!(
                    "0 => {name} = {}?, 1 | -1 => {{ {name} = {}?; }} _ => {name} = {}?",
                    values[0], values[1], values[2]
                );
                vec![
                    Stmt::text(format!("let {name}: Tensor<'_, f32>;")),
                    Stmt::text(format!("⟦device⟧match {index} {{ {arms} }}")),
                ]
            }
            _ => {
                let (name, index) = (self.name(), self.index(scope));
                let mut parts = vec![Part::Text(format!("let {name} = ⟦device⟧match {index} {{ 2 => "))];
                parts.push(self.arm_value(scope, depth, false));
                parts.push(Part::Text(" 0 | 3 => ".into()));
                parts.push(self.arm_value(scope, depth, false));
                let last = self.arm(scope, |g, inner| g.work(inner));
                parts.push(Part::Text(format!(" _ => {last}? }};")));
                scope.add(&name, Kind::Tensor, false);
                vec![Stmt { condition: None, parts }]
            }
        }
    }

    /// A variable without a value, which arms assign and move.
    fn taken_in_arms(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        let (name, index) = (self.name(), self.index(scope));
        scope.add(&name, Kind::Gone, false);
        let arms: Vec<String> = ["0", "1 | -1", "_"]
            .into_iter()
            .map(|pattern| {
                let value = self.arm(scope, |g, inner| g.work(inner));
                let taken = if pattern == "_" && self.chance(0.3) {
                    format!("ops::store(&kv.s, &{name})?;")
                } else {
                    format!("let taken = {name}; ops::store(&kv.s, &taken)?;")
                };
                format!("{pattern} => {{ {name} = {value}?; {taken} }}")
            })
            .collect();
        let ty = self.pick(&["", ": Tensor<'_, f32>"]);
        vec![
            Stmt::text(format!("let {name}{ty};")),
            Stmt::text(format!("⟦device⟧match {index} {{ {} }}", arms.join(" "))),
        ]
    }

    /// Control flow as an operand, beside a read of the variable that its arms assign, and move in between.
    fn beside_operand(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        let Some(held) = scope.assignable().choose(&mut self.rng).cloned() else {
            return self.taken_in_arms(scope);
        };
        let mut moved = scope.clone();
        moved.update(&held, |v| v.kind = Kind::Gone);
        let arms: Vec<String> = (0..2)
            .map(|_| {
                let (one, given) = self.arm(scope, |g, inner| (g.work(inner), g.work(inner)));
                if self.chance(0.3) {
                    return format!("{held} = {one}?; {given}?");
                }
                let two = self.arm(&moved, |g, inner| g.work(inner));
                format!("{held} = {one}?; let taken = {held}; {held} = {two}?; ops::add(&taken, &{given}?)?")
            })
            .collect();
        let (name, predicate) = (self.name(), self.predicate(scope));
        let flow = format!("⟦device⟧if {predicate} {{ {} }} else {{ {} }}", arms[0], arms[1]);
        scope.add(&name, Kind::Tensor, false);
        vec![Stmt::text(format!("let {name} = ops::sub(&({flow}), &{held})?;"))]
    }

    /// A struct that arms assign as a whole, and whose fields are used afterwards.
    fn carried_struct(&mut self, scope: &mut Scope, depth: usize) -> Vec<Stmt> {
        self.fresh += 1;
        let both = format!("both{}", self.fresh);
        let (l, r, t) = (self.work(scope), self.work(scope), self.tensor(scope));
        let mut stmts = vec![Stmt::text(format!("let mut {both} = Pair {{ l: {l}?, r: {r}? }};"))];
        let arm = |g: &mut Self, value: String| {
            let Part::Block(mut arm) = g.arm_block(scope, depth) else { return Part::Block(Vec::new()) };
            arm.insert(0, Stmt::text(format!("{both} = {value};")));
            Part::Block(arm)
        };
        let head = format!("⟦device⟧if {} ", self.predicate(scope));
        let one = arm(self, format!("pair(&{both}.r, {t})?"));
        let mut parts = vec![Part::Text(head), one];
        if self.chance(0.5) {
            parts.push(Part::Text(" else ".into()));
            parts.push(arm(self, format!("Pair {{ l: {both}.r, r: {both}.l }}")));
        }
        stmts.push(Stmt { condition: None, parts });
        let name = self.name();
        stmts.push(Stmt::text(format!("let mut {name} = ops::sub(&{both}.l, &{both}.r)?;")));
        scope.add(&name, Kind::Tensor, true);
        stmts
    }

    fn index(&mut self, scope: &Scope) -> String {
        if self.chance(0.6) {
            return "q".to_owned();
        }
        let n = self.number(scope);
        format!("⟪ops::full(x.scope(), (), {n} as i32)?¦{n} as i32⟫")
    }

    /// A struct of which arms assign fields; they use the others, and some try to change them by something else than an
    /// assignment, which is refused.
    fn assigned_fields(&mut self, scope: &mut Scope, depth: usize) -> Vec<Stmt> {
        self.fresh += 1;
        let net = format!("net{}", self.fresh);
        let (l, r, n) = (self.work(scope), self.tensor(scope), self.number(scope));
        let mut stmts = Vec::new();
        let arm = |g: &mut Self| {
            let Part::Block(mut arm) = g.arm_block(scope, depth) else { return Part::Block(Vec::new()) };
            for _ in 0..g.rng.random_range(1..4) {
                let used = g.arm(scope, |g, inner| g.use_of_net(inner, &net, 1));
                arm.insert(0, Stmt::text(used));
            }
            Part::Block(arm)
        };
        if self.chance(0.3) {
            let turn = format!("turn{}", self.fresh);
            let Part::Block(mut body) = arm(self) else { return Vec::new() };
            body.push(Stmt::text(format!("{turn} = ⟪ops::add(&{turn}, 1)?¦{turn} + 1⟫;")));
            stmts.push(Stmt::text(format!("let mut {turn} = ⟪ops::full(x.scope(), (), 0i32)?¦0i32⟫;")));
            let head = Part::Text(format!("⟦device⟧while ⟪ops::lt(&{turn}, q)?¦{turn} < q⟫ "));
            stmts.push(Stmt { condition: None, parts: vec![head, Part::Block(body)] });
        } else {
            let mut parts = vec![Part::Text(format!("⟦device⟧if {} ", self.predicate(scope))), arm(self)];
            if self.chance(0.4) {
                parts.extend([Part::Text(" else ".into()), arm(self)]);
            }
            stmts.push(Stmt { condition: None, parts });
        }
        let stmts = self.owned_or_lent(&net, format!("Net::of({l}?, {r}, {n})"), stmts);
        let name = self.name();
        scope.add(&name, Kind::Tensor, true);
        // A struct that no recording can hold ends before the next boundary.
        let parts =
            vec![Part::Text(format!("let mut {name} = ")), Part::Block(stmts), Part::Text(";".into())];
        vec![Stmt { condition: None, parts }]
    }

    /// Statements about a struct, and a tensor of it. Where it is lent, nothing in the text says that the variable is a
    /// reference.
    fn owned_or_lent(&mut self, net: &str, value: String, used: Vec<Stmt>) -> Vec<Stmt> {
        let (mut stmts, sum) = match self.rng.random_range(0..4) {
            0 => {
                let nets = Stmt::text(format!("let mut {net}s = vec![{value}];"));
                let lent = Stmt::text(format!("let {net} = {net}s.last_mut().unwrap();"));
                ([nets, lent].into_iter().chain(used).collect(), format!("{net}s[0].sum()?"))
            }
            1 => {
                let nets = Stmt::text(format!("let mut {net}s = vec![{value}];"));
                let head = Part::Text(format!("for (_, {net}) in {net}s.iter_mut().enumerate() "));
                let turns = Stmt { condition: None, parts: vec![head, Part::Block(used)] };
                (vec![nets, turns], format!("{net}s[0].sum()?"))
            }
            _ => {
                let owned = Stmt::text(format!("let mut {net} = {value};"));
                (std::iter::once(owned).chain(used).collect::<Vec<_>>(), format!("{net}.sum()?"))
            }
        };
        stmts.push(Stmt::text(sum));
        stmts
    }

    /// A statement of an arm about a struct; `deeper` arms may stand in it.
    fn use_of_net(&mut self, scope: &Scope, net: &str, deeper: usize) -> String {
        let (t, work) = (self.tensor(scope), self.work(scope));
        let field = self.pick(&["l", "r", "l", "all[0]"]);
        if self.chance(0.06) {
            return match self.rng.random_range(0..7) {
                0 | 1 => format!("{net}.l = {work}?; {net}.bump()?;"),
                2 => format!("{net}.l = {work}?; {net}.all.push(({t}).clone());"),
                3 => format!("{net}.l = {work}?; {net}.spare.take();"),
                4 => format!("{net}.l = {work}?; let ref mut r = {net}.r; *r = ({t}).clone();"),
                5 => format!("{net}.l = {work}?; put!({net}.r, ({t}).clone());"),
                _ => format!("{net}.l = {work}?; for t in {net}.all.iter_mut() {{ *t = ops::neg(&*t)?; }}"),
            };
        }
        match self.rng.random_range(0..10) {
            0 => format!("{net}.l = {net}.middle()?;"),
            1 => format!("{net}.l = ops::scale({net}.right(), {net}.n.max(2) as f32)?;"),
            2 => format!("for t in {net}.all.iter() {{ {net}.l = ops::add(&{net}.l, t)?; }}"),
            3 => format!("{net}.all[1] = {work}?; {net}.all.reverse();"),
            4 => format!("if let Some(t) = {net}.spare.as_ref() {{ {net}.r = ops::sub(&{net}.r, t)?; }}"),
            5 => format!("{net}.r = match {net}.spare {{ Some(ref t) => ops::neg(t)?, None => {work}? }};"),
            6 => format!(
                "let kept = vec![{net}.r.clone(), ({t}).clone()]; {net}.l = ops::sub(&kept[0], &kept[1])?;"
            ),
            7 => format!(
                "{{ let mut {net} = {net}.clone(); {net}.bump()?; {net}.l = {work}?; }} {net}.{field} = {work}?;"
            ),
            8 if deeper > 0 => {
                let (predicate, inner) = (self.predicate(scope), self.use_of_net(scope, net, deeper - 1));
                format!("⟦device⟧if {predicate} {{ {net}.{field} = {work}?; {inner} }}")
            }
            _ => format!("{net}.{field} = {work}?;"),
        }
    }

    /// A loop that the parameter bounds.
    fn rounds(&mut self, scope: &Scope, depth: usize) -> Vec<Stmt> {
        self.fresh += 1;
        let (turn, k) = (format!("turn{}", self.fresh), self.pick(&["0", "1", "-1"]));
        let mut inner = scope.nested();
        inner.loops += 1;
        let Part::Block(mut body) = self.arm_block(&inner, depth) else { return Vec::new() };
        let at = self.rng.random_range(0..=body.len());
        body.insert(at, Stmt::text(format!("{turn} = ⟪ops::add(&{turn}, 1)?¦{turn} + 1⟫;")));
        let limit = self.pick(&["⟦device⟧", "⟦device(limit = 5)⟧"]);
        vec![
            Stmt::text(format!("let mut {turn} = ⟪ops::full(x.scope(), (), {k}i32)?¦{k}i32⟫;")),
            Stmt {
                condition: None,
                parts: vec![
                    Part::Text(format!("{limit}while ⟪ops::lt(&{turn}, q)?¦{turn} < q⟫ ")),
                    Part::Block(body),
                ],
            },
        ]
    }

    /// The value of a function that the device chooses.
    pub(super) fn device_tail(&mut self, scope: &Scope) -> Stmt {
        let head = format!("⟦device⟧if {} ", self.predicate(scope));
        let (one, two) = (self.arm_value(scope, 1, true), self.arm_value(scope, 1, true));
        Stmt { condition: None, parts: vec![Part::Text(head), one, Part::Text(" else ".into()), two] }
    }
}
