//! How the names of tokens become bytes.

use std::collections::HashMap;

use serde_json::Value;

/// U+2581, which stands for a space in pieces.
pub(super) const SPACE: &str = "\u{2581}";

/// How ids become text.
pub(super) enum Spelling {
    /// A character for each byte.
    ByteLevel(HashMap<char, u8>),
    /// U+2581 is a space, and `<0x0A>` a byte.
    Pieces {
        /// Whether the first space of a text is the tokenizer's own.
        drops_first_space: bool,
    },
}

impl Spelling {
    pub(super) fn byte_level() -> Self {
        Self::ByteLevel(byte_alphabet())
    }

    /// That of the `decoder` of a `tokenizer.json`.
    pub(super) fn of(decoder: &Value) -> Option<Self> {
        let parts = match decoder["type"].as_str()? {
            "Sequence" => decoder["decoders"].as_array()?.as_slice(),
            _ => std::slice::from_ref(decoder),
        };
        let find = |kind: &str| parts.iter().find(|part| part["type"] == kind);
        if find("ByteLevel").is_some() {
            return Some(Self::byte_level());
        }
        let space =
            find("Replace").is_some_and(|part| part["pattern"]["String"] == SPACE && part["content"] == " ");
        let drops_first_space =
            find("Strip").is_some_and(|part| part["content"] == " " && part["start"] == 1);
        (space && find("ByteFallback").is_some()).then_some(Self::Pieces { drops_first_space })
    }

    /// The bytes of a token of this name.
    pub(super) fn bytes(&self, name: &str) -> Box<[u8]> {
        match self {
            Self::ByteLevel(to_byte) => spelled_bytes(name, to_byte),
            Self::Pieces { .. } => match fallback(name) {
                Some(byte) => [byte].into(),
                None => name.replace(SPACE, " ").into_bytes().into(),
            },
        }
    }

    /// The bytes of a token of this name that a folder adds to the vocabulary and that is not special. What decodes the
    /// others decodes it as well: in Gemma's folders, several U+2581 are several spaces. A byte-level name is taken as it is
    /// if it is not made of the alphabet alone.
    pub(super) fn added(&self, name: &str) -> Box<[u8]> {
        match self {
            Self::ByteLevel(to_byte) if !name.chars().all(|c| to_byte.contains_key(&c)) => {
                name.as_bytes().into()
            }
            _ => self.bytes(name),
        }
    }
}

/// The byte of `<0x0A>`.
pub(super) fn fallback(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    // A sign is no digit, though a number may begin with one.
    let is_byte = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_byte.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

/// The printable character that byte-level BPE writes for each byte, backwards.
fn byte_alphabet() -> HashMap<char, u8> {
    let printable = |b: u8| matches!(b, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut unprintable = 0;
    let letters = (0..=u8::MAX).map(|b| {
        if printable(b) {
            return (char::from(b), b);
        }
        // 68 bytes are not printable: U+0100 to U+0143, all of them characters.
        unprintable += 1;
        (char::from_u32(0xFF + unprintable).unwrap_or(char::REPLACEMENT_CHARACTER), b)
    });
    letters.collect()
}

/// The bytes of a token of byte-level BPE.
fn spelled_bytes(name: &str, to_byte: &HashMap<char, u8>) -> Box<[u8]> {
    let mut utf8 = [0; 4];
    let mut bytes = Vec::with_capacity(name.len());
    for c in name.chars() {
        match to_byte.get(&c) {
            Some(&b) => bytes.push(b),
            None => bytes.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes()),
        }
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_pieces() {
        assert_eq!(fallback("<0x0A>"), Some(10));
        assert!(
            ["<0x0A", "<0xGG>", "<0x123>", "<0x>", "<0x+1>", "a"]
                .iter()
                .all(|name| fallback(name) != Some(1))
        );
        let pieces = Spelling::Pieces { drops_first_space: true };
        assert_eq!(*pieces.bytes("\u{2581}a\u{2581}"), *b" a ");
        assert_eq!(*pieces.added("\u{2581}\u{2581}"), *b"  ");
        let bytes = Spelling::byte_level();
        assert_eq!(*bytes.added("Ġx"), *b" x");
        assert_eq!(*bytes.added(" Ġx"), *" Ġx".as_bytes());
    }

    #[test]
    fn the_byte_alphabet_is_a_bijection() {
        let alphabet = byte_alphabet();
        assert_eq!(alphabet.len(), 256);
        assert_eq!(alphabet[&'Ġ'], b' ');
        assert_eq!(alphabet[&'Ċ'], b'\n');
        assert_eq!(alphabet[&'a'], b'a');
        let mut bytes: Vec<_> = alphabet.into_values().collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
    }
}
