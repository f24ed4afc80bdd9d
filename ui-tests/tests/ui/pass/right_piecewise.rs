//! What docs/diagnostics.md shows instead of the wrong boundaries.

#![deny(warnings)]
#![allow(dead_code, reason = "they are compiled, and read")]

mod g060 {
    use graphable::prelude::*;

    #[graphable]
    fn layer(h: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = #[eager]
        ops::exp(h)?;
        ops::neg(&a)
    }

    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let h = #[piecewise]
        layer(x)?;
        ops::neg(&h)
    }
}

mod g061 {
    use graphable::prelude::*;

    #[graphable]
    fn layer(h: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = #[eager]
        ops::exp(h)?;
        ops::neg(&a)
    }

    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let h = #[piecewise]
        layer(x)?;
        ops::neg(&h)
    }
}

mod g062 {
    use graphable::prelude::*;

    #[graphable]
    fn layer(h: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = #[eager]
        ops::exp(h)?;
        ops::neg(&a)
    }

    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let h = ops::neg(x)?;
        #[piecewise]
        layer(&h)
    }
}

mod g063 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = #[eager]
        ops::exp(x)?;
        ops::neg(&a)
    }
}

mod g064 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] turns: usize) -> Result<Tensor<f32>> {
        let mut h = x.clone();
        for _ in 0..turns {
            h = #[eager]
            ops::exp(&h)?;
        }
        Ok(h)
    }
}

mod g065 {
    use graphable::prelude::*;

    fn rows(x: &Tensor<f32>) -> Result<usize> {
        x.dim(0).get()
    }

    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let mut h = ops::neg(x)?;
        let e = ops::exp(&h)?;
        for _ in 0..rows(&e)? {
            h = #[eager]
            ops::neg(&h)?;
        }
        ops::add(&h, &e)
    }
}

mod g066 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
        let mut a = x.clone();
        for _ in 0..=n {
            a = #[eager]
            ops::neg(&a)?;
        }
        Ok(a)
    }
}

mod g067 {
    use graphable::prelude::*;

    struct Guard;

    impl Drop for Guard {
        fn drop(&mut self) {}
    }

    fn enter() -> Guard {
        Guard
    }

    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let h = {
            let _guard = enter();
            ops::neg(x)?
        };
        #[eager]
        ops::exp(&h)
    }
}

mod g068 {
    use graphable::prelude::*;

    #[graphable]
    fn twice(h: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::add(h, h)
    }

    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = #[eager]
        ops::exp(x)?;
        twice(&a)
    }
}

mod g069 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, y: &Tensor<f32>) -> Result<(Tensor<f32>, Tensor<f32>)> {
        let a = ops::neg(x)?;
        // Needs nothing of the device work above it: it runs first.
        let b = #[eager(early)]
        ops::exp(y)?;
        let c = ops::add(&a, &b)?;
        // Nothing below needs it: it runs last.
        let d = #[eager(late)]
        ops::exp(&c)?;
        let e = ops::neg(&c)?;
        Ok((d, e))
    }
}

fn main() {}
