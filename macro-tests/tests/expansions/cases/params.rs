#[derive(Params)]
#[params(config = Config)]
struct Layer<T> {
    #[param("w", shape = [config.rows, 4])]
    w: Param<T>,
    #[param("blocks.{}", len = config.blocks)]
    blocks: Vec<Block>,
    #[state(shape = [config.rows])]
    cache: State<f32>,
    #[config(config.eps)]
    eps: f32,
}
