//! Dividing the devices of a host among classes.

use std::path::PathBuf;

use super::Selector;
use crate::discovery::{Disk, Inventory};
use crate::eligibility::Chosen;

/// A class and what it wants.
#[derive(Clone, Copy, Debug)]
pub struct Class<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it wants.
    pub selector: &'a Selector,
}

/// A device that a class selects.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Selected<'a> {
    /// The device.
    pub disk: &'a Disk,
    /// How it was selected, which decides what lifts which reason against it.
    pub chosen: Chosen,
}

/// A device that several classes select: none of them gets it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Contested<'a> {
    /// The device that this class selects.
    pub disk: &'a Disk,
    /// The other classes, and the device that each of them selects: the same one, or one that shares storage with it.
    pub with: Vec<(&'a str, &'a Disk)>,
}

/// What one class gets.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClassDisks<'a> {
    /// The class's name.
    pub name: &'a str,
    /// The devices that are the class's alone. Whether each may be used is the eligibility's to say.
    pub disks: Vec<Selected<'a>>,
    /// The devices that it does not get.
    pub contested: Vec<Contested<'a>>,
    /// The paths that must exist and lead to no device.
    pub missing: Vec<PathBuf>,
}

/// Divides the devices of an inventory among classes.
///
/// What two classes select is compared as devices, not as text: a link, a name of device-mapper's, another path to the
/// same disk, a partition and its disk, and an array and its legs share storage. Two partitions of one disk do not.
/// Which class comes first does not matter.
#[must_use]
pub fn divide<'a>(classes: &[Class<'a>], inventory: &'a Inventory) -> Vec<ClassDisks<'a>> {
    let selected: Vec<Vec<Selected<'a>>> =
        classes.iter().map(|class| select(class.selector, inventory)).collect();
    classes
        .iter()
        .zip(&selected)
        .enumerate()
        .map(|(at, (class, disks))| {
            let others = || {
                let all = classes.iter().zip(&selected).enumerate();
                all.filter(move |(other, _)| *other != at).map(|(_, pair)| pair)
            };
            let mut result = ClassDisks {
                name: class.name,
                disks: Vec::new(),
                contested: Vec::new(),
                missing: Vec::new(),
            };
            for wanted in disks {
                let with: Vec<_> = others()
                    .flat_map(|(class, disks)| disks.iter().map(|other| (class.name, other.disk)))
                    .filter(|(_, other)| inventory.overlap(wanted.disk, other))
                    .collect();
                if with.is_empty() {
                    result.disks.push(wanted.clone());
                } else {
                    result.contested.push(Contested { disk: wanted.disk, with });
                }
            }
            let leads_nowhere = |path: &&PathBuf| inventory.at(path).is_err();
            result.missing = class.selector.paths().iter().filter(leads_nowhere).cloned().collect();
            result
        })
        .collect()
}

fn select<'a>(selector: &Selector, inventory: &'a Inventory) -> Vec<Selected<'a>> {
    inventory
        .iter()
        .filter_map(|disk| Some(Selected { disk, chosen: selector.selects(inventory, disk)? }))
        .collect()
}
