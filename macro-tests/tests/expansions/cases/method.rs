// functions only
#[graphable]
impl Model {
    fn forward(&self, h: &Tensor<f32>) -> Result<Tensor<f32>> {
        let norm = |t: &Tensor<f32>| ops::rms_norm(t, &self.norm, 1e-5);
        let h = norm(h)?;
        let h = #[piecewise] self.block.forward(&h)?;
        ops::linear(&norm(&h)?, &self.head)
    }
}
