// Control flow that the device decides: carried variables, values, moves, and the segments around a boundary.

#[graphable]
fn decode(#[host] n: &Scalar<u32>, p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut i = ops::zeros(x.scope(), ())?;
    let mut pair = (ops::neg(x)?, ops::exp(x)?);
    #[device(limit = 20)]
    while ops::lt(&i, n)? {
        pair.0 = ops::scale(&pair.0, 2.0)?;
        i = ops::add(&i, 1)?;
    }
    let y = #[eager]
    ops::neg(&pair.0)?;
    let z;
    let chosen = #[device]
    match n {
        0 => {
            z = ops::neg(x)?;
            keep(y)
        }
        1 | LAST => {
            z = ops::exp(x)?;
            y
        }
        _ => {
            z = x.clone();
            #[device]
            if p { pair.1 } else { y }
        }
    };
    ops::add(&chosen, &z)
}
