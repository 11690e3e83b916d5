//! The committed texts on the devices: told apart by little, decoded only where somebody needs them.
//!
//! A group has a copy of its text on each PV. All of them are read and their checksums computed, but of different ones only
//! the first that comes and the newest are decoded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use devices::Bytes;

use super::lex::{Lexer, Word};
use super::source::Taken;
use super::{Defect, Vg};
use crate::Uuid;

/// How much of a text is kept to tell it from another one of the same checksum and length: its name, id and number.
pub(super) const PREFIX: usize = 256;

/// Tells one text from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct TextKey {
    checksum: u32,
    size: Bytes,
    prefix: Box<[u8]>,
}

/// A text whose checksum is right. Copies of it that are met in one round of reading share it.
#[derive(Debug)]
pub(super) struct Committed {
    pub(super) key: TextKey,
    pub(super) vg: Uuid,
    pub(super) seqno: u64,
    body: Mutex<Body>,
}

#[derive(Debug)]
enum Body {
    Bytes(Taken),
    Vg(Arc<Vg>),
    Bad(Defect),
}

/// The texts met in one round of reading.
#[derive(Debug, Default)]
pub(super) struct Texts(Mutex<HashMap<TextKey, Arc<Committed>>>);

impl TextKey {
    pub(super) fn of(bytes: &[u8], checksum: u32, size: Bytes) -> Self {
        Self { checksum, size, prefix: bytes.get(..PREFIX.min(bytes.len())).unwrap_or_default().into() }
    }
}

impl Texts {
    /// The text of these bytes, shared with whoever has read it before.
    ///
    /// # Errors
    ///
    /// [`Defect`] when the text does not even say whose it is.
    pub(super) fn share(&self, key: TextKey, bytes: Taken) -> Result<Arc<Committed>, Defect> {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = texts.get(&key) {
            return Ok(Arc::clone(text));
        }
        let text = Arc::new(Committed::new(key.clone(), bytes)?);
        texts.insert(key, Arc::clone(&text));
        Ok(text)
    }

    /// How many different texts there were.
    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Committed {
    fn new(key: TextKey, bytes: Taken) -> Result<Self, Defect> {
        let head = String::from_utf8_lossy(&key.prefix);
        let (vg, seqno, body) = match id_and_number(&head) {
            Some((vg, seqno)) => (vg, seqno, Body::Bytes(bytes)),
            // LVM begins a text with them; a text that does not may still be a good one.
            None => {
                let vg = decode(&bytes)?;
                (vg.uuid, vg.seqno, Body::Vg(Arc::new(vg)))
            }
        };
        Ok(Self { key, vg, seqno, body: Mutex::new(body) })
    }

    /// Hands over the group, which is decoded at the first call; what is made of it is kept.
    ///
    /// # Errors
    ///
    /// [`Defect`] of the text.
    pub(super) fn with_vg<T>(&self, use_it: impl FnOnce(&mut Arc<Vg>) -> T) -> Result<T, Defect> {
        let mut body = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        if let Body::Bytes(bytes) = &*body {
            *body = match decode(bytes) {
                Ok(vg) if (vg.uuid, vg.seqno) == (self.vg, self.seqno) => Body::Vg(Arc::new(vg)),
                Ok(_) => Body::Bad(Defect::Meaning {
                    place: "text".to_owned(),
                    what: "the group's id or seqno is told twice".to_owned(),
                }),
                Err(defect) => Body::Bad(defect),
            };
        }
        match &mut *body {
            Body::Vg(vg) => Ok(use_it(vg)),
            Body::Bad(defect) => Err(defect.clone()),
            // Just decoded.
            Body::Bytes(_) => Err(Defect::Short("text")),
        }
    }
}

fn decode(bytes: &[u8]) -> Result<Vg, Defect> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Vg::from_text(text),
        Err(_) => Vg::from_text(&String::from_utf8_lossy(bytes)),
    }
}

/// The group's id and the number of its commits, where a text begins with them as LVM writes it.
fn id_and_number(head: &str) -> Option<(Uuid, u64)> {
    let mut lexer = Lexer::new(head);
    lexer.word("").ok()?;
    if !lexer.pass(b'{') {
        return None;
    }
    let (mut id, mut number) = (None, None);
    while id.is_none() || number.is_none() {
        let Word::Bare(key) = lexer.word("").ok()? else { return None };
        if !lexer.pass(b'=') {
            return None;
        }
        match (key, lexer.word("").ok()?) {
            ("id", Word::Quoted(text)) => id = Some(text.parse().ok()?),
            ("seqno", Word::Bare(text)) => number = Some(text.parse().ok()?),
            _ => {}
        }
    }
    Some((id?, number?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "Kt3bSo-1tY0-bq3V-5a2D-Zzzz-0000-abcdef";

    #[test]
    fn a_text_begins_with_whose_it_is() {
        let head = format!("data {{\nid = \"{ID}\"\nseqno = 7\nformat = \"lvm2\" # informa");
        assert_eq!(id_and_number(&head), Some((ID.parse().unwrap(), 7)));
        for other in
            ["", "data", "data {", "data { id = \"x\" seqno = 7", "data { seqno = -7", "data { pv { } }"]
        {
            assert_eq!(id_and_number(other), None, "{other}");
        }
    }
}
