//! The kernel's side of a group, read at one moment.

use crate::dm::{Dm, Info, LvmDevice, Slot, Status, Table, ThinPoolStatus};
use crate::{Error, Kind, Uuid};

/// A device of a group as the kernel has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveDevice {
    /// The device.
    pub info: Info,
    /// What it serves, by its uuid.
    pub serves: LvmDevice,
    /// The table in use.
    pub table: Table,
    /// Of a thin pool that works: its transaction id.
    pub transaction_id: Option<u64>,
    /// Of a thin pool that works: whether it holds a snapshot of its metadata.
    pub holds_metadata: bool,
}

impl LiveDevice {
    /// The device's name, as far as it is text.
    #[must_use]
    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.info.name.unmangled()).into_owned()
    }
}

/// Reads every device of group `vg`; none is opened, none can make this wait.
///
/// # Errors
///
/// As [`Dm::list`].
pub fn live_devices(dm: &Dm, vg: &Uuid) -> Result<Vec<LiveDevice>, Error> {
    let mut devices = Vec::new();
    for listed in dm.vg_devices(vg)? {
        let number = listed.device.number;
        let read = || -> Result<LiveDevice, Error> {
            let info = dm.info(number)?;
            let table = dm.table(number, Slot::Live)?;
            let mut device = LiveDevice {
                info,
                serves: listed.serves.clone(),
                table,
                transaction_id: None,
                holds_metadata: false,
            };
            if listed.serves.layer.as_deref() == Some("tpool") {
                note_pool(dm, &mut device)?;
            }
            Ok(device)
        };
        match read() {
            Ok(device) => devices.push(device),
            // It was removed meanwhile.
            Err(error) if error.kind() == Kind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(devices)
}

fn note_pool(dm: &Dm, device: &mut LiveDevice) -> Result<(), Error> {
    for line in dm.status(device.info.number)? {
        if let Status::ThinPool(ThinPoolStatus::Working(used)) = line.status {
            device.transaction_id = Some(used.transaction_id);
            device.holds_metadata = used.held_root.is_some();
        }
    }
    Ok(())
}
