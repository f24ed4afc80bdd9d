//! What docs/diagnostics.md shows instead of looking at device data.

#![deny(warnings)]
#![allow(dead_code, reason = "they are compiled, and read")]

mod g040 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(#[host] x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let h = ops::exp(x)?;
        #[key]
        let large: bool = #[eager(cx)]
        {
            cx.read(&h)?[0] > 10.0
        };
        ops::scale(&h, if large { 0.1 } else { 1.0 })
    }
}

mod g041 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
        assert!(n > 0, "nothing to do for {x:?}");
        ops::scale(x, n as f32)
    }
}

mod g042 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, by: &Scalar<f32>) -> Result<Tensor<bf16>> {
        ops::cast(&ops::mul(x, by)?)
    }
}

mod g043 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, y: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = ops::add(x, y)?;
        let b = ops::neg(x)?;
        let larger = ops::ge(x, y)?;
        ops::where_(&larger, &a, &b)
    }
}

mod g044 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, mask: &Tensor<bool>, #[key] n: usize) -> Result<Tensor<f32>> {
        let head = ops::narrow(x, 0, 0, n)?;
        let kept = ops::where_(mask, x, &ops::zeros_like(x)?)?;
        ops::concat(&[&head, &kept], 0)
    }
}

mod g045 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, limit: &Scalar<f32>) -> Result<Tensor<f32>> {
        let mut h = ops::neg(x)?;
        let over = ops::gt(&h, limit)?;
        h = ops::where_(&over, &ops::exp(&h)?, &h)?;
        loop {
            let done: bool = #[eager(cx)]
            {
                cx.read(&h)?.iter().all(|v| *v < 1.0)
            };
            if done {
                return Ok(h);
            }
            h = ops::scale(&h, 0.5)?;
        }
    }
}

mod g046 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, mask: &Tensor<bool>) -> Result<Tensor<f32>> {
        let (kept, count) = #[eager(cx)]
        {
            cx.masked_select(x, mask)?.pad_to(16, 0.0)?
        };
        ops::div(&kept, &ops::cast::<u32, f32>(&count)?)
    }
}

mod g047 {
    use graphable::prelude::*;

    #[derive(Params)]
    struct Totals {
        sum: State<f32>,
    }

    #[graphable]
    fn decode(#[host] x: &Tensor<f32>, totals: &Totals) -> Result<Tensor<f32>> {
        let sum = ops::add(x, &totals.sum)?;
        ops::store(&totals.sum, &sum)?;
        Ok(sum)
    }
}

mod g048 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
        let y = ops::scale(x, n as f32)?;
        ops::neg(&y)
    }
}

fn main() {}
