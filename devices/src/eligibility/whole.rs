//! What the disk of a partition says against it: a RAID member's label across the whole disk, or the partition's type in
//! the table on it, which udevd has noted only where it runs.

use std::collections::BTreeMap;

use super::{Reason, of_signature, rules};
use crate::discovery::{Disk, DiskType, Inventory, Partition};
use crate::probe::whole::{Whole, look};
use crate::probe::{Pending, Probed, Prober, Usage};

/// Disks that are being looked at on behalf of their partitions, each once.
pub(super) struct Wholes<'a> {
    prober: &'a Prober,
    inventory: &'a Inventory,
    pending: BTreeMap<&'a str, Pending<Whole>>,
}

/// What was found on them.
pub(super) struct Found(BTreeMap<String, Result<Whole, Reason>>);

impl<'a> Wholes<'a> {
    pub(super) fn new(prober: &'a Prober, inventory: &'a Inventory) -> Self {
        Self { prober, inventory, pending: BTreeMap::new() }
    }

    /// Begins to look at the disk of a partition; does nothing for another device.
    pub(super) fn start(&mut self, disk: &Disk) {
        let DiskType::Partition(partition) = &disk.kind else { return };
        if let Some(whole) = self.inventory.by_name(&partition.disk) {
            self.pending.entry(&whole.name).or_insert_with(|| self.prober.look(whole, look));
        }
    }

    pub(super) fn wait(self) -> Found {
        let found = self.pending.into_iter().map(|(name, pending)| (name.to_owned(), pending.wait()));
        Found(found.collect())
    }
}

impl Found {
    /// What its disk says against a partition; nothing for another device.
    pub(super) fn against(&self, disk: &Disk) -> Vec<Reason> {
        let DiskType::Partition(partition) = &disk.kind else { return Vec::new() };
        match self.0.get(&partition.disk) {
            Some(Ok(whole)) => against(partition, whole),
            Some(Err(reason)) => vec![unknown(partition, reason.to_string())],
            None => vec![unknown(partition, "it has gone".to_owned())],
        }
    }
}

/// What a disk says against one of its partitions.
pub(crate) fn against(partition: &Partition, whole: &Whole) -> Vec<Reason> {
    let disk = || partition.disk.clone();
    let mut reasons = match whole.entries.iter().find(|entry| entry.number == partition.number) {
        Some(entry) => rules::of_an_entry(&entry.type_code, &entry.label),
        None => vec![unknown(partition, "the partition table on it does not name the partition".to_owned())],
    };
    match &whole.probed {
        Probed::Blank => {}
        Probed::Found(signatures) => {
            if let Some(found) = signatures.iter().find(|found| found.usage != Usage::PartitionTable) {
                reasons.push(Reason::DiskInUse { disk: disk(), by: of_signature(found).to_string() });
            }
        }
        Probed::Ambiguous(signatures) => {
            let found = signatures.iter().map(|found| found.kind.clone()).collect();
            reasons.push(Reason::DiskInUse { disk: disk(), by: Reason::Ambiguous { found }.to_string() });
        }
    }
    reasons
}

fn unknown(partition: &Partition, why: String) -> Reason {
    Reason::DiskUnknown { disk: partition.disk.clone(), why }
}
