//! Control flow of the device beside what was made of a variable before it (macros, references, closures), and variables that
//! arms change in other ways than by an assignment of the whole name.
//!
//! Where an arm assigns what something from before refers to, the macro may refuse the program by rustc's E0506. It must not
//! compute with the value from before.

use rand::{Rng, seq::IndexedRandom};

use super::{Generator, Kind, Scope};
use crate::program::{Part, Stmt};

impl Generator {
    pub(super) fn named_before(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        match self.rng.random_range(0..10) {
            0..4 => self.made_before(scope),
            4 => self.parts_of_a_local(scope),
            5 => self.own_name_of_an_arm(scope),
            6 => self.replaced_later(scope),
            7 => self.changed_elements(scope),
            8 => self.boxed(scope),
            _ => self.swapped(scope),
        }
    }

    /// Two variables that can be assigned.
    fn two_assignable(&mut self, scope: &Scope) -> Option<(String, String)> {
        let all = scope.assignable();
        let one = all.choose(&mut self.rng)?.clone();
        let others: Vec<&String> = all.iter().filter(|name| **name != one).collect();
        Some((one, (*others.choose(&mut self.rng)?).clone()))
    }

    /// `if` or `while` of the device around the same text, with what must stand before it.
    fn around(&mut self, scope: &Scope, arm: &str) -> String {
        if self.chance(0.3) {
            self.fresh += 1;
            let turn = format!("turn{}", self.fresh);
            return format!(
                "let mut {turn} = ⟪ops::full(x.scope(), (), 0i32)?¦0i32⟫; \
                 ⟦device⟧while ⟪ops::lt(&{turn}, q)?¦{turn} < q⟫ {{ {arm} {turn} = ⟪ops::add(&{turn}, 1)?¦{turn} + 1⟫; }}"
            );
        }
        let predicate = self.predicate(scope);
        format!("⟦device⟧if {predicate} {{ {arm} }}")
    }

    /// A block with a value, as a variable.
    fn block_of(&mut self, scope: &mut Scope, stmts: Vec<String>) -> Vec<Stmt> {
        let name = self.name();
        scope.add(&name, Kind::Tensor, true);
        let head = Part::Text(format!("let mut {name} = "));
        let block = Part::Block(stmts.into_iter().map(Stmt::text).collect());
        vec![Stmt { condition: None, parts: vec![head, block, Part::Text(";".into())] }]
    }

    /// A macro, a reference or a closure that names a variable, used before, in and after arms that assign this variable or
    /// another one. Arms that assign what a macro or a reference names may not use it (docs/guide/control-flow.md).
    fn made_before(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        let Some((named, other)) = self.two_assignable(scope) else {
            return self.changed_elements(scope);
        };
        self.fresh += 1;
        let was = format!("was{}", self.fresh);
        let mut hidden = scope.clone();
        hidden.update(&named, |v| v.kind = Kind::Gone);
        let mut unassigned = hidden.clone();
        unassigned.update(&other, |v| v.kind = Kind::Gone);
        let t = self.tensor(&unassigned);
        let (made, used) = match self.rng.random_range(0..6) {
            0 | 1 => (
                format!("macro_rules! {was} {{ () => {{ ops::sub(&{named}, {t})? }} }}"),
                format!("{was}!()"),
            ),
            2 => (format!("let {was} = &{named};"), format!("ops::sub({was}, {t})?")),
            3 => (format!("let {was} = [&{named}, {t}];"), format!("ops::sub({was}[0], {was}[1])?")),
            4 => (format!("let {was} = |by: f32| ops::scale(&{named}, by);"), format!("{was}(0.5)?")),
            _ => (
                format!("let {was} = {named}.clone(); let {was} = move |by: f32| ops::scale(&{was}, by);"),
                format!("{was}(2.0)?"),
            ),
        };
        let work = self.arm(&hidden, |g, inner| g.work(inner));
        let is_closure = made.contains("|by: f32|");
        let made = self.remade(&was, made);
        let arm = match self.rng.random_range(0..6) {
            0 if is_closure => format!("{named} = {work}?; {other} = {used};"),
            1 if is_closure => format!("{other} = {used}; {named} = {work}?;"),
            0..3 => format!("{named} = {work}?;"),
            3 => format!("{other} = {used}; {other} = ops::add(&{other}, &{used})?;"),
            _ => format!("{other} = {used};"),
        };
        let mut stmts = vec![made];
        if self.chance(0.4) {
            stmts.push(format!("ops::store(&kv.s, &{used})?;"));
        }
        stmts.push(self.around(&hidden, &arm));
        let after = [used, format!("ops::neg(&{named})?"), format!("ops::sub(&{named}, &{other})?")];
        stmts.push(after.choose(&mut self.rng).expect("three").clone());
        self.block_of(scope, stmts)
    }

