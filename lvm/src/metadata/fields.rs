//! Typed access to the entries of a section.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use devices::Sectors;

use super::Defect;
use super::text::{Cursor, Item, Scalar};
use crate::{Extents, LvName, Tag, Uuid};

/// A section and where it stands, for the errors.
///
/// Of a key that stands twice, which LVM never writes, any entry may be taken.
#[derive(Debug)]
pub(super) struct Fields<'t, 'a> {
    pub(super) cursor: Cursor<'t, 'a>,
    /// Behind the entry that was asked for last.
    next: Cell<usize>,
    /// The group, PV or volume.
    owner: &'t str,
    /// The section's own key.
    key: &'t str,
}

impl<'t, 'a> Fields<'t, 'a> {
    pub(super) fn new(cursor: Cursor<'t, 'a>, owner: &'t str, key: &'t str) -> Self {
        Self { cursor, next: Cell::new(cursor.start()), owner, key }
    }

    /// What is wrong here.
    pub(super) fn defect(&self, what: impl Into<String>) -> Defect {
        let place =
            if self.owner == self.key { self.key.to_owned() } else { format!("{}/{}", self.owner, self.key) };
        Defect::Meaning { place, what: what.into() }
    }

    fn wrong(&self, key: &str, should: &str) -> Defect {
        self.defect(format!("{key} is not {should}"))
    }

    fn needed<T>(&self, key: &str, value: Option<T>) -> Result<T, Defect> {
        value.ok_or_else(|| self.defect(format!("{key} is absent")))
    }

    /// What stands under a key.
    pub(super) fn get(&self, key: &str) -> Option<Item<'t, 'a>> {
        let (item, next) = self.cursor.find(key, self.next.get())?;
        self.next.set(next);
        Some(item)
    }

    /// An integer that is not negative.
    pub(super) fn number(&self, key: &str) -> Result<Option<u64>, Defect> {
        match self.get(key) {
            None => Ok(None),
            Some(Item::Scalar(Scalar::Int(number))) => {
                u64::try_from(*number).map(Some).map_err(|_| self.wrong(key, "a number from 0 on"))
            }
            Some(_) => Err(self.wrong(key, "a number")),
        }
    }

    pub(super) fn need_number(&self, key: &str) -> Result<u64, Defect> {
        self.number(key).and_then(|number| self.needed(key, number))
    }

    /// An integer of at most 32 bits.
    pub(super) fn small(&self, key: &str) -> Result<Option<u32>, Defect> {
        let narrow = |number| u32::try_from(number).map_err(|_| self.wrong(key, "a number of 32 bits"));
        self.number(key)?.map(narrow).transpose()
    }

    pub(super) fn need_small(&self, key: &str) -> Result<u32, Defect> {
        self.small(key).and_then(|number| self.needed(key, number))
    }

    /// Like [`Fields::small`], with 0 as absence.
    pub(super) fn limit(&self, key: &str) -> Result<Option<u32>, Defect> {
        Ok(self.small(key)?.filter(|limit| *limit > 0))
    }

    /// A number of sectors whose bytes fit into 64 bits.
    pub(super) fn sectors(&self, key: &str) -> Result<Option<Sectors>, Defect> {
        let Some(number) = self.number(key)? else { return Ok(None) };
        let sectors = Sectors::new(number);
        if sectors.to_bytes().is_none() {
            return Err(self.wrong(key, "a size below 2^64 bytes"));
        }
        Ok(Some(sectors))
    }

    pub(super) fn need_sectors(&self, key: &str) -> Result<Sectors, Defect> {
        self.sectors(key).and_then(|sectors| self.needed(key, sectors))
    }

    /// A number of sectors, with 0 as absence.
    pub(super) fn some_sectors(&self, key: &str) -> Result<Option<Sectors>, Defect> {
        Ok(self.sectors(key)?.filter(|sectors| *sectors != Sectors::ZERO))
    }

    pub(super) fn need_extents(&self, key: &str) -> Result<Extents, Defect> {
        self.need_number(key).map(Extents::new)
    }

    /// A truth value, written as 0 or another number.
    pub(super) fn truth(&self, key: &str) -> Result<Option<bool>, Defect> {
        Ok(self.number(key)?.map(|number| number != 0))
    }

