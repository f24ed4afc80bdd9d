//! What docs/diagnostics.md shows instead of side effects in segments.

#![deny(warnings)]
#![allow(dead_code, reason = "they are compiled, and read")]

mod g070 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
        let h = ops::scale(x, n as f32)?;
        #[eager]
        {
            println!("rank {}", h.rank());
        }
        ops::neg(&h)
    }
}

mod g071 {
    use graphable::prelude::*;

    macro_rules! bind {
        ($name:ident, $e:expr) => {
            let $name = $e;
        };
    }

    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        bind!(t, ops::neg(x)?);
        let h = t;
        let a = #[eager]
        ops::exp(x)?;
        ops::add(&a, &h)
    }
}

mod g072 {
    use graphable::prelude::*;

    use std::fs;

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
        let h = ops::scale(x, n as f32)?;
        #[host]
        let text = fs::read_to_string("scale").unwrap_or_default();
        ops::scale(&h, text.len() as f32)
    }
}

mod g073 {
    use graphable::prelude::*;

    use std::time::Instant;

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
        let h = ops::scale(x, n as f32)?;
        #[eager]
        {
            let now = Instant::now();
            assert!(now.elapsed().as_secs() < 60);
        }
        ops::neg(&h)
    }
}

mod g074 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, rng: &Rng) -> Result<Tensor<f32>> {
        ops::dropout(rng, x, 0.1)
    }

    fn run(graph: &DecodeGraph, step: &Step<'_>, rng: &Rng) -> Result<Vec<f32>> {
        let x = step.tensor(&[2], &[1.0, 2.0])?;
        let y = graph.call(step, &x, rng)?;
        step.read(&y)
    }
}

mod g075 {
    use graphable::prelude::*;

    use std::{thread, time::Duration};

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
        let h = ops::scale(x, n as f32)?;
        #[eager]
        {
            thread::sleep(Duration::from_millis(1));
        }
        ops::neg(&h)
    }
}

mod g076 {
    use graphable::prelude::*;

    use std::env;

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] scale: u32) -> Result<Tensor<f32>> {
        ops::scale(x, scale as f32)
    }

    fn scale() -> u32 {
        env::var("SCALE").ok().and_then(|s| s.parse().ok()).unwrap_or(1)
    }
}

mod g077 {
    use graphable::prelude::*;

    use std::sync::atomic::{AtomicUsize, Ordering};

    static CALLS: AtomicUsize = AtomicUsize::new(0);

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
        #[eager]
        {
            CALLS.fetch_add(1, Ordering::Relaxed);
        }
        ops::scale(x, n as f32)
    }
}

mod g078 {
    use graphable::prelude::*;

    #[derive(Params)]
    struct Model {
        w: Param<f32>,
        calls: State<u32>,
    }

    #[graphable]
    fn decode(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
        let a = #[eager]
        ops::neg(x)?;
        let calls = ops::load(x.scope(), &model.calls)?;
        ops::store(&model.calls, &ops::add(&calls, &ops::ones_like(&calls)?)?)?;
        ops::mul(&a, &model.w)
    }
}

mod g079 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, #[host] by: &Scalar<f32>) -> Result<Tensor<f32>> {
        ops::mul(x, by)
    }

    async fn run(graph: &DecodeGraph, rt: &mut Runtime, fetch: impl Future<Output = f32>) -> Result<Vec<f32>> {
        let by = fetch.await;
        let step = rt.step()?;
        let x = step.tensor(&[1], &[1.0])?;
        step.read(&graph.call(&step, &x, by)?)
    }
}

mod g080 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let mut n = 1.0;
        let fixed = n;
        let by_n = move |t: &Tensor<f32>| ops::scale(t, fixed);
        n += 1.0;
        let a = #[eager]
        ops::neg(x)?;
        ops::scale(&by_n(&a)?, n)
    }
}

mod g081 {
    use graphable::prelude::*;

    #[derive(Params)]
    struct Layer {
        a: Param<f32>,
        b: Param<f32>,
    }

    #[graphable]
    fn decode(x: &Tensor<f32>, layer: &Layer) -> Result<Tensor<f32>> {
        let by = &layer.a;
        let project = |t: &Tensor<f32>| ops::mul(t, by);
        let a = #[eager]
        ops::neg(x)?;
        let then = &layer.b;
        let b = project(&a)?;
        ops::mul(&b, then)
    }
}

mod g082 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        #[key]
        let n: usize = #[eager(cx)]
        {
            cx.read(x)?.len()
        };
        ops::scale(x, n as f32)
    }
}

mod g083 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let mut i = 0;
        let a = #[eager]
        ops::neg(x)?;
        i += 1;
        let b = ops::scale(&a, i as f32)?;
        #[host]
        let j = i + 1;
        ops::scale(&b, j as f32)
    }
}

mod g084 {
    use graphable::prelude::*;

    type Op = for<'s> fn(&Tensor<'s, f32>) -> Result<Tensor<'s, f32>>;

    #[graphable]
    fn decode(#[key] again: bool, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        #[host]
        let f: Op = if again { |t| ops::scale(t, 2.0) } else { |t| ops::scale(t, 0.5) };
        let y = #[eager]
        f(x)?;
        f(&y)
    }
}

mod g085 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(#[key] n: usize, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let by = n + 1;
        macro_rules! scaled {
            ($t:expr, $by:expr) => {
                ops::scale($t, $by as f32)
            };
        }
        let a = #[eager]
        ops::neg(x)?;
        ops::neg(&scaled!(&a, by)?)
    }
}

fn main() {}
