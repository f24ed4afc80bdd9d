//! Inputs that an expansion once failed on.

use crate::input::Entry;

/// Entry, arguments and item of each.
pub(crate) const FOUND: &[(Entry, &str, &str)] = &[
    (
        Entry::Graphable,
        "",
        "fn f(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let Some(y) = #[eager] f(x)? else { break };
        scaled(&y, 2.0)
    }",
    ),
    (
        Entry::Graphable,
        "",
        "fn f(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        assert!(x.rank() == 2, \"{{m²}} is wrong\");
        let a = #[eager] f(x)?;
        Err(why(format!(\"{{½}} {{²,3}}: {a:²>w$}\")))
    }",
    ),
    (
        Entry::Graphable,
        "",
        "fn f(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        #[cfg(on)] let y = #[eager] f(x)?;
        while #[device] let Some(z) = g(&y) && #[key] let 1 = z {}
        if a && #[eager(cx)] let Some(z) = #[eager] g(&y)? { z } else if #[piecewise] let b = y { b } else { x }
    }",
    ),
];
