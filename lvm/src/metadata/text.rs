//! LVM's configuration and metadata text as a tree of keys.
//!
//! The grammar: `key = value`, `key { … }`, comments from `#` to the end of the line; a value is an integer, a number
//! with a fraction, a quoted or bare text, or a list of these in brackets.

use std::borrow::Cow;

use super::Defect;
use super::lex::{Lexer, Word};

/// Deepest nesting of sections; LVM's own texts reach 5.
const DEPTH_MAX: usize = 32;
/// Most entries and list items of one text together: 64 MiB of memory for 64 KiB of the worst text is far off, and the
/// largest area that LVM can hold in its own memory has a tenth.
const ENTRIES_MAX: usize = 4 << 20;

/// A value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// An integer.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// A text; escapes resolved.
    Text(Box<str>),
    /// A list of values.
    List(Vec<Value>),
}

/// A value or a section under a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// `key = value`
    Value(Value),
    /// `key { … }`
    Section(Section),
}

/// Keys with their values and sections, in the order of the text.
///
/// # Examples
///
/// ```
/// use lvm::metadata::{Section, Value};
///
/// let text: Section = "vg0 { extent_size = 8192 tags = [\"a\", \"b\"] }".parse().unwrap();
/// let vg = text.section("vg0").unwrap();
/// assert_eq!(vg.value("extent_size"), Some(&Value::Int(8192)));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    entries: Vec<(Box<str>, Node)>,
}

impl Section {
    /// The entries in the order of the text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.entries.iter().map(|(key, node)| (&**key, node))
    }

    /// The first entry of this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|(own, _)| **own == *key).map(|(_, node)| node)
    }

    /// The value of this key.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&Value> {
        match self.get(key)? {
            Node::Value(value) => Some(value),
            Node::Section(_) => None,
        }
    }

    /// The section of this key.
    #[must_use]
    pub fn section(&self, key: &str) -> Option<&Section> {
        match self.get(key)? {
            Node::Section(section) => Some(section),
            Node::Value(_) => None,
        }
    }

    /// Whether it has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl std::str::FromStr for Section {
    type Err = Defect;

    fn from_str(text: &str) -> Result<Self, Defect> {
        Ok(Tree::parse(text)?.root().to_section(|_| true))
    }
}

/// A value that borrows from the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar<'a> {
    Int(i64),
    Float(f64),
    Text(Cow<'a, str>),
}

/// What stands under a key of a [`Tree`].
#[derive(Clone, Debug)]
enum Entry<'a> {
    Scalar(Scalar<'a>),
    /// A range of the tree's items.
    List(usize, usize),
    /// The section's entries follow, up to this index.
    Section(usize),
}

/// A parsed text without copies: entries in one list, each section followed by what is in it.
#[derive(Debug, Default)]
pub(super) struct Tree<'a> {
    entries: Vec<(Cow<'a, str>, Entry<'a>)>,
    items: Vec<Scalar<'a>>,
}

impl<'a> Tree<'a> {
    /// Parses a text.
    pub(super) fn parse(text: &'a str) -> Result<Self, Defect> {
        // A typical entry has some 25 bytes; a guess that is too small costs a copy, no more.
        let entries = Vec::with_capacity((text.len() / 24).min(ENTRIES_MAX));
        let tree = Self { entries, items: Vec::with_capacity((text.len() / 48).min(ENTRIES_MAX)) };
        let mut parser = Parser { lexer: Lexer::new(text), tree, open: Vec::new() };
        while let Some(byte) = parser.lexer.peek() {
            if byte == b'}' {
                parser.close()?;
            } else {
                parser.entry()?;
            }
        }
        if parser.open.is_empty() {
            Ok(parser.tree)
        } else {
            Err(parser.lexer.defect("a section has no end"))
        }
    }

