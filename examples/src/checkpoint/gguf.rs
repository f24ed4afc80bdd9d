//! GGUF files as models.

use graphable::{DType, Element, Runtime, load::Loader};

use super::{Checkpoint, fill, stored};
use crate::{
    Result,
    chat::Template,
    gguf::Gguf,
    llama::{Config, Llama},
    tokenizer::ChatTokenizer,
};

impl Checkpoint for Gguf {
    fn config(&self) -> Result<Config> {
        Config::from_gguf(self)
    }

    fn stored(&self) -> Result<Option<DType>> {
        let infos = self.tensor_names().filter_map(|name| self.tensor_info(name));
        Ok(stored::most(infos.map(|info| (info.ty.float(), info.shape.as_slice()))))
    }

    fn tokenizer(&self) -> Result<ChatTokenizer> {
        ChatTokenizer::from_gguf(self)
    }

    fn template(&self, tokenizer: &ChatTokenizer) -> Result<Template> {
        Template::from_gguf(self, tokenizer)
    }

    fn load<T: Element>(&self, rt: &Runtime, config: &Config) -> Result<Llama<T>> {
        fill(Loader::new(rt, &self.weights::<T>()), config)
    }
}
