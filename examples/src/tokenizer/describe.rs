//! The tokenizer of a Hugging Face folder as metadata of a GGUF file.
//!
//! A GGUF file names the way in which a tokenizer cuts text, where `tokenizer.json` spells it out. What has no name there, or would
//! give other tokens, is refused.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::Path,
};

use serde_json::Value;

use super::{
    ChatTokenizer, ends,
    gguf::{BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED},
    pieces::{self, Merge},
    pre::Pre,
    spelling::{SPACE, Spelling, fallback},
};
use crate::{Error, Result, checkpoint::json, gguf::write::Metadata};

/// The names of pre-tokenizers that are written, each of which cuts in another way.
const CUTS: [&str; 4] = ["smollm", "gpt-2", "llama-bpe", "qwen2"];

/// Writes what `tokenizer.json` and `tokenizer_config.json` of `folder` say as metadata; the model has `vocab` embeddings.
///
/// # Errors
/// If GGUF files cannot describe the tokenizer.
pub(crate) fn describe(
    folder: &Path,
    tokenizer: &ChatTokenizer,
    vocab: usize,
    to: &mut Metadata,
) -> Result<()> {
    let path = folder.join("tokenizer.json");
    let refuse = |reason: String| Error::File {
        path: path.clone(),
        reason,
        help: "use the model from its folder; GGUF files cannot describe this tokenizer".into(),
    };
    let all = json(&path)?.unwrap_or_default();
    if all["model"]["type"].as_str().unwrap_or("BPE") != "BPE" {
        return Err(refuse(format!("its `model` is {}, and only BPE is kept", all["model"]["type"])));
    }
    let mut tokens = Tokens::of(&all, vocab).map_err(refuse)?;
    let merges =
        merges(&all["model"]["merges"]).ok_or_else(|| refuse("its `merges` are not pairs".into()))?;
    if tokenizer.encode_text("")? != Vec::from_iter(tokenizer.start_of_text()) {
        return Err(refuse("its `post_processor` adds other tokens to texts than one at the start".into()));
    }
    if byte_level(&all["decoder"]) {
        let pre = cut(&all).map_err(refuse)?;
        tokens.spell(&Spelling::byte_level()).map_err(refuse)?;
        to.str("tokenizer.ggml.model", "gpt2");
        to.str("tokenizer.ggml.pre", pre);
        tokens.describe(to);
        let lines: Vec<String> = merges.iter().map(|(a, b)| format!("{a} {b}")).collect();
        to.strs("tokenizer.ggml.merges", lines.iter().map(String::as_str));
    } else {
        let prefix = prefix(&all).map_err(refuse)?;
        tokens.spell(&Spelling::Pieces { drops_first_space: prefix }).map_err(refuse)?;
        to.str("tokenizer.ggml.model", "llama");
        to.str("tokenizer.ggml.pre", "default");
        for (name, ty) in tokens.names.iter().zip(&mut tokens.types) {
            if *ty == NORMAL && fallback(name).is_some() {
                *ty = BYTE;
            }
        }
        if let Some(id) = all["model"]["unk_token"].as_str().and_then(|name| tokens.id(name)) {
            tokens.types[id] = UNKNOWN;
            to.u32("tokenizer.ggml.unknown_token_id", id as u32);
        }
        let scores = tokens.scores(&merges).map_err(refuse)?;
        tokens.describe(to);
        to.f32s("tokenizer.ggml.scores", &scores);
        to.bool("tokenizer.ggml.add_space_prefix", prefix);
    }
    let names: Vec<&str> = tokens.names.iter().map(String::as_str).collect();
    stops(tokenizer.stops(), &ends::known(&names), to).map_err(refuse)?;
    if let Some((id, _)) = &tokenizer.bos {
        to.u32("tokenizer.ggml.bos_token_id", *id);
    }
    to.bool("tokenizer.ggml.add_bos_token", tokenizer.start_of_text().is_some());
    to.bool("tokenizer.ggml.add_eos_token", false);
    Ok(())
}

/// Writes the tokens that end an answer: the first as the end of a text, and as those of a turn and of a message the ones that are
/// not `known` without being named.
fn stops(stops: &[u32], known: &[u32], to: &mut Metadata) -> Result<(), String> {
    let (first, others) = stops.split_first().ok_or("no token ends an answer")?;
    // Named nevertheless, as long as there is room: not every reader knows them.
    let (unknown, rest): (Vec<u32>, Vec<u32>) = others.iter().partition(|id| !known.contains(id));
    if let [_, _, id, ..] = unknown.as_slice() {
        return Err(format!(
            "the token {id} ends an answer as well, and a file has names for three such tokens"
        ));
    }
    let named = [*first].into_iter().chain(unknown).chain(rest);
    for (key, id) in ["eos", "eot", "eom"].iter().zip(named) {
        to.u32(&format!("tokenizer.ggml.{key}_token_id"), id);
    }
    Ok(())
}