    /// The whole text as one section.
    pub(super) fn root(&self) -> Cursor<'_, 'a> {
        Cursor { tree: self, start: 0, end: self.entries.len() }
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    tree: Tree<'a>,
    /// The sections that are open, by the index of their entry.
    open: Vec<usize>,
}

impl<'a> Parser<'a> {
    /// One `key = value`, or the beginning of a section.
    fn entry(&mut self) -> Result<(), Defect> {
        let key = match self.lexer.word("a key or the end of the section was expected")? {
            Word::Bare(key) => Cow::Borrowed(key),
            Word::Quoted(key) => key,
        };
        self.room()?;
        if self.lexer.pass(b'=') {
            let value = if self.lexer.pass(b'[') { self.list()? } else { Entry::Scalar(self.scalar()?) };
            self.tree.entries.push((key, value));
        } else if !self.lexer.pass(b'{') {
            return Err(self.lexer.defect("a key needs a value or a section"));
        } else if self.open.len() < DEPTH_MAX {
            self.open.push(self.tree.entries.len());
            self.tree.entries.push((key, Entry::Section(0)));
        } else {
            return Err(self.lexer.defect("sections are nested too deeply"));
        }
        Ok(())
    }

    fn room(&self) -> Result<(), Defect> {
        if self.tree.entries.len() + self.tree.items.len() < ENTRIES_MAX {
            Ok(())
        } else {
            Err(self.lexer.defect("the text has too many entries"))
        }
    }

    fn close(&mut self) -> Result<(), Defect> {
        let end = self.tree.entries.len();
        let entry = self.open.pop().and_then(|index| self.tree.entries.get_mut(index));
        match entry {
            Some((_, Entry::Section(own))) => *own = end,
            _ => return Err(self.lexer.defect("a section ends that has not begun")),
        }
        self.lexer.pass(b'}');
        Ok(())
    }

    /// The items up to the closing bracket, parted by commas.
    fn list(&mut self) -> Result<Entry<'a>, Defect> {
        let start = self.tree.items.len();
        while !self.lexer.pass(b']') {
            self.room()?;
            let item = self.scalar()?;
            self.tree.items.push(item);
            if !self.lexer.pass(b',') && self.lexer.peek() != Some(b']') {
                return Err(self.lexer.defect("a list goes wrong here"));
            }
        }
        Ok(Entry::List(start, self.tree.items.len()))
    }

    fn scalar(&mut self) -> Result<Scalar<'a>, Defect> {
        match self.lexer.word("a value was expected")? {
            Word::Quoted(text) => Ok(Scalar::Text(text)),
            Word::Bare(word) => self.number_or_text(word),
        }
    }

    fn number_or_text(&self, word: &'a str) -> Result<Scalar<'a>, Defect> {
        let numeric = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.');
        if !word.bytes().next().is_some_and(numeric) {
            return Ok(Scalar::Text(Cow::Borrowed(word)));
        }
        if let Ok(number) = word.parse() {
            return Ok(Scalar::Int(number));
        }
        match word.parse::<f64>() {
            Ok(number) if word.contains('.') && number.is_finite() => Ok(Scalar::Float(number)),
            _ => Err(self.lexer.defect("a number is not valid")),
        }
    }
}

/// A section of a [`Tree`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'t, 'a> {
    tree: &'t Tree<'a>,
    start: usize,
    end: usize,
}

/// What stands under a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item<'t, 'a> {
    Scalar(&'t Scalar<'a>),
    List(&'t [Scalar<'a>]),
    Section(Cursor<'t, 'a>),
}

