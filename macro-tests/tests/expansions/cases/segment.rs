#[graphable]
pub fn project(#[host] #[dims(B, 4)] x: &Tensor<f32>, #[key] limit: usize, model: &Model) -> Result<Tensor<f32>> {
    let y = ops::linear(x, &model.w)?;
    ops::scale(&y, limit as f32)
}