/// All tokens, by their ids.
struct Tokens {
    names: Vec<String>,
    types: Vec<u64>,
}

impl Tokens {
    fn of(all: &Value, vocab: usize) -> Result<Self, String> {
        let mut named: BTreeMap<usize, (String, u64)> = BTreeMap::new();
        let id = |value: &Value| {
            let id = value.as_u64().and_then(|id| usize::try_from(id).ok()).filter(|id| *id < vocab);
            id.ok_or_else(|| format!("a token has the id {value}, and the model has {vocab} tokens"))
        };
        for (name, value) in all["model"]["vocab"].as_object().into_iter().flatten() {
            if let Some((other, _)) = named.insert(id(value)?, (name.clone(), NORMAL)) {
                return Err(format!("`{name}` and `{other}` are the same token"));
            }
        }
        for token in all["added_tokens"].as_array().into_iter().flatten() {
            let name = token["content"].as_str().ok_or("an added token has no `content`")?;
            let special = token["special"] == true;
            if let Some(key) = ["single_word", "lstrip", "rstrip"].into_iter().find(|key| token[*key] == true)
            {
                return Err(format!("the added token `{name}` has `{key}`"));
            }
            named.insert(id(&token["id"])?, (name.into(), if special { CONTROL } else { USER_DEFINED }));
        }
        let mut tokens = Self { names: Vec::with_capacity(vocab), types: Vec::with_capacity(vocab) };
        for id in 0..vocab {
            let (name, ty) = named.remove(&id).unwrap_or_else(|| (format!("[PAD{id}]"), UNUSED));
            tokens.names.push(name);
            tokens.types.push(ty);
        }
        tokens.distinct()?;
        Ok(tokens)
    }

    /// Gives added tokens the names that a file has for them, which are their texts.
    fn spell(&mut self, spelling: &Spelling) -> Result<(), String> {
        for (name, _) in self.names.iter_mut().zip(&self.types).filter(|(_, ty)| **ty == USER_DEFINED) {
            let text = String::from_utf8(spelling.added(name).into_vec());
            match (text, spelling) {
                (Ok(text), _) if text == *name => {}
                // Of U+2581 there may be as many as there are spaces.
                (Ok(text), Spelling::Pieces { .. }) if fallback(name).is_none() => *name = text,
                _ => {
                    return Err(format!("the added token `{name}` is the text of other bytes than its name"));
                }
            }
        }
        self.distinct()
    }

    /// Refuses two tokens of one name.
    fn distinct(&self) -> Result<(), String> {
        let mut seen = HashSet::new();
        match self.names.iter().find(|name| !seen.insert(name.as_str())) {
            Some(name) => Err(format!("two tokens are called `{name}`")),
            None => Ok(()),
        }
    }

