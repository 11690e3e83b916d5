//! LVM's configuration and metadata text as a tree of keys.
//!
//! The grammar: `key = value`, `key { … }`, comments from `#` to the end of the line; a value is an integer, a number
//! with a fraction, a quoted or bare text, or a list of these in brackets.

use std::borrow::Cow;

use super::Defect;
use super::lex::{Lexer, Word, Wrong};

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
    /// The section's entries follow.
    Section(Extent),
}

impl Entry<'_> {
    /// The place behind this entry, which stands at `place`.
    #[inline]
    fn next(&self, place: usize) -> usize {
        match self {
            Self::Section(extent) => extent.end,
            Self::Scalar(_) | Self::List(..) => place + 1,
        }
    }
}

/// How far a section reaches.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// The index behind its last entry.
    end: usize,
    /// Which keys it may have.
    keys: Keys,
}

/// A set of keys that never denies one it holds, so that most keys that are absent are found absent without a look at
/// the entries.
#[derive(Clone, Copy, Debug)]
struct Keys(u64);

impl Keys {
    const NONE: Self = Self(0);
    const ANY: Self = Self(u64::MAX);

    #[inline]
    fn bit(key: &str) -> u64 {
        let byte = |at: usize| usize::from(key.as_bytes().get(at).copied().unwrap_or_default());
        // These three tell apart what LVM writes in one section.
        1 << ((byte(0) ^ (byte(1) << 2) ^ (key.len() << 1)) & 63)
    }

    #[inline]
    fn add(&mut self, key: &str) {
        self.0 |= Self::bit(key);
    }

    #[inline]
    fn may_hold(self, key: &str) -> bool {
        self.0 & Self::bit(key) != 0
    }
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
        let mut parser = Parser::new(text);
        while parser.step()? != Step::End {}
        Ok(parser.into_tree())
    }

    /// The whole text as one section.
    pub(super) fn root(&self) -> Cursor<'_, 'a> {
        Cursor { tree: self, start: 0, end: self.entries.len(), keys: Keys::ANY }
    }
}

/// What a [`Parser`] has just passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A value, or the beginning of a section.
    Entry,
    /// The end of a section, which is now [`Parser::ended`].
    Section,
    /// The end of the text.
    End,
}

/// A section that has begun.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// The index of its entry.
    entry: usize,
    /// How many items the tree had before it.
    items: usize,
    keys: Keys,
}

