//! Where this node is, and whether that is where something is wanted.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use tonic::{Code, Status};

use crate::names::TOPOLOGY_KEY;
use crate::proto::{Topology, TopologyRequirement};
use crate::status::{invalid, shown, status};

/// Longest value of a topology segment, as Kubernetes takes it for a label.
const LONGEST: usize = 63;
/// Hexadecimal characters of a hash that stand for the rest of a longer name.
const HASHED: usize = 16;
/// Longest id of a node: the CSINode objects of Kubernetes take no more.
const ID: usize = 192;
/// The most places that one request may name.
const MOST: usize = 4096;

/// A node's id and its topology segment.
///
/// ```
/// use csi::Place;
///
/// let place = Place::new("worker-1")?;
/// assert_eq!(place.segment(), "worker-1");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    node: String,
    segment: String,
}

impl Place {
    /// The place of a node of that name.
    ///
    /// # Errors
    ///
    /// In words, for a name that is no DNS name of at most 192 bytes.
    pub fn new(node: &str) -> Result<Self, String> {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let ends = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
        let good = node.bytes().all(inner) && ends(node.bytes().next()) && ends(node.bytes().last());
        if !good || node.len() > ID {
            return Err(format!(
                "{} cannot be the name of a node: it is 1 to {ID} letters, digits, dots and hyphens, with a letter or \
                 digit at both ends",
                shown(node)
            ));
        }
        Ok(Self { node: node.to_owned(), segment: segment(node) })
    }

    /// The node's id.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The value of its topology segment: its name where that is short enough, else the beginning of it and a hash.
    #[must_use]
    pub fn segment(&self) -> &str {
        &self.segment
    }

    pub(crate) fn topology(&self) -> Topology {
        Topology { segments: [(TOPOLOGY_KEY.to_owned(), self.segment.clone())].into() }
    }

    /// Whether this node is at a place. What else a place says cannot hold here: this node has one segment.
    pub(crate) fn is_at(&self, place: &Topology) -> bool {
        place.segments.iter().all(|(key, value)| key == TOPOLOGY_KEY && *value == self.segment)
    }

    /// Refuses what must lie elsewhere.
    pub(crate) fn must_take(&self, field: &str, wanted: Option<&TopologyRequirement>) -> Result<(), Status> {
        let Some(wanted) = wanted else { return Ok(()) };
        if wanted.requisite.len() + wanted.preferred.len() > MOST {
            return Err(invalid(field, format!("it names more than {MOST} places")));
        }
        // Without a requisite, what is preferred is a wish alone.
        if wanted.requisite.is_empty() || wanted.requisite.iter().any(|place| self.is_at(place)) {
            return Ok(());
        }
        let text = format!("{field}: node {} is none of the places that are allowed", shown(&self.node));
        Err(status(Code::ResourceExhausted, &text))
    }
}

fn segment(node: &str) -> String {
    if node.len() <= LONGEST {
        return node.to_owned();
    }
    let mut short = format!("{}-", &node[..LONGEST - HASHED - 1]);
    for byte in Sha256::digest(node.as_bytes()).iter().take(HASHED / 2) {
        // Writing to a string cannot fail.
        let _ = write!(short, "{byte:02x}");
    }
    short
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(key: &str, value: &str) -> Topology {
        Topology { segments: [(key.to_owned(), value.to_owned())].into() }
    }

    #[test]
    fn a_volume_is_made_only_where_it_may_lie() {
        let place = Place::new("here").unwrap();
        let wish = |requisite: &[Topology], preferred: &[Topology]| {
            let wanted = TopologyRequirement { requisite: requisite.into(), preferred: preferred.into() };
            place.must_take("accessibility_requirements", Some(&wanted)).map_err(|refusal| refusal.code())
        };
        let (here, there, other) = (at(TOPOLOGY_KEY, "here"), at(TOPOLOGY_KEY, "there"), at("zone", "here"));
        assert_eq!(place.must_take("x", None).map_err(|refusal| refusal.code()), Ok(()));
        assert_eq!(wish(&[there.clone(), here.clone()], &[]), Ok(()));
        assert_eq!(wish(&[], std::slice::from_ref(&there)), Ok(()));
        assert_eq!(wish(&[there], std::slice::from_ref(&here)), Err(Code::ResourceExhausted));
        assert_eq!(wish(&[other], &[]), Err(Code::ResourceExhausted));
        assert_eq!(wish(&vec![here; MOST + 1], &[]), Err(Code::InvalidArgument));
        assert!(place.is_at(&place.topology()));
    }

    #[test]
    fn names_that_no_node_has() {
        for bad in ["", "a b", "../../x", "-a", "a.", "a\nb", "é", &"x".repeat(193)] {
            assert!(Place::new(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_segment_is_a_label_and_tells_nodes_apart(name in "[a-z][a-z0-9.-]{0,180}[a-z]", other in "[a-z][a-z0-9.-]{0,180}[a-z]") {
            let (one, two) = (Place::new(&name).unwrap(), Place::new(&other).unwrap());
            prop_assert!(one.segment().len() <= LONGEST && one.segment().ends_with(|last: char| last.is_ascii_alphanumeric()));
            prop_assert_eq!(one.segment() == two.segment(), name == other);
        }
    }
}
