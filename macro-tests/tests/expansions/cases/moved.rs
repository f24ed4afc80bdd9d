// functions only
#[graphable]
fn decode(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let a = ops::mul(x, &model.up)?;
    let bias = #[eager(early)] table(x)?;
    let b = ops::add(&a, &bias)?;
    #[eager(cx, late)] look(cx, &b)?;
    ops::mul(&b, &model.down)
}
