//! Volumes of classes as they are, for verbs that only tell.

use anyhow::Result;
use volumes::{Capacity, ClassName, Survey};

use super::served::Client;
use super::storage::{Cut, InClass, settings, tell};
use crate::cli::Place;

/// Whoever knows.
pub(super) enum Seen {
    /// The disks themselves: nothing on them is changed, and nothing is activated.
    Disks(Survey),
    /// `gabion node`.
    Served(Client),
}

impl Seen {
    /// The agent where its socket answers, else the disks of the classes of the file.
    pub(super) fn look(place: &Place) -> Result<Self> {
        if let Some(client) = Client::connect(&place.csi_endpoint)? {
            return Ok(Self::Served(client));
        }
        let (survey, told) = Survey::take(settings(place)?)?;
        tell(&told);
        Ok(Self::Disks(survey))
    }

    pub(super) fn volumes(&self) -> Result<Vec<InClass>> {
        match self {
            Self::Disks(survey) => Ok(survey.volumes()?.iter().map(InClass::from).collect()),
            Self::Served(client) => client.volumes(),
        }
    }

    pub(super) fn snapshots(&self) -> Result<Vec<Cut>> {
        match self {
            Self::Disks(survey) => Ok(survey.snapshots()?.iter().map(Cut::from).collect()),
            Self::Served(client) => client.snapshots(),
        }
    }

    pub(super) fn capacity(&self, class: &ClassName) -> Result<Capacity> {
        match self {
            Self::Disks(survey) => Ok(survey.capacity(Some(class))?),
            Self::Served(client) => client.capacity(class),
        }
    }
}
