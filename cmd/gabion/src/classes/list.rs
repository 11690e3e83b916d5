//! `gabion classes`, `gabion snapshots`, and the volumes of classes.

use anyhow::Result;
use devices::Bytes;
use serde::Serialize;
use volumes::class::{DeviceClass, Pool, Sizes};

use super::in_file;
use super::seen::Seen;
use super::storage::{Cut, InClass};
use crate::cli::Place;
use crate::output::Output;
use crate::table::{Align, NONE, Table};

#[derive(Serialize)]
struct Classes {
    classes: Vec<Class>,
}

/// A class, for programs.
#[derive(Serialize)]
struct Class {
    name: String,
    default: bool,
    /// `thin`, `lvm`, `partition`, `directory`.
    pool: &'static str,
    group: Option<String>,
    /// Whether a volume can be written beyond its size: `enforced`, `promised`.
    sizes: &'static str,
    /// What can still be made, in all and in one piece; absent while the class cannot be used.
    available_bytes: Option<u64>,
    largest_bytes: Option<u64>,
    /// Why it cannot be used now.
    problem: Option<String>,
}

#[derive(Serialize)]
struct Volumes {
    volumes: Vec<InClass>,
}

#[derive(Serialize)]
struct Snapshots {
    snapshots: Vec<Cut>,
}

/// Shows every class and its room on this node.
pub(crate) fn show_classes(place: &Place, output: &mut Output<'_>) -> Result<()> {
    let classes = in_file(&place.config)?;
    let seen = Seen::look(place)?;
    let classes = classes.iter().map(|class| shown(class, &seen)).collect();
    output.show(&Classes { classes }, |all, units| {
        let columns = [
            ("CLASS", Align::Left),
            ("DEFAULT", Align::Left),
            ("POOL", Align::Left),
            ("GROUP", Align::Left),
            ("AVAILABLE", Align::Right),
            ("LARGEST", Align::Right),
            ("PROBLEM", Align::Left),
        ];
        let mut table = Table::new(&columns);
        let size = |bytes: Option<u64>| bytes.map_or(NONE.to_owned(), |bytes| units.size(Bytes::new(bytes)));
        for class in &all.classes {
            table.row([
                class.name.clone(),
                if class.default { "yes" } else { NONE }.to_owned(),
                match class.sizes {
                    "promised" => format!("{}, sizes not enforced", class.pool),
                    _ => class.pool.to_owned(),
                },
                class.group.clone().unwrap_or_default(),
                size(class.available_bytes),
                size(class.largest_bytes),
                class.problem.clone().unwrap_or_default(),
            ]);
        }
        table.render()
    })
}

fn shown(class: &DeviceClass, seen: &Seen) -> Class {
    let room = seen.capacity(&class.name);
    let pool = match &class.spec.pool {
        Pool::Lvm(_) => "lvm",
        Pool::Thin(_) => "thin",
        Pool::Partition(_) => "partition",
        Pool::Directory(_) => "directory",
    };
    Class {
        name: class.name.to_string(),
        default: class.spec.default,
        pool,
        group: class.volume_group().map(|group| group.to_string()),
        sizes: match class.sizes() {
            Sizes::Enforced => "enforced",
            Sizes::Promised => "promised",
        },
        available_bytes: room.as_ref().ok().map(|room| room.available.get()),
        largest_bytes: room.as_ref().ok().map(|room| room.largest.get()),
        problem: room.err().map(|error| error.to_string()),
    }
}

/// Shows the volumes of classes.
pub(crate) fn show_volumes(place: &Place, output: &mut Output<'_>) -> Result<()> {
    let volumes = Seen::look(place)?.volumes()?;
    output.show(&Volumes { volumes }, |all, units| {
        let columns = [
            ("VOLUME", Align::Left),
            ("CLASS", Align::Left),
            ("SIZE", Align::Right),
            ("CONTENT", Align::Left),
            ("SOURCE", Align::Left),
        ];
        let mut table = Table::new(&columns);
        for volume in &all.volumes {
            table.row([
                volume.id.clone(),
                volume.class.clone().unwrap_or_default(),
                units.size(Bytes::new(volume.size_bytes)),
                volume.content.unwrap_or_default().to_owned(),
                volume.source.clone().unwrap_or_default(),
            ]);
        }
        table.render()
    })
}

/// Shows the snapshots of volumes of classes.
pub(crate) fn show_snapshots(place: &Place, output: &mut Output<'_>) -> Result<()> {
    let snapshots = Seen::look(place)?.snapshots()?;
    output.show(&Snapshots { snapshots }, |all, units| {
        let columns = [
            ("SNAPSHOT", Align::Left),
            ("VOLUME", Align::Left),
            ("SIZE", Align::Right),
            ("STATE", Align::Left),
        ];
        let mut table = Table::new(&columns);
        for cut in &all.snapshots {
            table.row([
                cut.id.clone(),
                cut.volume.clone(),
                units.size(Bytes::new(cut.size_bytes)),
                cut.state.to_owned(),
            ]);
        }
        table.render()
    })
}