    /// Seconds since 1970.
    pub(super) fn time(&self, key: &str) -> Result<Option<SystemTime>, Defect> {
        let Some(seconds) = self.number(key)? else { return Ok(None) };
        let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        time.map(Some).ok_or_else(|| self.wrong(key, "a time"))
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'t str>, Defect> {
        match self.get(key) {
            None => Ok(None),
            Some(Item::Scalar(Scalar::Text(text))) => Ok(Some(text)),
            Some(_) => Err(self.wrong(key, "a text")),
        }
    }

    pub(super) fn need_text(&self, key: &str) -> Result<&'t str, Defect> {
        self.text(key).and_then(|text| self.needed(key, text))
    }

    /// A text, with the empty one as absence.
    pub(super) fn some_text(&self, key: &str) -> Result<Option<Box<str>>, Defect> {
        Ok(self.text(key)?.filter(|text| !text.is_empty()).map(Into::into))
    }

    /// The same, shared with `like` where that says the same.
    pub(super) fn shared_text(&self, key: &str, like: Option<&Arc<str>>) -> Result<Option<Arc<str>>, Defect> {
        let share = |text: &str| match like {
            Some(like) if **like == *text => Arc::clone(like),
            _ => text.into(),
        };
        Ok(self.text(key)?.filter(|text| !text.is_empty()).map(share))
    }

    /// A list; an absent one is empty.
    pub(super) fn list(&self, key: &str) -> Result<&'t [Scalar<'a>], Defect> {
        match self.get(key) {
            None => Ok(&[]),
            Some(Item::List(list)) => Ok(list),
            Some(_) => Err(self.wrong(key, "a list")),
        }
    }

    /// A list of texts, each made into a `T` behind those that are there.
    fn texts<T>(
        &self,
        key: &str,
        into: &mut Vec<T>,
        mut make: impl FnMut(&str) -> Result<T, Defect>,
    ) -> Result<(), Defect> {
        let list = self.list(key)?;
        // Groups have thousands of such lists, so none gets more memory than it needs.
        into.reserve_exact(list.len());
        for item in list {
            let Scalar::Text(text) = item else { return Err(self.wrong(key, "a list of texts")) };
            into.push(make(text)?);
        }
        Ok(())
    }

    /// The words of `status` and after them those of `flags`.
    pub(super) fn flags<F>(&self, from_word: impl Fn(&str) -> F) -> Result<Vec<F>, Defect> {
        let mut flags = Vec::new();
        self.texts("status", &mut flags, |word| Ok(from_word(word)))?;
        self.texts("flags", &mut flags, |word| Ok(from_word(word)))?;
        Ok(flags)
    }

    /// The tags, shared with those in the same places of `like` where they are the same.
    pub(super) fn tags(&self, like: &[Tag]) -> Result<Vec<Tag>, Defect> {
        let (mut tags, mut like) = (Vec::new(), like.iter());
        let tag = |text: &str| match like.next() {
            Some(like) if like.as_str() == text => Ok(like.clone()),
            _ => Tag::new(text).map_err(|error| self.defect(error.to_string())),
        };
        self.texts("tags", &mut tags, tag)?;
        Ok(tags)
    }

    pub(super) fn words(&self, key: &str) -> Result<Vec<Box<str>>, Defect> {
        let mut words = Vec::new();
        self.texts(key, &mut words, |word| Ok(word.into()))?;
        Ok(words)
    }

    pub(super) fn uuid(&self, key: &str) -> Result<Option<Uuid>, Defect> {
        let parse =
            |text: &str| text.parse().map_err(|error: crate::UuidError| self.defect(error.to_string()));
        self.text(key)?.map(parse).transpose()
    }

    pub(super) fn need_uuid(&self) -> Result<Uuid, Defect> {
        self.uuid("id").and_then(|uuid| self.needed("id", uuid))
    }

    /// The name of another volume.
    pub(super) fn lv(&self, key: &str) -> Result<Option<LvName>, Defect> {
        self.text(key)?.map(|name| self.lv_name(name)).transpose()
    }

    pub(super) fn need_lv(&self, key: &str) -> Result<LvName, Defect> {
        self.lv(key).and_then(|name| self.needed(key, name))
    }

    pub(super) fn lv_name(&self, name: &str) -> Result<LvName, Defect> {
        LvName::existing(name).map_err(|error| self.defect(error.to_string()))
    }
}
