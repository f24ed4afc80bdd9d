//! Format strings in functions with boundaries: braces that are none, and names that stand in them.

use graphable::{graphable, prelude::*};

use crate::support::{attention, check};

#[graphable]
fn checked(x: &Tensor<f32>, #[key] width: usize) -> Result<Tensor<f32>> {
    assert!(width > 0, "{{m²}} is {{½}} of {{²,3}}: {width:>0$}", width);
    let precision = width + 1;
    let h = ops::scale(x, 2.0)?;
    let value = 1.5;
    assert!(h.rank() == 1, "{value:½>width$.precision$} {:>width$} {{", width);
    let a = #[eager]
    attention(&h)?;
    if a.rank() == 7 {
        return Err(Error::Argument { op: "rank", reason: format!("{{²}} {value:.precision$} {width}") });
    }
    ops::add(&a, &h)
}

#[test]
fn braces_and_widths() {
    check!(
        CheckedGraph,
        |rt| (),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = n;
            g.call(&step, &x, 2)
        },
        vec![4.0]
    );
}

#[derive(Clone, Params)]
struct Head {
    #[config]
    name: String,
}

impl std::fmt::Display for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

#[graphable]
impl Head {
    fn run(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let h = ops::scale(x, format!("{self}{}", self.name).len() as f32)?;
        assert!(h.rank() == 1, "{self}: {{²}}");
        let a = #[eager]
        attention(&h)?;
        assert!(a.rank() == 1, "{self}",);
        ops::add(&a, x)
    }
}

#[test]
fn what_self_says() {
    check!(
        HeadRunGraph,
        |rt| Head { name: "ab".into() },
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = n;
            g.call(&step, &m, &x)
        },
        vec![5.0]
    );
}
