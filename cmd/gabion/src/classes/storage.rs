//! Who does the work.

use std::path::{Path, PathBuf};

use anyhow::Result;
use devices::Bytes;
use devices::mount::MountTable;
use serde::Serialize;
use volumes::class::NodeLabels;
use volumes::{
    Access, CreateSnapshot, CreateVolume, FsType, Mode, Node, Publish, Repairs, Settings, SizeRange,
    SnapshotId, SnapshotState, Source, Stage, VolumeId,
};

use super::served::Client;
use super::{in_file, name_of_this_host};
use crate::cli::Place;

/// Where volumes that people mount are made ready first.
const STAGING: &str = "/run/gabion/mounts";

/// Volumes of classes, wherever they are changed.
pub(super) enum Storage {
    /// In this process.
    Own(Node),
    /// By `gabion node`.
    Served(Client),
}

/// A volume of a class, for programs.
#[derive(Clone, Debug, Serialize)]
pub(super) struct InClass {
    pub(super) id: String,
    /// Absent where the agent was asked, which does not tell it.
    pub(super) class: Option<String>,
    pub(super) size_bytes: u64,
    /// `new`, `formatting`, `block`, or the filesystem; absent as the class is.
    pub(super) content: Option<&'static str>,
    /// What its content was copied from, as `volume/ID` or `snapshot/ID`.
    pub(super) source: Option<String>,
}

/// A snapshot of a volume of a class, for programs.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Cut {
    pub(super) id: String,
    pub(super) volume: String,
    pub(super) size_bytes: u64,
    /// Seconds since 1970.
    pub(super) created: u64,
    /// `ready`, `copying`, `failed`.
    pub(super) state: &'static str,
}

impl Storage {
    /// The agent where its socket answers, else the classes of the file.
    pub(super) fn open(place: &Place) -> Result<Self> {
        if let Some(client) = Client::connect(&place.csi_endpoint)? {
            return Ok(Self::Served(client));
        }
        let (node, repairs) = Node::open(settings(place)?)?;
        tell(&repairs);
        Ok(Self::Own(node))
    }

    pub(super) fn volumes(&self) -> Result<Vec<InClass>> {
        match self {
            Self::Own(node) => Ok(node.volumes()?.iter().map(InClass::from).collect()),
            Self::Served(client) => client.volumes(),
        }
    }

    pub(super) fn volume(&self, id: &VolumeId) -> Result<Option<InClass>> {
        Ok(self.volumes()?.into_iter().find(|volume| volume.id == id.as_str()))
    }

    pub(super) fn snapshots(&self) -> Result<Vec<Cut>> {
        match self {
            Self::Own(node) => Ok(node.snapshots()?.iter().map(Cut::from).collect()),
            Self::Served(client) => client.snapshots(),
        }
    }

    pub(super) fn create(&self, new: &CreateVolume) -> Result<InClass> {
        match self {
            Self::Own(node) => Ok(InClass::from(&node.create(new)?)),
            Self::Served(client) => client.create(new),
        }
    }

    pub(super) fn grow(&self, id: &VolumeId, to: Bytes) -> Result<InClass> {
        let mounted = mounted_at(id)?;
        match self {
            Self::Own(node) => {
                let volume = node.grow(id, SizeRange::at_least(to))?;
                if let Some(path) = mounted {
                    node.expand_filesystem(id, &path)?;
                }
                Ok(InClass::from(&volume))
            }
            Self::Served(client) => client.grow(id, to, mounted.as_deref()),
        }
    }

    pub(super) fn delete(&self, id: &VolumeId) -> Result<()> {
        match self {
            Self::Own(node) => Ok(node.delete(id)?),
            Self::Served(client) => client.delete(id),
        }
    }

    pub(super) fn cut(&self, new: &CreateSnapshot) -> Result<Cut> {
        match self {
            Self::Own(node) => Ok(Cut::from(&node.create_snapshot(new)?)),
            Self::Served(client) => client.cut(new),
        }
    }

    pub(super) fn delete_snapshot(&self, id: &SnapshotId) -> Result<()> {
        match self {
            Self::Own(node) => Ok(node.delete_snapshot(id)?),
            Self::Served(client) => client.delete_snapshot(id),
        }
    }

    pub(super) fn mount(&self, id: &VolumeId, directory: &Path, fs_type: Option<FsType>) -> Result<()> {
        let staging = staging(id);
        match self {
            Self::Own(node) => {
                let mut stage = Stage::new(id.clone(), &staging, Mode::Filesystem);
                stage.fs_type = fs_type;
                node.stage(&stage)?;
                let publish = Publish::new(id.clone(), &staging, directory, Mode::Filesystem);
                node.publish(&publish.access(Access::ReadWrite))?;
                Ok(())
            }
            Self::Served(client) => client.mount(id, &staging, directory, fs_type),
        }
    }

    /// Takes it off the directory, and altogether where it is seen nowhere else.
    pub(super) fn unmount(&self, id: &VolumeId, directory: &Path) -> Result<()> {
        let staging = staging(id);
        match self {
            Self::Own(node) => node.unpublish(id, directory)?,
            Self::Served(client) => client.unpublish(id, directory)?,
        }
        let table = MountTable::read()?;
        let device = table.at(&staging).and_then(devices::mount::Mount::block_device);
        if device.is_some_and(|device| table.of_device(device).count() > 1) {
            return Ok(());
        }
        match self {
            Self::Own(node) => node.unstage(id, &staging)?,
            Self::Served(client) => client.unstage(id, &staging)?,
        }
        // Whatever else is there keeps it.
        let _ = std::fs::remove_dir(&staging);
        Ok(())
    }
}

/// What this process would open a node with, or survey.
pub(super) fn settings(place: &Place) -> Result<Settings> {
    let labels = NodeLabels::new(&name_of_this_host()?);
    Ok(Settings::new(place.owner()?, in_file(&place.config)?).labels(labels))
}

/// What is not as it should be, for whoever looks at the terminal.
pub(super) fn tell(found: &Repairs) {
    if !found.is_empty() {
        eprintln!("gabion: {found}");
    }
}

fn staging(id: &VolumeId) -> PathBuf {
    Path::new(STAGING).join(id.as_str())
}

/// Where a volume is mounted by [`Storage::mount`].
fn mounted_at(id: &VolumeId) -> Result<Option<PathBuf>> {
    let staging = staging(id);
    Ok(MountTable::read()?.at(&staging).map(|_| staging.clone()))
}

impl From<&volumes::Volume> for InClass {
    fn from(volume: &volumes::Volume) -> Self {
        let source = volume.source.as_ref().map(|source| match source {
            Source::Snapshot(id) => format!("snapshot/{id}"),
            Source::Volume(id) => format!("volume/{id}"),
        });
        Self {
            id: volume.id.to_string(),
            class: Some(volume.class.to_string()),
            size_bytes: volume.size.get(),
            content: Some(volume.content.as_word()),
            source,
        }
    }
}

impl From<&volumes::Snapshot> for Cut {
    fn from(snapshot: &volumes::Snapshot) -> Self {
        let since = snapshot.created.duration_since(std::time::SystemTime::UNIX_EPOCH);
        let state = match snapshot.state {
            SnapshotState::Ready => "ready",
            SnapshotState::Copying { .. } => "copying",
            SnapshotState::Failed(_) => "failed",
        };
        Self {
            id: snapshot.id.to_string(),
            volume: snapshot.source.to_string(),
            size_bytes: snapshot.size.get(),
            created: since.map(|since| since.as_secs()).unwrap_or_default(),
            state,
        }
    }
}
