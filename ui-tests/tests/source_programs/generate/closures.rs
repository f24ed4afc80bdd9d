//! Closures that device work calls.

use rand::Rng;

use super::{Generator, Kind, Scope};
use crate::program::Stmt;

impl Generator {
    /// A closure, which may take the name of another.
    pub(super) fn closure(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        let name = self.pick(&["f", "g"]).to_owned();
        let captured = self.tensor(scope);
        // One that is made of another.
        let others: Vec<String> =
            scope.of(Kind::Closure).iter().map(|v| v.name.clone()).filter(|n| *n != name).collect();
        let body = match self.rng.random_range(0..3) {
            0 if !others.is_empty() => format!("|v| {}(v)", others[0]),
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
}
