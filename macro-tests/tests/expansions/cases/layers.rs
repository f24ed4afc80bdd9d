// functions only
#[graphable]
fn decode(#[host] #[dims(B)] tokens: &Tensor<u32>, #[key] limit: usize, model: &Model) -> Result<Tensor<f32>> {
    let mut h = ops::embedding(tokens, &model.embed)?;
    for (i, layer) in model.layers.iter().enumerate() {
        if i == limit {
            break;
        }
        let q = ops::linear(&ops::rms_norm(&h, &layer.norm, layer.eps)?, &layer.wqkv)?;
        let a = #[eager(support = UniformBatch)] attention(&q, layer)?;
        h = ops::add(&h, &ops::linear(&a, &layer.wo)?)?;
    }
    ops::linear(&h, &model.head)
}