/// Parses a text step by step, so that what has been read of it can be used and forgotten before its end.
#[derive(Debug)]
pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    tree: Tree<'a>,
    /// The sections that have begun and not ended, from the outermost on.
    open: Vec<Open>,
    /// The section that ended last.
    ended: Option<Open>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { lexer: Lexer::new(text), tree: Tree::default(), open: Vec::new(), ended: None }
    }

    /// Passes one value, or the beginning or the end of one section.
    #[inline]
    pub(super) fn step(&mut self) -> Result<Step, Defect> {
        self.pass().map_err(|wrong| self.lexer.defect(wrong))
    }

    #[inline]
    fn pass(&mut self) -> Result<Step, Wrong> {
        match self.lexer.peek() {
            Some(b'}') => self.close().map(|()| Step::Section),
            Some(_) => self.entry().map(|()| Step::Entry),
            None if self.open.is_empty() => Ok(Step::End),
            None => Err("a section has no end"),
        }
    }

    /// Passes what `read` understands of the text from the next word on: its value and its length.
    #[inline]
    pub(super) fn pass_by<T>(&mut self, read: impl FnOnce(&'a str) -> Option<(T, usize)>) -> Option<T> {
        let (value, length) = read(self.lexer.ahead())?;
        self.lexer.skip(length);
        Some(value)
    }

    /// What was parsed, less what was forgotten.
    pub(super) fn into_tree(self) -> Tree<'a> {
        self.tree
    }

    /// Bytes of the text that are still to be parsed.
    pub(super) fn rest(&self) -> usize {
        self.lexer.rest()
    }

    /// How many sections have begun and not ended.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// The open section at this depth, the outermost being 0: its key and its first entry's place.
    pub(super) fn open(&self, depth: usize) -> Option<(&str, usize)> {
        let entry = self.open.get(depth)?.entry;
        self.tree.entries.get(entry).map(|(key, _)| (&**key, entry + 1))
    }

    /// What the open section at this depth held before the one that is open within it.
    pub(super) fn before(&self, depth: usize) -> Option<Cursor<'_, 'a>> {
        let (_, start) = self.open(depth)?;
        let end = self.open.get(depth + 1)?.entry;
        Some(Cursor { tree: &self.tree, start, end, keys: Keys::ANY })
    }

    /// The section that ended last, and its key.
    pub(super) fn ended(&self) -> Option<(&str, Cursor<'_, 'a>)> {
        let Open { entry, keys, .. } = self.ended?;
        let (key, _) = self.tree.entries.get(entry)?;
        Some((key, Cursor { tree: &self.tree, start: entry + 1, end: self.tree.entries.len(), keys }))
    }

    /// Forgets the section that ended last.
    pub(super) fn forget(&mut self) {
        if let Some(Open { entry, items, .. }) = self.ended.take() {
            self.tree.entries.truncate(entry);
            self.tree.items.truncate(items);
        }
    }

    /// One `key = value`, or the beginning of a section.
    fn entry(&mut self) -> Result<(), Wrong> {
        let key = match self.lexer.word("a key or the end of the section was expected")? {
            Word::Bare(key) => Cow::Borrowed(key),
            Word::Quoted(key) => key,
        };
        self.room()?;
        if let Some(section) = self.open.last_mut() {
            section.keys.add(&key);
        }
        if self.lexer.pass(b'=') {
            let value = if self.lexer.pass(b'[') { self.list()? } else { Entry::Scalar(self.scalar()?) };
            self.tree.entries.push((key, value));
        } else if !self.lexer.pass(b'{') {
            return Err("a key needs a value or a section");
        } else if self.open.len() < DEPTH_MAX {
            let (entry, items) = (self.tree.entries.len(), self.tree.items.len());
            self.open.push(Open { entry, items, keys: Keys::NONE });
            // Its extent is known when it ends.
            self.tree.entries.push((key, Entry::Section(Extent { end: entry + 1, keys: Keys::NONE })));
        } else {
            return Err("sections are nested too deeply");
        }
        Ok(())
    }

    fn room(&self) -> Result<(), Wrong> {
        if self.tree.entries.len() + self.tree.items.len() < ENTRIES_MAX {
            Ok(())
        } else {
            Err("the text has too many entries")
        }
    }

    fn close(&mut self) -> Result<(), Wrong> {
        self.ended = self.open.pop();
        let Some(Open { entry, keys, .. }) = self.ended else {
            return Err("a section ends that has not begun");
        };
        let end = self.tree.entries.len();
        if let Some((_, Entry::Section(extent))) = self.tree.entries.get_mut(entry) {
            *extent = Extent { end, keys };
        }
        self.lexer.pass(b'}');
        Ok(())
    }

    /// The items up to the closing bracket, parted by commas.
    fn list(&mut self) -> Result<Entry<'a>, Wrong> {
        let start = self.tree.items.len();
        while !self.lexer.pass(b']') {
            self.room()?;
            let item = self.scalar()?;
            self.tree.items.push(item);
            if !self.lexer.pass(b',') && self.lexer.peek() != Some(b']') {
                return Err("a list goes wrong here");
            }
        }
        Ok(Entry::List(start, self.tree.items.len()))
    }

    fn scalar(&mut self) -> Result<Scalar<'a>, Wrong> {
        match self.lexer.word("a value was expected")? {
            Word::Quoted(text) => Ok(Scalar::Text(text)),
            Word::Bare(word) => self.number_or_text(word),
        }
    }

    fn number_or_text(&self, word: &'a str) -> Result<Scalar<'a>, Wrong> {
        let numeric = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.');
        if !word.bytes().next().is_some_and(numeric) {
            return Ok(Scalar::Text(Cow::Borrowed(word)));
        }
        if let Ok(number) = word.parse() {
            return Ok(Scalar::Int(number));
        }
        match word.parse::<f64>() {
            Ok(number) if word.contains('.') && number.is_finite() => Ok(Scalar::Float(number)),
            _ => Err("a number is not valid"),
        }
    }
}

/// A section of a [`Tree`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'t, 'a> {
    tree: &'t Tree<'a>,
    start: usize,
    end: usize,
    keys: Keys,
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
    #[inline]
    fn first(self) -> Option<(&'t str, Item<'t, 'a>, usize)> {
        if self.start >= self.end {
            return None;
        }
        let (key, entry) = self.tree.entries.get(self.start)?;
        Some((key, self.item(entry), entry.next(self.start)))
    }

    /// What the entry at this cursor's start is.
    #[inline]
    fn item(self, entry: &'t Entry<'a>) -> Item<'t, 'a> {
        match *entry {
            Entry::Scalar(ref scalar) => Item::Scalar(scalar),
            Entry::List(from, to) => Item::List(self.tree.items.get(from..to).unwrap_or_default()),
            Entry::Section(Extent { end, keys }) => {
                Item::Section(Cursor { tree: self.tree, start: self.start + 1, end, keys })
            }
        }
    }

    /// The first entry of this key.
    #[inline]
    pub(super) fn get(self, key: &str) -> Option<Item<'t, 'a>> {
        self.find(key, self.start).map(|(item, _)| item)
    }

    /// An entry of this key and the place behind it, looked for from the place `from` on and then from the beginning:
    /// whoever asks for the keys in the order of the text finds each at once.
    #[inline]
    pub(super) fn find(self, key: &str, from: usize) -> Option<(Item<'t, 'a>, usize)> {
        if !self.keys.may_hold(key) {
            return None;
        }
        let behind = Self { start: from, ..self };
        let before = Self { end: from, ..self };
        behind.find_first(key).or_else(|| before.find_first(key))
    }

    #[inline]
    fn find_first(mut self, key: &str) -> Option<(Item<'t, 'a>, usize)> {
        while self.start < self.end {
            let (own, entry) = self.tree.entries.get(self.start)?;
            if **own == *key {
                return Some((self.item(entry), entry.next(self.start)));
            }
            self.start = entry.next(self.start);
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