impl<'t, 'a> Cursor<'t, 'a> {
    /// The entries of this section, not those of the sections in it.
    pub(super) fn iter(self) -> impl Iterator<Item = (&'t str, Item<'t, 'a>)> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let (key, item, next) = rest.first()?;
            rest.start = next;
            Some((key, item))
        })
    }

    /// The first entry, and the place behind it.
    fn first(self) -> Option<(&'t str, Item<'t, 'a>, usize)> {
        if self.start >= self.end {
            return None;
        }
        let (key, entry) = self.tree.entries.get(self.start)?;
        let start = self.start + 1;
        let (item, next) = match entry {
            Entry::Scalar(scalar) => (Item::Scalar(scalar), start),
            Entry::List(from, to) => (Item::List(self.tree.items.get(*from..*to).unwrap_or_default()), start),
            Entry::Section(end) => (Item::Section(Cursor { tree: self.tree, start, end: *end }), *end),
        };
        Some((key, item, next))
    }

    /// The first entry of this key.
    pub(super) fn get(self, key: &str) -> Option<Item<'t, 'a>> {
        self.find(key, self.start).map(|(item, _)| item)
    }

    /// An entry of this key and the place behind it, looked for from the place `from` on and then from the beginning:
    /// whoever asks for the keys in the order of the text finds each at once.
    pub(super) fn find(self, key: &str, from: usize) -> Option<(Item<'t, 'a>, usize)> {
        let behind = Self { start: from, ..self };
        let before = Self { end: from, ..self };
        behind.find_first(key).or_else(|| before.find_first(key))
    }

    fn find_first(mut self, key: &str) -> Option<(Item<'t, 'a>, usize)> {
        while let Some((own, item, next)) = self.first() {
            if own == key {
                return Some((item, next));
            }
            self.start = next;
        }
        None
    }

    /// The place of the first entry.
    pub(super) fn start(self) -> usize {
        self.start
    }

    /// The section of this key.
    pub(super) fn section(self, key: &str) -> Option<Self> {
        match self.get(key)? {
            Item::Section(section) => Some(section),
            _ => None,
        }
    }

    /// A copy of its entries whose keys pass `keep`.
    pub(super) fn to_section(self, keep: impl Fn(&str) -> bool) -> Section {
        let node = |item| match item {
            Item::Scalar(scalar) => Node::Value(scalar.to_value()),
            Item::List(list) => Node::Value(Value::List(list.iter().map(Scalar::to_value).collect())),
            // The nesting was bounded while parsing.
            Item::Section(section) => Node::Section(section.copy()),
        };
        let entries = self.iter().filter(|(key, _)| keep(key)).map(|(key, item)| (key.into(), node(item)));
        Section { entries: entries.collect() }
    }

    fn copy(self) -> Section {
        let all: fn(&str) -> bool = |_| true;
        self.to_section(all)
    }
}

impl Scalar<'_> {
    fn to_value(&self) -> Value {
        match self {
            Self::Int(number) => Value::Int(*number),
            Self::Float(number) => Value::Float(*number),
            Self::Text(text) => Value::Text((&**text).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_values_and_lists() {
        let text = "a = 1\nb { c = 'x' d { } e = [ ] f = [1, \"y\",] g = 1.5 } h = bare \"k k\" = -7";
        let tree: Section = text.parse().unwrap();
        assert_eq!(tree.value("a"), Some(&Value::Int(1)));
        assert_eq!(tree.value("h"), Some(&Value::Text("bare".into())));
        assert_eq!(tree.value("k k"), Some(&Value::Int(-7)));
        let b = tree.section("b").unwrap();
        assert!(b.section("d").unwrap().is_empty());
        assert_eq!(b.value("e"), Some(&Value::List(vec![])));
        assert_eq!(b.value("f"), Some(&Value::List(vec![Value::Int(1), Value::Text("y".into())])));
        assert_eq!(b.value("g"), Some(&Value::Float(1.5)));
        assert_eq!(tree.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["a", "b", "h", "k k"]);
    }

    #[test]
    fn broken_texts_are_refused() {
        let broken = [
            "a",
            "a =",
            "a = }",
            "a {",
            "}",
            "a = [1",
            "a = [1 2]",
            "a = [,]",
            "a = [[1]]",
            "= 1",
            "a = 1x",
            "a = 99999999999999999999",
            "a = {",
            "[",
            "a = [{]",
            "a b",
            "a\n\u{1}",
        ];
        for text in broken {
            assert!(text.parse::<Section>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_without_recursion() {
        let deep = "a{".repeat(1_000_000);
        assert!(matches!(
            deep.parse::<Section>(),
            Err(Defect::Syntax { what: "sections are nested too deeply", .. })
        ));
        assert!(format!("{}{}", "a{".repeat(DEPTH_MAX), "}".repeat(DEPTH_MAX)).parse::<Section>().is_ok());
    }
}
