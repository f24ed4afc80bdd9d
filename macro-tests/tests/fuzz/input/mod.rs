//! From bytes to what a macro is given.
//!
//! The same bytes give the same input, as long as the seeds (the repository's own programs) are the
//! same: a fuzzer can mutate bytes, and a failure is told by a number.

use std::path::Path;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::Item;

mod choices;
mod phrases;
mod seeds;
mod syntax;
mod tree;

use choices::Choices;
use seeds::Seed;

/// One of our macros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Graphable,
    Params,
    GraphOutput,
    ConfigValue,
}

/// What a macro is given.
pub(crate) struct Input {
    pub(crate) entry: Entry,
    /// In the attribute; empty for a derive.
    pub(crate) args: TokenStream,
    pub(crate) item: TokenStream,
}

impl std::fmt::Display for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}, with arguments `{}`, on\n{}", self.entry, self.args, self.item)
    }
}

/// The most tokens of an item: more say nothing new, and take time.
const MOST_TOKENS: usize = 4000;

/// Makes inputs.
pub(crate) struct Inputs {
    seeds: Vec<Seed>,
}

impl Inputs {
    /// Seeded with the programs of the repository at `root`.
    pub(crate) fn of(root: &Path) -> Self {
        Self { seeds: seeds::read(root) }
    }

    /// Programs to start from.
    pub(crate) fn seeds(&self) -> impl ExactSizeIterator<Item = Input> {
        self.seeds.iter().map(|s| Input { entry: s.entry, args: s.args.clone(), item: s.item.clone() })
    }

    /// The input that `bytes` stand for. None where they are no tokens, or too many.
    pub(crate) fn make(&self, bytes: &[u8]) -> Option<Input> {
        let mut c = Choices::new(bytes);
        let input = match c.below(8) {
            0 => return text(&c),
            1 => {
                let length = 1 + c.below(12);
                let item = tree::soup(&mut c, length, 4);
                let length = c.below(4);
                let args = tree::tokens(tree::soup(&mut c, length, 1));
                Input { entry: entry(&mut c), args, item: small(item)? }
            }
            2 => self.arguments(&mut c)?,
            3..=4 => {
                let (seed, other) = (c.of(&self.seeds)?, c.of(&self.seeds)?);
                let item = mutated(seed.item.clone(), other, &mut c)?;
                Input { entry: seed.entry, args: seed.args.clone(), item }
            }
            _ => {
                let (seed, other) = (c.of(&self.seeds)?, c.of(&self.seeds)?);
                let mut item = syn::parse2::<Item>(seed.item.clone()).ok()?;
                let with = syn::parse2::<Item>(other.item.clone()).ok()?;
                for _ in 0..=c.below(8) {
                    syntax::mutate(&mut item, &with, &mut c);
                }
                let mut item = item.into_token_stream();
                if c.once_in(4) {
                    item = mutated(item, other, &mut c)?;
                }
                let item = small(tree::trees(item))?;
                Input { entry: seed.entry, args: seed.args.clone(), item }
            }
        };
        Some(input)
    }

    /// A seed under another macro, or with other arguments.
    fn arguments(&self, c: &mut Choices<'_>) -> Option<Input> {
        let seed = c.of(&self.seeds)?;
        let entry = if c.once_in(3) { entry(c) } else { seed.entry };
        let args = match c.of(phrases::ARGUMENTS) {
            Some(text) if entry == Entry::Graphable => tree::phrase(text),
            _ => Vec::new(),
        };
        let mut item = tree::trees(seed.item.clone());
        for _ in 0..c.below(4) {
            let text = c.of(phrases::ATTRIBUTES)?;
            let phrase = tree::phrase(text);
            item.splice(0..0, phrase);
        }
        Some(Input { entry, args: tree::tokens(args), item: small(item)? })
    }
}

/// The rest of the bytes, as Rust.
fn text(c: &Choices<'_>) -> Option<Input> {
    let (first, rest) = c.rest().split_first()?;
    let text = std::str::from_utf8(rest).ok()?;
    let (args, item) = text.split_once('\n').unwrap_or(("", text));
    let entry = [Entry::Graphable, Entry::Params, Entry::GraphOutput, Entry::ConfigValue];
    let entry = entry[usize::from(*first) % 4];
    let item = small(tree::trees(item.parse().ok()?))?;
    Some(Input { entry, args: args.parse().ok()?, item })
}

fn entry(c: &mut Choices<'_>) -> Entry {
    match c.below(6) {
        0 => Entry::Params,
        1 => Entry::GraphOutput,
        2 => Entry::ConfigValue,
        _ => Entry::Graphable,
    }
}

fn mutated(item: TokenStream, other: &Seed, c: &mut Choices<'_>) -> Option<TokenStream> {
    let (mut item, other) = (tree::trees(item), tree::trees(other.item.clone()));
    for _ in 0..=c.below(6) {
        tree::mutate(&mut item, &other, c);
    }
    small(item)
}

fn small(trees: Vec<tree::Tree>) -> Option<TokenStream> {
    (tree::size(&trees) <= MOST_TOKENS).then(|| tree::tokens(trees))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_tokens() {
        let all = [
            phrases::ATTRIBUTES,
            phrases::ARGUMENTS,
            phrases::STATEMENTS,
            phrases::EXPRESSIONS,
            phrases::PATTERNS,
            phrases::TYPES,
            phrases::PIECES,
        ];
        for text in all.into_iter().flatten() {
            assert!(text.parse::<TokenStream>().is_ok(), "`{text}`");
        }
    }
}
