//! B-trees (drivers/md/persistent-data/dm-btree-internal.h), walked in the order of their keys.

use super::block::{BLOCK, Block, Source, checked, u32_at, u64_at};
use super::fault::Fault;

/// Mixed into the checksum of nodes.
pub(super) const SALT: u32 = 121_107;
/// Bytes of a node before its keys (`struct node_header`).
pub(super) const HEADER: usize = 32;
/// The size of a value that is one number.
pub(super) const NUMBER: usize = 8;
/// Flags of a node.
pub(super) const INTERNAL: u32 = 1;
/// As above.
pub(super) const LEAF: u32 = 2;
/// A tree over 64-bit keys, whose nodes hold at least 42 entries each, is never deeper.
const DEEPEST: usize = 16;

/// A node whose header, keys and sizes were checked.
struct Node {
    block: Box<Block>,
    is_leaf: bool,
    entries: usize,
    room: usize,
    value_size: usize,
}

impl Node {
    /// Reads a node whose keys must lie in `low..high`; `value_size` is that of the tree's leaves.
    fn read(source: &impl Source, child: &Child, value_size: usize) -> Result<Self, Fault> {
        let number = child.block;
        let damaged = |what| Fault::Damaged { block: number, what };
        let block = checked(source, number, SALT)?;
        let is_leaf = match u32_at(&block, 4) {
            INTERNAL => false,
            LEAF => true,
            _ => return Err(damaged("it is neither an inner node nor a leaf")),
        };
        let value_size = if is_leaf { value_size } else { NUMBER };
        let field = |at| usize::try_from(u32_at(&block, at)).unwrap_or(usize::MAX);
        let (entries, room) = (field(16), field(20));
        if field(24) != value_size || room > (BLOCK - HEADER) / (8 + value_size) || entries > room {
            return Err(damaged("its sizes do not fit"));
        }
        let node = Self { block, is_leaf, entries, room, value_size };
        node.check_keys(child).map_err(damaged)?;
        Ok(node)
    }

    /// Keys that rise and stay in their range are what makes a walk end.
    fn check_keys(&self, child: &Child) -> Result<(), &'static str> {
        let keys = (0..self.entries).map(|index| self.key(index));
        if !keys.clone().zip(keys.clone().skip(1)).all(|(key, next)| key < next) {
            return Err("its keys are not in order");
        }
        match (keys.clone().next(), keys.clone().next_back()) {
            (Some(first), Some(last)) => {
                let below = child.high.is_none_or(|high| last < high);
                (first >= child.low && below).then_some(()).ok_or("its keys are not its parent's")
            }
            _ if self.is_leaf && child.depth == 0 => Ok(()),
            _ => Err("it is empty"),
        }
    }

    fn key(&self, index: usize) -> u64 {
        u64_at(&self.block, HEADER + 8 * index)
    }

    fn value(&self, index: usize) -> &[u8] {
        let start = HEADER + 8 * self.room + self.value_size * index;
        self.block.0.get(start..start + self.value_size).unwrap_or_default()
    }

    fn number(&self, index: usize) -> u64 {
        self.value(index).first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// The child at `index` of this node, which is itself the `parent`.
    fn child(&self, index: usize, parent: &Child) -> Child {
        let next = index + 1;
        let high = if next < self.entries { Some(self.key(next)) } else { parent.high };
        Child { block: self.number(index), low: self.key(index), high, depth: parent.depth + 1 }
    }
}

/// A subtree that has not been read yet: its block, and the keys it may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Child {
    pub(super) block: u64,
    pub(super) low: u64,
    /// The first key that it cannot hold.
    pub(super) high: Option<u64>,
    /// Steps from the root.
    pub(super) depth: usize,
}

impl Child {
    const fn root(block: u64) -> Self {
        Self { block, low: 0, high: None, depth: 0 }
    }
}

/// What comes next in a walk.
#[derive(Clone, Copy, Debug)]
pub(super) enum Front<'a> {
    /// A subtree, to be read or to be passed over.
    Subtree(Child),
    /// An entry of a leaf.
    Entry { key: u64, value: &'a [u8] },
    /// Nothing.
    End,
}

/// A walk over a tree. It holds one node a level.
pub(super) struct Walk<'s, S> {
    source: &'s S,
    value_size: usize,
    root: Option<Child>,
    path: Vec<(Node, Child, usize)>,
    read: usize,
}

impl<S> std::fmt::Debug for Walk<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Walk(depth {})", self.path.len())
    }
}

