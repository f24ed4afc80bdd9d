#[graphable]
fn silu(x: &Tensor<f32>, rows: &[Tensor<f32>]) -> Result<Out<'_>> {
    ops::mul(x, &ops::sigmoid(&rows[0])?)
}
