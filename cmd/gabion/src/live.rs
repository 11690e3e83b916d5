//! What the kernel runs at this moment, by volume.

use std::collections::HashMap;

use lvm::dm::{Activity, Dm, Info, LvmDevice, Status};
use lvm::metadata::{Lv, Vg};
use lvm::{Error, Kind, Uuid};

/// One device of device-mapper that LVM made.
#[derive(Clone, Debug)]
pub(crate) struct LiveDevice {
    /// What it does for the volume (`tpool`, `real`, `cow`, …); absent for the volume itself.
    pub(crate) layer: Option<String>,
    /// Whether requests wait until somebody resumes it.
    pub(crate) suspended: bool,
    /// How often it is open; holders above it count.
    pub(crate) open_count: u32,
    /// How each line of its table fares.
    pub(crate) status: Vec<Status>,
}

/// Whether the kernel could be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// It answered.
    Present,
    /// There is no device-mapper; nothing can be active.
    #[default]
    Absent,
    /// It may not be asked, and why.
    Silent(String),
}

/// The devices of all volumes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live {
    pub(crate) kernel: Kernel,
    devices: HashMap<(Uuid, Uuid), Vec<LiveDevice>>,
}

impl Live {
    /// Asks the kernel about every device of LVM. A kernel that cannot be asked is no error: what it would have told
    /// is then unknown.
    pub(crate) fn read() -> Result<Self, Error> {
        let dm = match Dm::open() {
            Ok(dm) => dm,
            Err(error) if error.kind() == Kind::Unsupported => return Ok(Self::default()),
            Err(error) => return Ok(Self { kernel: Kernel::Silent(error.to_string()), ..Self::default() }),
        };
        let mut live = Self { kernel: Kernel::Present, ..Self::default() };
        for listed in dm.list()? {
            let Some(serves) = listed.uuid.as_ref().and_then(lvm::dm::DmUuid::lvm) else { continue };
            let asked = dm.info(listed.number).and_then(|info| Ok((info, dm.status(listed.number)?)));
            match asked {
                Ok((info, lines)) => {
                    live.add(serves, &info, lines.into_iter().map(|line| line.status).collect());
                }
                // It has just gone.
                Err(error) if error.kind() == Kind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(live)
    }

    fn add(&mut self, serves: LvmDevice, info: &Info, status: Vec<Status>) {
        self.insert(
            serves.vg,
            serves.lv,
            LiveDevice {
                layer: serves.layer,
                suspended: info.activity != Activity::Running,
                open_count: info.open_count,
                status,
            },
        );
    }

    /// Adds a device of a volume.
    pub(crate) fn insert(&mut self, vg: Uuid, lv: Uuid, device: LiveDevice) {
        self.devices.entry((vg, lv)).or_default().push(device);
    }

    /// All devices of a volume, its layers among them; none when it is not active.
    pub(crate) fn of(&self, vg: &Vg, lv: &Lv) -> &[LiveDevice] {
        self.devices.get(&(vg.uuid, lv.uuid)).map_or(&[], Vec::as_slice)
    }

    /// Whether the volume is active; `None` when the kernel could not be asked.
    pub(crate) fn is_active(&self, vg: &Vg, lv: &Lv) -> Option<bool> {
        match self.kernel {
            Kernel::Silent(_) => None,
            Kernel::Present | Kernel::Absent => Some(!self.of(vg, lv).is_empty()),
        }
    }

    /// How often the volume itself is open; `None` when it is not active.
    pub(crate) fn open_count(&self, vg: &Vg, lv: &Lv) -> Option<u32> {
        self.of(vg, lv).iter().find(|device| device.layer.is_none()).map(|device| device.open_count)
    }

    /// What the first line of the wanted kind says on any device of the volume.
    pub(crate) fn status<'a, T>(
        &'a self,
        vg: &Vg,
        lv: &Lv,
        wanted: impl Fn(&'a Status) -> Option<T>,
    ) -> Option<T> {
        self.of(vg, lv).iter().flat_map(|device| &device.status).find_map(wanted)
    }
}
