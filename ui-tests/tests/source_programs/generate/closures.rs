//! Closures that device work calls.

use rand::{Rng, seq::IndexedRandom};

use super::{Generator, Kind, Scope};
use crate::program::Stmt;

impl Generator {
    /// A closure, which may take the name of another.
    pub(super) fn closure(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        let name = self.pick(&["f", "g"]).to_owned();
        let captured = self.tensor(scope);
        // One that is made of another, which may have its name.
        let others: Vec<String> = scope.of(Kind::Closure).iter().map(|v| v.name.clone()).collect();
        let body = match self.rng.random_range(0..4) {
            0 if !others.is_empty() => {
                let other = others.choose(&mut self.rng).expect("one");
                format!("|v| scaled(&{other}(v)?, 0.5)")
            }
            // Names of its own that others have around it.
            3 => {
                let (k, n) = (self.host_name(), self.number(scope));
                format!(
                    "|v| {{ let (mut by, mut left) = ({n} as f32, vec![3usize, 1]); \
                     while let Some({k}) = left.pop() {{ by += {k} as f32; }} \
                     for {k} in 0..2usize {{ by -= {k} as f32; }} scaled(v, by + {n} as f32) }}"
                )
            }
            0 => {
                scope.hold(captured.trim_start_matches('&'));
                format!("|v| ops::add(v, {captured})")
            }
            1 => format!("|v| scaled(v, {})", self.float(scope)),
            _ => "|v| ops::mul(v, &m.layers[1].b)".to_owned(),
        };
        scope.add(&name, Kind::Closure, false);
        vec![Stmt::text(format!("let {name} = {body};"))]
    }

    /// A closure whose parameter has no type, which an arm calls last, with a variable of its own.
    pub(super) fn called_in_arm(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        let Some(held) = scope.assignable().choose(&mut self.rng).cloned() else {
            return self.closure(scope);
        };
        let name = self.pick(&["f", "g"]);
        let mut others = scope.clone();
        others.update(&held, |v| v.kind = Kind::Gone);
        let captured = self.tensor(&others);
        let body = match self.rng.random_range(0..3) {
            0 => format!("ops::add(v, {captured})"),
            1 => format!("scaled(v, {})", self.float(scope)),
            _ => "ops::mul(v, &m.layers[1].b)".to_owned(),
        };
        let mut stmts = vec![Stmt::text(format!("let {name} = |v| {body};"))];
        if self.chance(0.5) {
            let one = self.name();
            stmts.push(Stmt::text(format!("let {one} = {name}({})?;", self.tensor(&others))));
            scope.add(&one, Kind::Tensor, false);
            // It may hide what the closure captured.
            others = scope.clone();
            others.update(&held, |v| v.kind = Kind::Gone);
            if one == held || one == captured.trim_start_matches('&') {
                return stmts;
            }
        }
        self.fresh += 1;
        let own = format!("own{}", self.fresh);
        let taken = match self.rng.random_range(0..3) {
            0 => format!(
                "let {name} = |v| scaled(v, 3.0); let {own} = {name}(&{own})?; {held} = {name}(&{own})?;"
            ),
            1 => format!("{held} = {{ let {name} = {name}(&{own})?; ops::neg(&{name})? }};"),
            _ => format!("{held} = {name}(&{own})?;"),
        };
        let value = self.arm(&others, |g, inner| g.work(inner));
        let arm = format!("let {own} = {value}?; let {own} = {name}(&{own})?; {taken}");
        let flow = format!("⟦device⟧if {} {{ {arm} }}", self.predicate(scope));
        let flow = match self.rng.random_range(0..3) {
            0 => format!(
                "if {} {{ {flow} }} else {{ let {name} = {held}.clone(); {held} = ops::neg(&{name})?; }}",
                self.condition(&others)
            ),
            1 => format!("{{ {flow} }}"),
            _ => flow,
        };
        stmts.push(Stmt::text(flow));
        scope.add(name, Kind::Gone, false);
        stmts
    }
}