    fn id(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    fn describe(&self, to: &mut Metadata) {
        to.strs("tokenizer.ggml.tokens", self.names.iter().map(String::as_str));
        let types: Vec<i32> = self.types.iter().map(|ty| *ty as i32).collect();
        to.i32s("tokenizer.ggml.token_type", &types);
    }

    /// Scores by which pieces are merged as the `given` merges say: the earlier a piece is made, the higher.
    fn scores(&self, given: &[Merge]) -> Result<Vec<f32>, String> {
        let mut ranks: HashMap<String, usize> = HashMap::new();
        for (a, b) in given {
            let rank = ranks.len();
            ranks.entry(format!("{a}{b}")).or_insert(rank);
        }
        let last = ranks.len();
        let score = |name: &String| -(ranks.get(name).copied().unwrap_or(last) as f32);
        let scores: Vec<f32> = self.names.iter().map(score).collect();
        // A rank above 2^24 is no float; no tokenizer has so many tokens.
        let all = self.names.iter().zip(&self.types).zip(&scores);
        let pieces = all.filter(|((_, ty), _)| matches!(**ty, NORMAL | USER_DEFINED));
        let pieces: Vec<(&str, f32)> = pieces.map(|((name, _), score)| (name.as_str(), *score)).collect();
        let normal = self.names.iter().zip(&self.types).filter(|(_, ty)| **ty == NORMAL);
        let normal: HashSet<&str> = normal.map(|(name, _)| name.as_str()).collect();
        // Added tokens are taken out of a text before anything is merged.
        let made = |(a, b): &&Merge| normal.contains(format!("{a}{b}").as_str());
        let implied = pieces::merges(&pieces).map_err(|e| e.to_string())?;
        let sorted = |merges: &[Merge]| -> BTreeSet<Merge> { merges.iter().filter(made).cloned().collect() };
        let rank = |(a, b): &Merge| ranks.get(&format!("{a}{b}")).copied();
        // Ways to make the same piece may come in any order, but before those that make the next one.
        if sorted(&implied) != sorted(given) || !given.iter().filter(made).map(rank).is_sorted() {
            return Err("its merges are not those of pieces with scores, as SentencePiece has them".into());
        }
        Ok(scores)
    }
}

/// Merges as pairs, or as texts with a space in between.
fn merges(value: &Value) -> Option<Vec<Merge>> {
    let pair = |merge: &Value| -> Option<Merge> {
        if let Some((a, b)) = merge.as_str().and_then(|line| line.split_once(' ')) {
            return Some((a.into(), b.into()));
        }
        match merge.as_array()?.as_slice() {
            [a, b] => Some((a.as_str()?.into(), b.as_str()?.into())),
            _ => None,
        }
    };
    value.as_array()?.iter().map(pair).collect()
}

fn byte_level(decoder: &Value) -> bool {
    let parts = decoder["decoders"].as_array().map_or(std::slice::from_ref(decoder), Vec::as_slice);
    parts.iter().any(|part| part["type"] == "ByteLevel")
}

/// The name of the way in which a byte-level tokenizer cuts text.
fn cut(all: &Value) -> Result<&'static str, String> {
    let wanted = comparable(&all["pre_tokenizer"]);
    let all_known = CUTS.into_iter().filter_map(|name| Some((name, Pre::named(name).ok()?)));
    let found = all_known
        .into_iter()
        .find(|(_, pre)| serde_json::to_value(&pre.cut).is_ok_and(|known| comparable(&known) == wanted));
    let (name, pre) = found
        .ok_or_else(|| format!("its `pre_tokenizer` cuts text in another way than {}", CUTS.join(", ")))?;
    match all["normalizer"]["type"].as_str() {
        None => {}
        // llama.cpp does not do it either: other spellings of a letter with an accent become other tokens.
        Some("NFC") if name == "qwen2" => {}
        Some(other) => return Err(format!("it has the `normalizer` {other}")),
    }
    if all["model"]["ignore_merges"].as_bool().unwrap_or(false) != pre.ignores_merges {
        return Err(format!("`ignore_merges` differs from that of {name}"));
    }
    Ok(name)
}

/// A pre-tokenizer without what does not change how it cuts: a sequence of one part, and offsets.
fn comparable(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            if let Some([only]) =
                fields.get("pretokenizers").and_then(|parts| parts.as_array()).map(Vec::as_slice)
            {
                return comparable(only);
            }
            let kept = fields.iter().filter(|(key, _)| *key != "trim_offsets");
            Value::Object(kept.map(|(key, value)| (key.clone(), comparable(value))).collect())
        }
        Value::Array(parts) => parts.iter().map(comparable).collect(),
        other => other.clone(),
    }
}

/// Whether a tokenizer of pieces puts a space before each text and after each special token.
fn prefix(all: &Value) -> Result<bool, String> {
    let mut prefix = false;
    let normalizer = &all["normalizer"];
    let parts = normalizer["normalizers"].as_array().map_or(std::slice::from_ref(normalizer), Vec::as_slice);
    for part in parts.iter().filter(|part| !part.is_null()) {
        let is = |kind: &str| part["type"] == kind;
        if is("Prepend") && part["prepend"] == SPACE {
            prefix = true;
        } else if !(is("Replace") && part["pattern"]["String"] == " " && part["content"] == SPACE) {
            return Err(format!("it has the `normalizer` {}", part["type"]));
        }
    }
    let cut = &all["pre_tokenizer"];
    match cut["type"].as_str() {
        None => {}
        // There are no spaces any more where it looks for them.
        Some("Split") if cut["pattern"]["String"] == " " && !normalizer.is_null() => {}
        Some("Metaspace") if cut["replacement"] == SPACE && cut["split"] == false => {
            match cut["prepend_scheme"].as_str() {
                Some("always") => prefix = true,
                Some("never") => {}
                _ => return Err("it puts a space before the first text only".into()),
            }
        }
        Some(other) => return Err(format!("it has the `pre_tokenizer` {other}")),
    }
    Ok(prefix)
}
