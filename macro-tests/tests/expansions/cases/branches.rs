// functions only
#[graphable]
fn sample(x: &Tensor<f32>, #[key] greedy: bool) -> Result<Tensor<u32>> {
    let y = ops::softmax(x, 1)?;
    #[key]
    let n = #[eager(cx)] cx.item(&ops::max(&y)?)?;
    if n == 0 {
        return ops::argmax(&y, 1);
    }
    let Some(k) = #[eager] pick(n) else { return Err(Error::Empty) };
    let top = if greedy { ops::argmax(&y, 1)? } else { ops::top(&y, k)? };
    ops::copy(&top)
}