    /// A closure that wraps one of its own name, or beside which names mean something else.
    fn remade(&mut self, name: &str, made: String) -> String {
        if !made.contains("|by: f32|") {
            return made;
        }
        match self.rng.random_range(0..5) {
            0 => format!("{made} let {name} = |by: f32| {name}(by + 1.0);"),
            1 => format!(
                "let by = n as f32; {made} let {name} = move |s: f32| {name}(s + by); let by = by + 7.0; let _ = by;"
            ),
            2 => format!(
                "macro_rules! factor {{ () => {{ 2.0f32 }} }} {made} \
                 let {name} = |by: f32| {name}(by * factor!()); macro_rules! factor {{ () => {{ 9.0f32 }} }} let _ = factor!();"
            ),
            _ => made,
        }
    }

    /// Fields of a tuple, elements of an array.
    fn parts_of_a_local(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        self.fresh += 1;
        let both = format!("both{}", self.fresh);
        let (one, two, three) = (self.work(scope), self.work(scope), self.work(scope));
        let (made, l, r) = if self.chance(0.5) {
            (format!("({one}?, {two}?)"), format!("{both}.0"), format!("{both}.1"))
        } else {
            (format!("[{one}?, {two}?]"), format!("{both}[0]"), format!("{both}[1]"))
        };
        let arm = match self.rng.random_range(0..5) {
            0 => format!("{l} = {three}?;"),
            1 => format!("{l} = {three}?; {r} = ops::neg(&{l})?;"),
            2 => format!("let kept = {both}.clone(); {l} = ops::neg(&{r})?; {both} = kept;"),
            3 => format!("{both} = {both}.clone(); {r} = ops::sub(&{l}, &{r})?;"),
            _ => format!("{r} = ops::add(&{r}, &{l})?; {l} = {three}?;"),
        };
        let flow = self.around(scope, &arm);
        let stmts = vec![format!("let mut {both} = {made};"), flow, format!("ops::sub(&{l}, &{r})?")];
        self.block_of(scope, stmts)
    }

    /// An arm's own variable takes the name of one around it, which the arm may have assigned.
    fn own_name_of_an_arm(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        let Some((named, other)) = self.two_assignable(scope) else {
            return self.boxed(scope);
        };
        let (one, t) = (self.work(scope), self.tensor(scope));
        let assigned = if self.chance(0.6) { format!("{named} = {one}?; ") } else { String::new() };
        let arm = match self.rng.random_range(0..4) {
            0 => format!(
                "{assigned}let mut {named} = ops::neg(&{named})?; {named} = ops::add(&{named}, {t})?; {other} = {named};"
            ),
            1 => format!("{assigned}for {named} in [{t}] {{ {other} = ops::sub({named}, &{other})?; }}"),
            2 => format!("{assigned}if let Some({named}) = pick(1, {t}) {{ {other} = {named}; }}"),
            _ => format!(
                "{assigned}{{ let {named} = ops::neg({t})?; {other} = {named}; }} {named} = {other}.clone();"
            ),
        };
        vec![Stmt::text(self.around(scope, &arm))]
    }

    /// An arm moves a variable, which is assigned anew afterwards.
    fn replaced_later(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        let Some((named, other)) = self.two_assignable(scope) else {
            return self.changed_elements(scope);
        };
        let mut moved = scope.clone();
        moved.update(&named, |v| v.kind = Kind::Gone);
        let (one, after) = (self.work(&moved), self.work(&moved));
        let taken = match self.rng.random_range(0..3) {
            0 => format!("let taken = {named}; ops::store(&kv.s, &taken)?;"),
            1 => format!("{other} = {named};"),
            _ => format!("{other} = {one}?; drop({named});"),
        };
        let predicate = self.predicate(scope);
        let otherwise = match self.rng.random_range(0..3) {
            0 => format!(" else {{ {other} = ops::neg(&{named})?; }}"),
            1 => format!(" else {{ {named} = {one}?; ops::store(&kv.s, &{named})?; }}"),
            _ => String::new(),
        };
        vec![
            Stmt::text(format!("⟦device⟧if {predicate} {{ {taken} }}{otherwise}")),
            Stmt::text(format!("{named} = {after}?;")),
        ]
    }

