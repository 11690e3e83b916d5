//! Mending a table from the copy that is right, only when somebody asks for it.

use super::inspect::{Condition, Damage, Inspection, inspect};
use super::medium::Medium;
use super::ours::Owner;
use super::table::Table;
use super::{Gpt, refuse_unless_ours, refused, write_backup, write_primary, write_sector_0};
use crate::{Effect, Error, Kind};

impl<M: Medium> Gpt<M> {
    /// Mends what [`inspect`] finds damaged, from the copy that is right, and says what it mended; a sound table
    /// stays as it is. Where both copies are right but differ, the first counts, as it does for the kernel.
    ///
    /// # Errors
    ///
    /// As [`Gpt::open`] for everything that cannot be mended, or is not this owner's.
    pub fn repair(mut medium: M, owner: &Owner) -> Result<(Self, Vec<Damage>), Error> {
        let tried = format!("repair the partition table of {}", medium.name());
        let found = inspect(&medium)?;
        refuse_unless_ours(&found, owner, &tried)?;
        let damages = match (found.condition(), found.table()) {
            (Condition::Sound | Condition::Grown, _) => Vec::new(),
            (Condition::Damaged(damages), Some(table)) => {
                mend(&mut medium, &found, table, damages, &tried)?;
                damages.clone()
            }
            (condition, _) => return Err(refused(condition, tried)),
        };
        Ok((Self::open(medium, owner)?, damages))
    }
}

fn mend(
    medium: &mut dyn Medium,
    found: &Inspection,
    table: &Table,
    damages: &[Damage],
    tried: &str,
) -> Result<(), Error> {
    let geometry = table.geometry;
    let array_sectors = table.header.array_bytes().div_ceil(geometry.sector);
    let backup_array = match &found.backup {
        Ok(backup) => backup.header.array,
        Err(_) => table.header.other.saturating_sub(array_sectors),
    };
    // Where there never was room for the second copy, somebody else made this table.
    if backup_array <= table.header.last_usable || table.header.other > geometry.last() {
        return Err(Error::new(Kind::Inconsistent, tried)
            .with_answer("the disk has no room for the second copy of the table")
            .with_advice("if the disk became smaller, make it as large as it was"));
    }
    for damage in damages {
        let written = match damage {
            Damage::Primary(_) => write_primary(medium, table),
            Damage::Backup(_) | Damage::Differ => write_backup(medium, table, backup_array),
            Damage::ProtectiveMbr => write_sector_0(medium, geometry),
        };
        written.map_err(|error| Error::system(tried, error).with_effect(Effect::Unknown))?;
    }
    Ok(())
}
