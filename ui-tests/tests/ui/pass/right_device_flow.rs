//! What docs/diagnostics.md shows instead of mistakes with control flow of the device.

#![deny(warnings)]
#![allow(dead_code, reason = "they are compiled, and read")]

mod g120 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(p: &Scalar<bool>, n: &Scalar<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let mut y = x.clone();
        for _ in 0..3 {
            y = ops::neg(&y)?;
        }
        let mut i = ops::zeros(x.scope(), ())?;
        #[device(limit = 1000)]
        while ops::lt(&i, n)? {
            y = ops::neg(&y)?;
            i = ops::add(&i, 1)?;
        }
        let z = #[device]
        if p { ops::neg(&y)? } else { ops::exp(&y)? };
        let pair = vec![y, z];
        ops::add(&pair[0], &pair[1])
    }
}

mod g121 {
    use graphable::prelude::*;

    const LAST: u32 = 9;

    #[graphable]
    fn decode(k: &Scalar<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let mut y = x.clone();
        #[device]
        match k {
            0 => y = ops::neg(&y)?,
            1 | 2 | 3 => y = ops::exp(&y)?,
            LAST => {
                #[device]
                if ops::gt(&ops::sum(x, 0)?, 0.0)? {
                    y = ops::silu(&y)?;
                }
            }
            _ => y = ops::mul(&y, &ops::cast(k)?)?,
        }
        #[device]
        if ops::eq(k, 3)? {
            y = ops::neg(&y)?;
        }
        Ok(y)
    }
}

mod g122 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(#[key] n: usize, p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        if n == 0 {
            return Err(Error::Argument { op: "decode", reason: "no rounds".to_owned() });
        }
        let mut y = x.clone();
        let mut go_on = ops::full(x.scope(), (), true)?;
        #[device(limit = 8)]
        while ops::logical_and(&go_on, p)? {
            y = ops::scale(&y, 0.5)?;
            go_on = ops::gt(&ops::sum(&y, 0)?, 1.0)?;
        }
        let z = #[device]
        if p { ops::neg(&y)? } else { y };
        ops::exp(&z)
    }
}

mod g123 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let v = #[eager]
        ops::neg(x)?;
        let y = #[device]
        if p { ops::scale(&v, 2.0)? } else { v };
        ops::exp(&y)
    }
}

mod g124 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(#[key] flag: bool, t: &Scalar<f32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let mut y = x.clone();
        if flag {
            y = ops::neg(&y)?;
        }
        #[device]
        if ops::gt(t, 0.0)? {
            y = ops::neg(&y)?;
        }
        #[device]
        match ops::cast::<f32, i32>(t)? {
            0 => Ok(y),
            _ => ops::exp(&y),
        }
    }
}

mod g125 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(p: &Scalar<bool>, k: &Scalar<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let mut sign = ops::full(x.scope(), (), 1.0f32)?;
        let mut y = x.clone();
        #[device]
        if p {
            sign = ops::full(x.scope(), (), -1.0f32)?;
            y = ops::exp(&y)?;
        }
        let count = #[device]
        match k {
            0 => ops::full(x.scope(), (), 1.0f32)?,
            _ => ops::full(x.scope(), (), 2.0f32)?,
        };
        ops::mul(&y, &ops::mul(&sign, &count)?)
    }
}

mod g126 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let mut rounds = ops::full(x.scope(), (), 0i32)?;
        let mut y = x.clone();
        #[device(limit = 100)]
        while ops::logical_and(&ops::lt(&rounds, 3)?, p)? {
            rounds = ops::add(&rounds, 1)?;
            y = ops::neg(&y)?;
        }
        let mut all = Vec::new();
        let last = #[device]
        if p { ops::neg(&y)? } else { y };
        all.push(last);
        ops::mul(&all[0], &ops::cast(&rounds)?)
    }
}

mod g127 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let y = #[device]
        if p { ops::neg(x)? } else { x.clone() };
        ops::exp(&y)
    }
}

mod g128 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(p: &Scalar<bool>, q: &Scalar<bool>, n: &Scalar<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let mut y = x.clone();
        #[device]
        if ops::logical_and(p, q)? {
            y = ops::neg(&y)?;
        }
        #[device]
        if ops::logical_or(&ops::logical_not(p)?, &ops::gt(n, 3)?)? {
            y = ops::exp(&y)?;
        }
        Ok(y)
    }
}

mod g129 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let mut y = ops::neg(x)?;
        let mut turn = ops::full(x.scope(), (), 0i32)?;
        #[device]
        while {
            let next_turn = ops::add(&turn, 1)?;
            ops::lt(&next_turn, 3)?
        } {
            y = ops::scale(&y, 2.0)?;
            turn = ops::add(&turn, 1)?;
        }
        Ok(y)
    }
}

fn main() {}