impl<'s, S: Source> Walk<'s, S> {
    /// A walk over the tree at block `root`, whose leaves hold values of `value_size` bytes.
    pub(super) fn new(source: &'s S, root: u64, value_size: usize) -> Self {
        Self { source, value_size, root: Some(Child::root(root)), path: Vec::new(), read: 0 }
    }

    pub(super) fn front(&self) -> Front<'_> {
        if let Some(root) = self.root {
            return Front::Subtree(root);
        }
        match self.path.last() {
            Some((node, _, index)) if *index < node.entries && node.is_leaf => {
                Front::Entry { key: node.key(*index), value: node.value(*index) }
            }
            Some((node, child, index)) if *index < node.entries => Front::Subtree(node.child(*index, child)),
            _ => Front::End,
        }
    }

    /// Reads the subtree in front, so that what it holds is in front.
    pub(super) fn descend(&mut self) -> Result<(), Fault> {
        let Front::Subtree(child) = self.front() else { return Ok(()) };
        if child.depth >= DEEPEST {
            return Err(Fault::Damaged { block: child.block, what: "it is deeper than any tree" });
        }
        let node = Node::read(self.source, &child, self.value_size)?;
        self.read += 1;
        // What the parent points to is taken; an empty node (only a root can be) leaves nothing in front.
        match self.path.last_mut() {
            Some((_, _, index)) => *index += 1,
            None => self.root = None,
        }
        self.path.push((node, child, 0));
        self.climb();
        Ok(())
    }

    /// How many blocks were read.
    pub(super) fn read(&self) -> usize {
        self.read
    }

    /// The least key that can still come; `None` at the end.
    pub(super) fn position(&self) -> Option<u64> {
        match self.front() {
            Front::Subtree(child) => Some(child.low),
            Front::Entry { key, .. } => Some(key),
            Front::End => None,
        }
    }

    /// Passes over what is in front if it lies wholly before `key`, and tells whether it did.
    pub(super) fn pass_before(&mut self, key: u64) -> bool {
        let before = match self.front() {
            Front::Subtree(child) => child.high.is_some_and(|high| high <= key),
            Front::Entry { key: own, .. } => own < key,
            Front::End => false,
        };
        if before {
            self.pass();
        }
        before
    }

    /// Passes over what is in front.
    pub(super) fn pass(&mut self) {
        if self.root.take().is_none()
            && let Some((_, _, index)) = self.path.last_mut()
        {
            *index += 1;
            self.climb();
        }
    }

    /// Leaves the nodes that have nothing more.
    fn climb(&mut self) {
        while self.path.last().is_some_and(|(node, _, index)| *index >= node.entries) {
            self.path.pop();
        }
    }

    /// The next entry, reading what must be read; `None` at the end.
    pub(super) fn next_entry(&mut self) -> Result<Option<(u64, Vec<u8>)>, Fault> {
        loop {
            match self.front() {
                Front::End => return Ok(None),
                Front::Subtree(_) => self.descend()?,
                Front::Entry { key, value } => {
                    let entry = (key, value.to_vec());
                    self.pass();
                    return Ok(Some(entry));
                }
            }
        }
    }

    /// How many levels lie below the root: zero when it is a leaf. All leaves are equally deep.
    pub(super) fn height(&self) -> Result<usize, Fault> {
        let Some(mut child) = self.root else { return Ok(0) };
        for height in 0..DEEPEST {
            let node = Node::read(self.source, &child, self.value_size)?;
            if node.is_leaf {
                return Ok(height);
            }
            child = node.child(0, &child);
        }
        Err(Fault::Damaged { block: child.block, what: "it is deeper than any tree" })
    }
}

/// The number that the tree at block `root` holds for `key`.
pub(super) fn lookup(source: &impl Source, root: u64, key: u64) -> Result<Option<u64>, Fault> {
    let mut child = Child::root(root);
    while child.depth < DEEPEST {
        let node = Node::read(source, &child, NUMBER)?;
        // The last entry whose key is not above the wanted one.
        let above = (0..node.entries).find(|index| node.key(*index) > key).unwrap_or(node.entries);
        let Some(index) = above.checked_sub(1) else { return Ok(None) };
        if node.is_leaf {
            return Ok((node.key(index) == key).then(|| node.number(index)));
        }
        child = node.child(index, &child);
    }
    Err(Fault::Damaged { block: child.block, what: "it is deeper than any tree" })
}
