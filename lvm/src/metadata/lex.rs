//! The words of LVM's configuration and metadata text.

use std::borrow::Cow;

use super::Defect;

/// The bytes that end a word without quotes: control characters, white space and punctuation.
static ENDS_WORD: [bool; 256] = {
    let mut ends = [false; 256];
    let mut byte = 0;
    while byte <= b' ' as usize {
        ends[byte] = true;
        byte += 1;
    }
    let mut rest: &[u8] = b"#={}[],\"'";
    while let Some((first, others)) = rest.split_first() {
        ends[*first as usize] = true;
        rest = others;
    }
    ends
};

/// A word of the text: a key or a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word<'a> {
    /// A text in quotes, escapes resolved.
    Quoted(Cow<'a, str>),
    /// Anything else up to white space or punctuation: a key, a number, a bare text.
    Bare(&'a str),
}

/// What is wrong at the lexer's place; [`Lexer::defect`] tells where that is. As small as it is, results that carry it
/// fit into registers.
pub(super) type Wrong = &'static str;

/// Cuts a text into words and punctuation; comments and white space vanish.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The text from its next word or punctuation on.
    #[inline]
    pub(super) fn ahead(&mut self) -> &'a str {
        self.peek();
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Passes bytes that were read as [`Lexer::ahead`] gives them.
    #[inline]
    pub(super) fn skip(&mut self, length: usize) {
        self.at += length;
    }

    /// Bytes behind the present place.
    pub(super) fn rest(&self) -> usize {
        self.text.len().saturating_sub(self.at)
    }

    /// A defect at the present place.
    #[cold]
    pub(super) fn defect(&self, what: Wrong) -> Defect {
        let seen = self.text.as_bytes().get(..self.at).unwrap_or_default();
        let lines = seen.iter().filter(|byte| **byte == b'\n').count();
        Defect::Syntax { line: u32::try_from(lines + 1).unwrap_or(u32::MAX), what }
    }

    /// The next byte that is neither white space nor in a comment; `None` at the end, which a zero byte also is.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c) => self.at += 1,
                Some(b'#') => self.skip_comment(),
                None | Some(0) => return None,
                Some(byte) => return Some(*byte),
            }
        }
    }

    /// Whether the next byte is this punctuation, which is then passed.
    #[inline]
    pub(super) fn pass(&mut self, punctuation: u8) -> bool {
        let is_next = self.peek() == Some(punctuation);
        self.at += usize::from(is_next);
        is_next
    }

    fn skip_comment(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|byte| matches!(byte, b'\n' | 0)).unwrap_or(rest.len());
        self.at += length;
    }

    /// The next word; `expected` tells what is missing where there is none.
    #[inline]
    pub(super) fn word(&mut self, expected: Wrong) -> Result<Word<'a>, Wrong> {
        match self.peek() {
            Some(quote @ (b'"' | b'\'')) => self.quoted(quote).map(Word::Quoted),
            Some(b'{' | b'}' | b'=' | b'[' | b']' | b',') | None => Err(expected),
            Some(_) => self.bare().map(Word::Bare),
        }
    }

    fn bare(&mut self) -> Result<&'a str, Wrong> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|byte| ENDS_WORD[usize::from(*byte)]).unwrap_or(rest.len());
        if length == 0 {
            return Err("a control character stands where a word should");
        }
        let start = self.at;
        self.at += length;
        // Every byte that ends a word is ASCII, so the cuts lie between characters.
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    fn quoted(&mut self, quote: u8) -> Result<Cow<'a, str>, Wrong> {
        let rest = self.text.as_bytes().get(self.at + 1..).unwrap_or_default();
        let mut escaped = false;
        let mut length = 0;
        loop {
            match rest.get(length) {
                Some(&byte) if byte == quote => break,
                None | Some(0) => return Err("a quoted text has no end"),
                Some(b'\\') if quote == b'"' => {
                    escaped = true;
                    length += 2;
                }
                Some(_) => length += 1,
            }
        }
        let start = self.at + 1;
        self.at = start + length + 1;
        let inner = self.text.get(start..start + length).unwrap_or_default();
        Ok(if escaped { Cow::Owned(unescape(inner)) } else { Cow::Borrowed(inner) })
    }
}

/// Resolves `\"` and `\\`; a backslash before anything else stands for itself, as LVM has it.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.clone().next() {
                Some(quoted @ ('"' | '\\')) => {
                    plain.push(quoted);
                    rest.next();
                }
                _ => plain.push('\\'),
            },
            c => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words, with punctuation among them as bare ones.
    fn words(text: &str) -> Result<Vec<Word<'_>>, Defect> {
        let mut lexer = Lexer::new(text);
        let mut words = Vec::new();
        while let Some(byte) = lexer.peek() {
            words.push(match b"{}=[],".iter().position(|punctuation| *punctuation == byte) {
                Some(at) => {
                    assert!(lexer.pass(byte));
                    Word::Bare(&"{}=[],"[at..=at])
                }
                None => lexer.word("a word").map_err(|wrong| lexer.defect(wrong))?,
            });
        }
        Ok(words)
    }

    #[test]
    fn a_text_is_cut_into_words() {
        use Word::*;
        let text = "# head\nvg-1 { a=-1 # x\n b=[\"q\\\"\\\\\\n\",'s']}\0rest";
        let quoted = |text: &'static str| Quoted(Cow::Borrowed(text));
        assert_eq!(
            words(text).unwrap(),
            [
                Bare("vg-1"),
                Bare("{"),
                Bare("a"),
                Bare("="),
                Bare("-1"),
                Bare("b"),
                Bare("="),
                Bare("["),
                quoted("q\"\\\\n"),
                Bare(","),
                quoted("s"),
                Bare("]"),
                Bare("}")
            ]
        );
    }

    #[test]
    fn a_quote_without_end_is_refused_with_its_line() {
        for text in ["a\n\"", "a\n\"x\\\"", "a\n'x", "a\n\"\\", "a\n\"x\0\""] {
            let defect = words(text).unwrap_err();
            assert_eq!(defect, Defect::Syntax { line: 2, what: "a quoted text has no end" }, "{text:?}");
        }
    }

    #[test]
    fn characters_beyond_ascii_stay_whole() {
        assert_eq!(words("ä=\"ö\\ü\"").unwrap()[2], Word::Quoted("ö\\ü".into()));
    }
}
