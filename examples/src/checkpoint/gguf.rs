//! GGUF files as models.

use graphable::{DType, Float, Runtime};

use super::{
    Blocks, Checkpoint, LoadProgress, Watched, fill,
    stored::{self, Stored},
};
use crate::{
    Result,
    chat::Template,
    gguf::{Gguf, TensorInfo},
    llama::{Config, Llama},
    tokenizer::ChatTokenizer,
};

impl Checkpoint for Gguf {
    fn config(&self) -> Result<Config> {
        Config::from_gguf(self)
    }

    fn stored(&self) -> Result<Option<DType>> {
        let infos = self.tensor_names().filter_map(|name| self.tensor_info(name));
        let stored = |info: &TensorInfo| info.ty.float().map_or(Stored::Blocks, Stored::Floats);
        match stored::most(infos.map(|info| (stored(info), info.shape.as_slice()))) {
            Stored::Floats(dtype) => Ok(Some(dtype)),
            Stored::Blocks | Stored::Other => Ok(None),
        }
    }

    fn tokenizer(&self) -> Result<ChatTokenizer> {
        ChatTokenizer::from_gguf(self)
    }

    fn template(&self, tokenizer: &ChatTokenizer) -> Result<Template> {
        Template::from_gguf(self, tokenizer)
    }

    fn load<T: Float>(
        &self,
        rt: &Runtime,
        config: &Config,
        blocks: Blocks,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Llama<T>> {
        let size = |name: &str| self.tensor_info(name).map_or(0, |info| info.stored_bytes() as u64);
        let weights = self.weights::<T>();
        fill(rt, Watched::new(&weights, config.tensors(), &size, progress), str::to_owned, config, blocks)
    }
}
