//! Functions that `macro_rules!` made: a name that the macro was given and its own one of the same text are two
//! variables.

use graphable::{graphable, prelude::*};

use crate::support::{attention, check};

macro_rules! gives {
    ($graph:ident, $expected:expr) => {
        check!(
            $graph,
            |rt| (),
            |g, step, m, n| {
                let x = step.tensor(&[1], &[1.0]).unwrap();
                let _ = n;
                g.call(&step, &x)
            },
            vec![$expected]
        )
    };
}

macro_rules! written_in_a_loop {
    ($name:ident, $h:ident) => {
        #[graphable]
        fn $name(x: &Tensor<f32>) -> Result<Tensor<f32>> {
            let mut $h = ops::scale(x, 2.0)?;
            let h = ops::scale(x, 3.0)?;
            for _ in 0..2 {
                $h = ops::add(&$h, &h)?;
                let a = #[eager]
                attention(&$h)?;
                let h = ops::add(&a, x)?;
                $h = ops::sub(&h, x)?;
            }
            ops::add(&$h, &h)
        }
    };
}
written_in_a_loop!(first, h);

macro_rules! residual {
    ($name:ident, $h:ident, $body:block) => {
        #[graphable]
        fn $name($h: &Tensor<f32>) -> Result<Tensor<f32>> {
            let h = ops::scale($h, 5.0)?;
            let a = #[eager]
            attention(&h)?;
            let $h = $body;
            let h = ops::add(&h, &a)?;
            assert!(h.rank() == 1, "{h:?}{{h}} {}", $h.rank());
            let b = #[eager]
            attention(&$h)?;
            ops::add(&h, &b)
        }
    };
}
residual!(second, h, { ops::neg(h)? });

struct Both<'a, 's> {
    h: &'a Tensor<'s, f32>,
    k: f32,
}

macro_rules! closures_and_patterns {
    ($name:ident, $h:ident, $k:ident) => {
        #[graphable]
        fn $name(x: &Tensor<f32>) -> Result<Tensor<f32>> {
            let $h = ops::scale(x, 2.0)?;
            let h = ops::scale(x, 7.0)?;
            let k = 2.0;
            let $k = 3.0;
            let f = |t| ops::scale(t, k);
            let a = #[eager]
            attention(&$h)?;
            let Both { h: inner, k: by } = Both { h: &h, k: $k };
            let y = ops::scale(&ops::add(inner, &f(&a)?)?, by)?;
            let b = #[eager]
            attention(&y)?;
            let h = &$h;
            ops::add(&b, Both { h, k }.h)
        }
    };
}
closures_and_patterns!(third, h, k);

#[test]
fn names_of_macros() {
    // 2 -> 5 -> 8, and 3
    gives!(FirstGraph, 11.0);
    // 5 + 5, and -1
    gives!(SecondGraph, 9.0);
    // (7 + 2 * 2) * 3 + 2
    gives!(ThirdGraph, 35.0);
}
