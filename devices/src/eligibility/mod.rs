//! Whether a device may be used, and if not, exactly why.
//!
//! ```no_run
//! use devices::discovery::Discovery;
//! use devices::eligibility::{Assessor, Policy};
//!
//! let inventory = Discovery::host().inventory()?;
//! for (disk, eligibility) in Assessor::new(Policy::default()).assess_all(&inventory) {
//!     println!("{}: {:?} {}", disk.name, eligibility.verdict(), eligibility);
//! }
//! # Ok::<(), devices::Error>(())
//! ```
//!
//! A device is opened only when nothing else speaks against it, and never when device-mapper has suspended it. What is
//! found here can be out of date a moment later: who writes takes a [`Claim`](crate::Claim), which looks again.

mod reason;
mod rules;
#[cfg(test)]
mod tests;
mod whole;

use std::fmt;
use std::time::Duration;

pub use reason::{Bar, Reason};

use crate::Bytes;
use crate::discovery::{Disk, Inventory};
use crate::probe::{Probed, Prober, Signature, Usage};
use whole::Wholes;
pub(crate) use whole::against as against_by_whole;

/// What a user wants of devices beyond what is certain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// Smaller devices are not used; 1 GiB by default.
    pub minimum_size: Bytes,
    /// How long a device may take to be looked at; five seconds by default.
    pub patience: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self { minimum_size: Bytes::gib(1), patience: Duration::from_secs(5) }
    }
}

impl Policy {
    /// The same with another minimum.
    #[must_use]
    pub fn with_minimum_size(mut self, size: Bytes) -> Self {
        self.minimum_size = size;
        self
    }

    /// The same with another time limit.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }
}

/// How a device was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Chosen {
    /// By a property such as its size: anything that fits.
    ByProperty,
    /// By its path, or by a name pattern for its kind.
    ByName,
}

/// The verdict in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It may be used.
    Eligible,
    /// It may be used where it is named itself.
    OnlyByName,
    /// It may not be used.
    NotEligible,
}

impl Verdict {
    /// A lasting word: `yes`, `by-name`, `no`.
    #[must_use]
    pub const fn as_word(self) -> &'static str {
        match self {
            Self::Eligible => "yes",
            Self::OnlyByName => "by-name",
            Self::NotEligible => "no",
        }
    }
}

/// Everything that speaks against a device; nothing, when it may be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Eligibility {
    reasons: Vec<Reason>,
}

impl Eligibility {
    /// Everything that speaks against it.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// The verdict.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.reasons.is_empty() {
            Verdict::Eligible
        } else if self.allows(Chosen::ByName) {
            Verdict::OnlyByName
        } else {
            Verdict::NotEligible
        }
    }

    /// Whether a device that was chosen in this way may be used.
    #[must_use]
    pub fn allows(&self, chosen: Chosen) -> bool {
        match chosen {
            Chosen::ByProperty => self.reasons.is_empty(),
            Chosen::ByName => self.reasons.iter().all(|reason| reason.bar() == Bar::UnlessNamed),
        }
    }

    /// Names the group of a PV, which only LVM's metadata tell while none of the group's volumes is active.
    pub fn name_group(&mut self, name: &str) {
        for reason in &mut self.reasons {
            if let Reason::LvmPv { group: group @ None } = reason {
                *group = Some(name.to_owned());
            }
        }
    }

    /// What speaks against a device that was chosen in this way.
    pub fn bars(&self, chosen: Chosen) -> impl Iterator<Item = &Reason> {
        self.reasons.iter().filter(move |reason| chosen == Chosen::ByProperty || reason.bar() == Bar::Always)
    }
}

/// All reasons as clauses, with semicolons between them; empty for an eligible device.
impl fmt::Display for Eligibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, reason) in self.reasons.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{reason}")?;
        }
        Ok(())
    }
}

/// Judges devices by a policy.
#[derive(Clone, Debug, Default)]
pub struct Assessor {
    policy: Policy,
}

impl Assessor {
    /// Judges by this policy.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self { policy }
    }

    /// The verdict on one device of the inventory. Takes at most the policy's patience.
    #[must_use]
    pub fn assess(&self, inventory: &Inventory, disk: &Disk) -> Eligibility {
        let mut all = self.judge(inventory, std::iter::once(disk));
        all.pop().map(|(_, eligibility)| eligibility).unwrap_or_default()
    }

    /// The verdict on every device, all looked at side by side: one that does not answer delays no other.
    #[must_use]
    pub fn assess_all<'a>(&self, inventory: &'a Inventory) -> Vec<(&'a Disk, Eligibility)> {
        self.judge(inventory, inventory.iter())
    }

    fn judge<'a>(
        &self,
        inventory: &'a Inventory,
        disks: impl Iterator<Item = &'a Disk>,
    ) -> Vec<(&'a Disk, Eligibility)> {
        let prober = Prober::new(self.policy.patience);
        let mut wholes = Wholes::new(&prober, inventory);
        let started: Vec<_> = disks
            .map(|disk| {
                let eligibility = self.without_probing(inventory, disk);
                let pending = eligibility.allows(Chosen::ByName).then(|| {
                    wholes.start(disk);
                    prober.start(disk)
                });
                (disk, eligibility, pending)
            })
            .collect();
        let wholes = wholes.wait();
        started
            .into_iter()
            .map(|(disk, mut eligibility, pending)| {
                if let Some(pending) = pending {
                    eligibility.reasons.extend(wholes.against(disk));
                    add_content(&mut eligibility.reasons, pending.wait());
                }
                (disk, eligibility)
            })
            .collect()
    }

    /// What speaks against a device without opening it: sysfs, udev's notes, mounts and swap alone.
    ///
    /// That nothing does is no leave to use it, for what is on it has not been looked at.
    #[must_use]
    pub fn without_probing(&self, inventory: &Inventory, disk: &Disk) -> Eligibility {
        Eligibility { reasons: rules::seen(inventory, disk, &self.policy) }
    }
}

/// Adds what the probe found to what was seen, each fact once.
pub(crate) fn add_content(reasons: &mut Vec<Reason>, probed: Result<Probed, Reason>) {
    match probed {
        Ok(Probed::Blank) => {}
        Ok(Probed::Found(signatures)) => {
            for reason in signatures.iter().map(of_signature) {
                let known = reasons.iter().any(|known| known.as_word() == reason.as_word())
                    && !matches!(reason, Reason::Signature { .. });
                if !known && !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
        }
        Ok(Probed::Ambiguous(signatures)) => {
            reasons
                .push(Reason::Ambiguous { found: signatures.into_iter().map(|found| found.kind).collect() });
        }
        Err(reason) => reasons.push(reason),
    }
}

fn of_signature(signature: &Signature) -> Reason {
    match (signature.usage, signature.kind.as_str()) {
        (Usage::PartitionTable, kind) => {
            Reason::PartitionTable { kind: Some(kind.to_owned()), partitions: Vec::new() }
        }
        (_, "LVM1_member" | "LVM2_member") => Reason::LvmPv { group: None },
        (_, "bcache") => Reason::Bcache { device: None },
        (_, "mpath_member") => Reason::MultipathLeg { device: None },
        (Usage::Raid, kind) if kind.ends_with("raid_member") => {
            Reason::RaidMember { kind: kind.to_owned(), array: None }
        }
        (_, kind) => Reason::Signature { kind: kind.to_owned(), label: signature.label.clone() },
    }
}
