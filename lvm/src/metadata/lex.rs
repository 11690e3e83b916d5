//! The words of LVM's configuration and metadata text.

use std::borrow::Cow;

use super::Defect;

/// One word of the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// `{`
    Open,
    /// `}`
    Close,
    /// `=`
    Equals,
    /// `[`
    ListOpen,
    /// `]`
    ListClose,
    /// `,`
    Comma,
    /// A text in quotes, escapes resolved.
    Quoted(Cow<'a, str>),
    /// Anything else up to white space or punctuation: a key, a number, a bare text.
    Bare(&'a str),
}

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

/// Cuts a text into words; comments and white space vanish.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// A defect at the present place.
    pub(super) fn defect(&self, what: &'static str) -> Defect {
        let seen = self.text.as_bytes().get(..self.at).unwrap_or_default();
        let lines = seen.iter().filter(|byte| **byte == b'\n').count();
        Defect::Syntax { line: u32::try_from(lines + 1).unwrap_or(u32::MAX), what }
    }

    /// The next word; `None` at the end, which a zero byte also is.
    pub(super) fn next(&mut self) -> Result<Option<Token<'a>>, Defect> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c) => self.at += 1,
                Some(b'#') => self.skip_comment(),
                None | Some(0) => return Ok(None),
                Some(&byte) => return self.word(byte).map(Some),
            }
        }
    }

    fn skip_comment(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|byte| matches!(byte, b'\n' | 0)).unwrap_or(rest.len());
        self.at += length;
    }

    fn word(&mut self, first: u8) -> Result<Token<'a>, Defect> {
        let single = match first {
            b'{' => Token::Open,
            b'}' => Token::Close,
            b'=' => Token::Equals,
            b'[' => Token::ListOpen,
            b']' => Token::ListClose,
            b',' => Token::Comma,
            b'"' | b'\'' => return self.quoted(first),
            _ => return self.bare(),
        };
        self.at += 1;
        Ok(single)
    }

    fn bare(&mut self) -> Result<Token<'a>, Defect> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.bytes().position(|byte| ENDS_WORD[usize::from(byte)]).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.defect("a control character stands where a word should"));
        }
        self.at += length;
        // Every byte that ends a word is ASCII, so the cut lies between characters.
        Ok(Token::Bare(rest.get(..length).unwrap_or_default()))
    }

    fn quoted(&mut self, quote: u8) -> Result<Token<'a>, Defect> {
        let rest = self.text.get(self.at + 1..).unwrap_or_default();
        let bytes = rest.as_bytes();
        let mut escaped = false;
        let mut length = 0;
        loop {
            match bytes.get(length) {
                None | Some(0) => return Err(self.defect("a quoted text has no end")),
                Some(&byte) if byte == quote => break,
                Some(b'\\') if quote == b'"' => {
                    escaped = true;
                    length += 2;
                }
                Some(_) => length += 1,
            }
        }
        self.at += length + 2;
        let inner = rest.get(..length).unwrap_or_default();
        Ok(Token::Quoted(if escaped { Cow::Owned(unescape(inner)) } else { Cow::Borrowed(inner) }))
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

    fn words(text: &str) -> Result<Vec<Token<'_>>, Defect> {
        let mut lexer = Lexer::new(text);
        std::iter::from_fn(|| lexer.next().transpose()).collect()
    }

    #[test]
    fn a_text_is_cut_into_words() {
        use Token::*;
        let text = "# head\nvg-1 { a=-1 # x\n b=[\"q\\\"\\\\\\n\",'s']}\0rest";
        let quoted = |text: &'static str| Quoted(Cow::Borrowed(text));
        assert_eq!(
            words(text).unwrap(),
            [
                Bare("vg-1"),
                Open,
                Bare("a"),
                Equals,
                Bare("-1"),
                Bare("b"),
                Equals,
                ListOpen,
                quoted("q\"\\\\n"),
                Comma,
                quoted("s"),
                ListClose,
                Close
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
        assert_eq!(words("ä=\"ö\\ü\"").unwrap()[2], Token::Quoted("ö\\ü".into()));
    }
}
