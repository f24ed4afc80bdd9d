//! Suggestions for misspelt names.

/// Returns at most two of `names`, likeliest first: those that end in `wanted` or that it ends in (a prefix
/// is missing or superfluous), then those whose edit distance is at most a third of its length.
pub(super) fn nearest<'a>(wanted: &str, names: &'a [String]) -> Vec<&'a str> {
    let limit = (wanted.len() / 3).max(2);
    let mut near: Vec<(usize, &str)> = names
        .iter()
        .filter_map(|name| {
            let affix =
                |long: &str, short: &str| long.strip_suffix(short).is_some_and(|rest| rest.ends_with('.'));
            if affix(name, wanted) || affix(wanted, name) {
                return Some((0, name.as_str()));
            }
            let edits = distance(wanted.as_bytes(), name.as_bytes(), limit)?;
            Some((edits, name.as_str()))
        })
        .collect();
    near.sort();
    near.into_iter().take(2).map(|(_, name)| name).collect()
}

/// Returns the edit distance, unless it is above `limit`.
fn distance(a: &[u8], b: &[u8], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
        if row.iter().all(|&d| d > limit) {
            return None;
        }
    }
    row.last().copied().filter(|&d| d <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_come_before_spelling() {
        let names: Vec<String> =
            ["model.norm.weight", "norm.weigth", "norm.bias", "embed"].iter().map(|&s| s.into()).collect();
        assert_eq!(nearest("norm.weight", &names), ["model.norm.weight", "norm.weigth"]);
        assert_eq!(nearest("bert.embed", &names), ["embed"]);
        assert!(nearest("lm_head.weight", &names).is_empty());
    }

    #[test]
    fn distances() {
        assert_eq!(distance(b"kitten", b"sitting", 9), Some(3));
        assert_eq!(distance(b"kitten", b"sitting", 2), None);
        assert_eq!(distance(b"", b"ab", 2), Some(2));
        assert_eq!(distance(b"same", b"same", 0), Some(0));
    }
}
