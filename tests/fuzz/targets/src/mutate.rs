//! Mutates texts by words, which byte mutations break; the seed determines all.

/// libFuzzer also combines inputs.
const LEFT_TO_LIBFUZZER: u64 = 3;
const MOST_CHANGES: u64 = 4;
const MOST_WORDS: usize = 8;

const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "2",
    "-1",
    "3",
    "8",
    "9",
    "255",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483649",
    "9223372036854775807",
    "-9223372036854775808",
    "0.5",
];

/// Parses lines of `name="word"` or `"word"` with `\\`, `\"`, `\xAB` and `#` comments. Fails for an invalid line.
pub fn dictionary(text: &str) -> Result<Vec<Vec<u8>>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| word(line).ok_or_else(|| format!("`{line}` is not a dictionary line"))).collect()
}

fn word(line: &str) -> Option<Vec<u8>> {
    let inner = line.get(line.find('"')? + 1..)?.strip_suffix('"')?;
    let mut bytes = inner.bytes();
    let mut word = Vec::new();
    while let Some(byte) = bytes.next() {
        word.push(match byte {
            b'\\' => match bytes.next()? {
                b'x' => {
                    let digits = [bytes.next()?, bytes.next()?];
                    u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
                }
                escaped @ (b'\\' | b'"') => escaped,
                _ => return None,
            },
            b'"' => return None,
            plain => plain,
        });
    }
    (!word.is_empty()).then_some(word)
}

/// Mutates the first `size` bytes of `data`; returns the size, at most `most`, or `None` for libFuzzer's mutation.
pub fn words(data: &mut [u8], size: usize, most: usize, seed: u32, dictionary: &[Vec<u8>]) -> Option<usize> {
    let mut random = Random(u64::from(seed));
    let text = std::str::from_utf8(data.get(..size)?).ok()?;
    if random.below(LEFT_TO_LIBFUZZER) == 0 {
        return None;
    }
    let mut tokens: Vec<Vec<u8>> = tokens(text).map(|token| token.as_bytes().to_vec()).collect();
    for _ in 0..=random.below(MOST_CHANGES) {
        change(&mut tokens, dictionary, &mut random);
    }
    let changed = tokens.concat();
    let length = changed.len().min(most).min(data.len());
    data.get_mut(..length)?.copy_from_slice(changed.get(..length)?);
    Some(length)
}

fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let end = match first {
            first if is_word(first) => rest.find(|c| !is_word(c)),
            ' ' => rest.find(|c| c != ' '),
            _ => Some(first.len_utf8()),
        };
        let (token, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(token)
    })
}

fn change(tokens: &mut Vec<Vec<u8>>, dictionary: &[Vec<u8>], random: &mut Random) {
    let from_dictionary = |random: &mut Random| random.one_of(dictionary).cloned().unwrap_or_default();
    let number = |random: &mut Random| {
        random.one_of(&NUMBERS).map(|number| number.as_bytes().to_vec()).unwrap_or_default()
    };
    let at = random.index(tokens.len());
    let some = at..(at + 1 + random.index(MOST_WORDS)).min(tokens.len());
    let to = random.index(tokens.len());
    match random.below(10) {
        0 | 1 => {
            let word = from_dictionary(random);
            tokens.insert(at, word);
        }
        2 | 3 => {
            let word = from_dictionary(random);
            set(tokens, at, word);
        }
        4 => {
            let digits = |token: &Vec<u8>| token.first().is_some_and(u8::is_ascii_digit);
            let found = tokens.iter().skip(at).position(digits).map_or(at, |further| at + further);
            let word = number(random);
            set(tokens, found, word);
        }
        5 => {
            let word = tokens.get(to).cloned().unwrap_or_default();
            set(tokens, at, word);
        }
        6 => drop(tokens.drain(some)),
        7 => {
            let repeated: Vec<Vec<u8>> = tokens.get(some).unwrap_or_default().to_vec();
            tokens.splice(to..to, repeated);
        }
        8 if !tokens.is_empty() => tokens.swap(at, to),
        _ => line(tokens, random),
    }
}

fn set(tokens: &mut [Vec<u8>], at: usize, word: Vec<u8>) {
    if let Some(token) = tokens.get_mut(at) {
        *token = word;
    }
}

fn line(tokens: &mut Vec<Vec<u8>>, random: &mut Random) {
    let mut lines: Vec<Vec<Vec<u8>>> =
        tokens.split_inclusive(|token| token == b"\n").map(<[_]>::to_vec).collect();
    let (from, to) = (random.index(lines.len()), random.index(lines.len()));
    let Some(line) = lines.get(from).cloned() else { return };
    match random.below(3) {
        0 => drop(lines.remove(from)),
        1 => lines.insert(to, line),
        _ => lines.swap(from, to),
    }
    *tokens = lines.concat();
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, count: u64) -> u64 {
        self.next() % count.max(1)
    }

    fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    fn one_of<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.index(items.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_have_escapes() {
        let words = dictionary("# a comment\n\nbegin=\"[[\"\n\"a\\\"\\\\\\x0a\"\n").unwrap();
        assert_eq!(words, [b"[[".to_vec(), b"a\"\\\n".to_vec()]);
        for wrong in ["word", "\"open", "\"\"", "\"a\"b\"", "\"\\n\"", "\"\\x1\""] {
            assert!(dictionary(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tokens_are_the_text() {
        let text = "a_1 = [\n  \"ünß\",-2]\r\n";
        assert_eq!(tokens(text).collect::<String>(), text);
        assert_eq!(tokens(text).next(), Some("a_1"));
    }

    #[test]
    fn a_mutation_fits_and_can_be_repeated() {
        let words = [b"word".to_vec()];
        let mutate = |text: &[u8], most: usize, seed: u32| {
            let mut data = text.to_vec();
            data.resize(most, 0);
            let size = super::words(&mut data, text.len(), most, seed, &words)?;
            Some(data[..size].to_vec())
        };
        let mut changed = 0;
        for seed in 0..2000 {
            for text in ["", "a", "x = 1\ny = [2, 3]\n", "\u{e9}\u{e9}"] {
                let once = mutate(text.as_bytes(), 24, seed);
                assert_eq!(once, mutate(text.as_bytes(), 24, seed));
                changed += usize::from(once.is_some_and(|once| once != text.as_bytes()));
            }
        }
        assert!(changed > 3000, "{changed}");
    }

    #[test]
    fn bytes_that_are_no_text_are_left() {
        assert_eq!((0..20).find_map(|seed| words(&mut [0xff; 4], 4, 4, seed, &[])), None);
    }
}