    /// Elements of a list and what an option holds, by references whose type is not written.
    fn changed_elements(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        self.fresh += 1;
        let all = format!("all{}", self.fresh);
        let (one, two, three) = (self.work(scope), self.work(scope), self.work(scope));
        let arm = match self.rng.random_range(0..4) {
            0 => "*t = ops::neg(&*t)?;".to_owned(),
            1 => format!("*t = {three}?; *t = ops::add(t, &m.w)?;"),
            2 => format!("let kept = t.clone(); *t = {three}?; *t = ops::sub(&*t, &kept)?;"),
            _ => format!("*t = {three}?;"),
        };
        let flow = self.around(scope, &arm);
        let walked = match self.rng.random_range(0..5) {
            0 => format!("for t in {all}.iter_mut() {{ {flow} }}"),
            1 => format!(
                "for (i, t) in {all}.iter_mut().enumerate() {{ *t = ops::scale(t, i as f32)?; {flow} }}"
            ),
            2 => format!("if let Some(t) = {all}.last_mut() {{ {flow} }}"),
            3 => format!("let t = &mut {all}[0]; {flow}"),
            _ => format!("for t in &mut {all}[1..] {{ {flow} }}"),
        };
        let stmts = vec![
            format!("let mut {all} = vec![{one}?, {two}?];"),
            format!("{{ {walked} }}"),
            format!("ops::sub(&{all}[0], &{all}[1])?"),
        ];
        self.block_of(scope, stmts)
    }

    fn boxed(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        self.fresh += 1;
        let held = format!("held{}", self.fresh);
        let (one, two) = (self.work(scope), self.work(scope));
        let (made, arm) = match self.rng.random_range(0..4) {
            0 => (format!("Box::new({one}?)"), format!("*{held} = {two}?;")),
            1 => (
                format!("Box::new({one}?)"),
                format!("{held} = Box::new({two}?); *{held} = ops::neg(&*{held})?;"),
            ),
            2 => (format!("Some({one}?)"), format!("{held} = Some({two}?);")),
            _ => (
                format!("Some({one}?)"),
                format!(
                    "if let Some(t) = &{held} {{ {held} = Some(ops::sub(t, {})?); }}",
                    self.tensor(scope)
                ),
            ),
        };
        let last = if made.starts_with("Box") {
            format!("ops::neg(&*{held})?")
        } else {
            format!("match &{held} {{ Some(t) => ops::neg(t)?, None => {one}? }}")
        };
        let flow = self.around(scope, &arm);
        self.block_of(scope, vec![format!("let mut {held} = {made};"), flow, last])
    }

    /// Arms exchange values. The functions of the standard library that do so take references, which arms only give to variables of
    /// their own (G126).
    fn swapped(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        let Some((named, other)) = self.two_assignable(scope) else {
            return self.parts_of_a_local(scope);
        };
        // What is lent mutably is not lent once more in the same call.
        let mut others = scope.clone();
        others.update(&named, |v| v.kind = Kind::Gone);
        let (one, t) = (self.work(scope), self.tensor(&others));
        let arm = match self.rng.random_range(0..5) {
            0 => format!("({named}, {other}) = ({other}, {named});"),
            1 => format!("{other} = {{ let before = {named}.clone(); {named} = ({t}).clone(); before }};"),
            2 => format!("let mut own = {named}.clone(); {other} = change(&mut own, {t})?; {named} = own;"),
            3 => format!(
                "let mut own = {one}?; {other} = std::mem::replace(&mut own, {named}.clone()); {named} = own;"
            ),
            _ => format!(
                "let (mut second, mut own) = ({one}?, {named}); std::mem::swap(&mut own, &mut second); \
                 ({named}, {other}) = (own, second);"
            ),
        };
        vec![Stmt::text(self.around(scope, &arm))]
    }
}
