//! The generic tree of LVM's configuration and metadata text.

/// A value.
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    entries: Vec<(Box<str>, Node)>,
}

impl Section {
    /// Adds an entry at the end.
    pub fn push(&mut self, key: &str, node: Node) {
        self.entries.push((key.into(), node));
    }

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
