//! What docs/diagnostics.md shows instead of values that cannot cross.

#![deny(warnings)]
#![allow(dead_code, reason = "they are compiled, and read")]

mod g050 {
    use graphable::prelude::*;

    struct Table(Vec<f32>);

    fn factor(t: &Table) -> f32 {
        t.0[0]
    }

    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = #[eager]
        ops::exp(x)?;
        #[host]
        let by = factor(&Table(vec![1.0]));
        ops::scale(&a, by)
    }
}

mod g051 {
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

mod g052 {
    use graphable::prelude::*;

    #[derive(GraphOutput)]
    struct Pair<'s> {
        a: Tensor<'s, f32>,
        b: Tensor<'s, f32>,
    }

    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let pair = Pair { a: ops::neg(x)?, b: ops::exp(x)? };
        let c = #[eager]
        ops::add(&pair.a, &pair.b)?;
        ops::mul(&c, &pair.a)
    }
}

mod g053 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<(Tensor<f32>, usize)> {
        Ok((ops::exp(x)?, x.rank() + n))
    }
}

mod g054 {
    use graphable::prelude::*;

    #[derive(Params)]
    struct Model {
        w: Param<f32>,
    }

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] n: usize, model: &Model) -> Result<Tensor<f32>> {
        ops::scale(&ops::mul(x, &model.w)?, n as f32)
    }
}

mod g055 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(rows: &Tensor<u32>, count: &Scalar<u32>, #[key] n: usize) -> Result<Tensor<u32>> {
        let some = ops::narrow(rows, 0, 0, n)?;
        ops::where_(&ops::lt(&some, count)?, &some, &ops::zeros_like(&some)?)
    }
}

mod g056 {
    use graphable::prelude::*;

    #[derive(Params)]
    struct Settings {
        #[config]
        eps: f32,
    }

    #[graphable]
    fn decode(x: &Tensor<f32>, settings: &Settings, #[key] causal: bool) -> Result<Tensor<f32>> {
        ops::scale(x, if causal { settings.eps } else { 1.0 })
    }
}

mod g057 {
    use graphable::prelude::*;

    #[derive(Debug)]
    struct Failure(Error);

    impl From<Error> for Failure {
        fn from(e: Error) -> Self {
            Self(e)
        }
    }

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>, Failure> {
        Ok(ops::scale(x, n as f32)?)
    }

    fn cause(f: Failure) -> Error {
        f.0
    }
}

mod g058 {
    use graphable::prelude::*;

    #[derive(Params)]
    struct Model {
        w: Param<f32>,
        #[config]
        heads: usize,
    }
}

mod g059 {
    use graphable::prelude::*;

    #[derive(Clone, Copy, ConfigValue)]
    enum Activation {
        Silu,
        Relu { scale: f32 },
    }

    #[derive(Params)]
    struct Model {
        w: Param<f32>,
        #[config]
        activation: Activation,
    }
}

fn main() {}
