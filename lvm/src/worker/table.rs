//! Changes of device-mapper tables that we make ourselves: gates, linear windows, recovery.

use std::time::Duration;

use devices::Sectors;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::run::Scope;
use crate::{Error, Kind};

/// Longest name of a device, in bytes (`DM_NAME_LEN` less the terminating zero).
const NAME_MAX: usize = 127;
/// Longest uuid of a device, in bytes (`DM_UUID_LEN` less the terminating zero).
const UUID_MAX: usize = 128;

/// One line of a device-mapper table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableLine {
    /// Where in the device the line begins.
    #[serde(with = "sectors")]
    pub start: Sectors,
    /// How long it is.
    #[serde(with = "sectors")]
    pub length: Sectors,
    /// The target, such as `linear`.
    pub target: String,
    /// The target's parameters, such as `8:16 2048`.
    pub parameters: String,
}

/// Whether I/O in flight is waited for when a device is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flush {
    /// Waits until everything written so far has arrived.
    Flush,
    /// Holds it back as it is.
    NoFlush,
}

/// Whether a mounted filesystem is brought to rest when its device is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Freeze {
    /// The kernel freezes the filesystem first.
    Freeze,
    /// The filesystem does not notice.
    NoFreeze,
}

/// Whether a device takes writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// Reads and writes.
    ReadWrite,
    /// Reads only.
    ReadOnly,
}

/// One change of one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TableStep {
    /// Makes a device, loads its table and lets it run.
    Create {
        /// Name of the device.
        device: String,
        /// Its uuid.
        uuid: Option<String>,
        /// Its table.
        table: Vec<TableLine>,
        /// Whether it takes writes.
        access: Access,
    },
    /// Loads a table into the inactive slot.
    Load {
        /// Name of the device.
        device: String,
        /// The new table.
        table: Vec<TableLine>,
        /// Whether it takes writes.
        access: Access,
    },
    /// Holds I/O back.
    Suspend {
        /// Name of the device.
        device: String,
        /// What happens to I/O in flight.
        flush: Flush,
        /// What happens to a mounted filesystem.
        freeze: Freeze,
    },
    /// Makes the inactive table live, if there is one, and lets I/O run.
    Resume {
        /// Name of the device.
        device: String,
    },
    /// Empties the inactive slot.
    Clear {
        /// Name of the device.
        device: String,
    },
    /// Removes a device that nobody has open.
    Remove {
        /// Name of the device.
        device: String,
    },
    /// Sends a message to a target.
    Message {
        /// Name of the device.
        device: String,
        /// A sector of the target that shall get it.
        #[serde(with = "sectors")]
        sector: Sectors,
        /// The text.
        text: String,
    },
    /// Removes the udev cookie of a process that is dead, once udev has done its part.
    DropCookie {
        /// The cookie.
        cookie: u32,
    },
}

impl TableStep {
    /// The device that the step changes; empty for a cookie.
    #[must_use]
    pub fn device(&self) -> &str {
        match self {
            Self::Create { device, .. }
            | Self::Load { device, .. }
            | Self::Suspend { device, .. }
            | Self::Resume { device }
            | Self::Clear { device }
            | Self::Remove { device }
            | Self::Message { device, .. } => device,
            Self::DropCookie { .. } => "",
        }
    }

    /// Refuses what libdevmapper would mangle or cut.
    pub(super) fn check(&self) -> Result<(), Error> {
        if matches!(self, Self::DropCookie { .. }) {
            return Ok(());
        }
        let refuse = |answer: String| {
            Err(Error::new(Kind::InvalidArgument, format!("change device {:?}", self.device()))
                .with_answer(answer))
        };
        // The characters that libdevmapper writes into /dev/mapper as they are.
        let plain = |c: char| c.is_ascii_alphanumeric() || "#+-.:=@_".contains(c);
        let device = self.device();
        if device.is_empty() || device.len() > NAME_MAX || !device.chars().all(plain) {
            return refuse(format!("a name has 1 to {NAME_MAX} bytes of [A-Za-z0-9#+-.:=@_]"));
        }
        let (uuid, table, text) = match self {
            Self::Create { uuid, table, .. } => (uuid.as_deref(), table.as_slice(), ""),
            Self::Load { table, .. } => (None, table.as_slice(), ""),
            Self::Message { text, .. } => (None, [].as_slice(), text.as_str()),
            _ => return Ok(()),
        };
        if uuid.is_some_and(|uuid| uuid.is_empty() || uuid.len() > UUID_MAX || !uuid.chars().all(plain)) {
            return refuse(format!("a uuid has 1 to {UUID_MAX} bytes of [A-Za-z0-9#+-.:=@_]"));
        }
        let texts = table.iter().flat_map(|line| [line.target.as_str(), line.parameters.as_str()]);
        if texts.chain([text]).any(|text| text.chars().any(char::is_control)) {
            return refuse("a control character in a table or message".to_owned());
        }
        Ok(())
    }
}

/// A change of tables that waits in a group's queue like a command.
#[derive(Clone, Debug)]
pub struct TableChange {
    /// Whose queue it waits in.
    pub scope: Scope,
    /// What is tried, in the infinitive, for error texts.
    pub tried: String,
    /// The steps; the first failure ends the job, and what the job suspended runs again with its old table.
    pub steps: Vec<TableStep>,
    /// How long the caller waits.
    pub deadline: Duration,
}

mod sectors {
    use super::{Deserialize, Deserializer, Sectors, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &Sectors, serializer: S) -> Result<S::Ok, S::Error> {
        value.get().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Sectors, D::Error> {
        u64::deserialize(deserializer).map(Sectors::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_libdevmapper_would_mangle_are_refused() {
        let step = |device: &str| TableStep::Resume { device: device.to_owned() };
        for good in ["gate1", "vg-a--b", "a.b:c=d@e_f#g+h", &"x".repeat(127)] {
            step(good).check().unwrap();
        }
        for bad in ["", "a/b", "a b", "a\nb", "ü", "a\\x20", &"x".repeat(128)] {
            assert_eq!(step(bad).check().unwrap_err().kind(), Kind::InvalidArgument, "{bad:?}");
        }
    }

    #[test]
    fn a_table_line_cannot_smuggle_a_second_one() {
        let line = TableLine {
            start: Sectors::new(0),
            length: Sectors::new(8),
            target: "linear".to_owned(),
            parameters: "8:0 0\n8 8 error".to_owned(),
        };
        let step = TableStep::Load { device: "a".to_owned(), table: vec![line], access: Access::ReadWrite };
        assert_eq!(step.check().unwrap_err().kind(), Kind::InvalidArgument);
    }
}
