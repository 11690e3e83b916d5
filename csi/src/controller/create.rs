//! CreateVolume.

use devices::Bytes;
use tonic::Status;
use volumes::{CreateVolume, Error, FsType, Kind, SizeRange, Source, VolumeId};

use super::{ControllerService, fits};
use crate::Control;
use crate::check::{self, Use, every_use, mutable_parameters, text, volume_parameters};
use crate::deadline::Deadline;
use crate::proto::volume_content_source::{SnapshotSource, Type, VolumeSource};
use crate::proto::{CreateVolumeRequest, CreateVolumeResponse, VolumeContentSource};
use crate::status::{invalid, of, of_making};

/// The size of a volume whose caller names none, and gives no source.
const USUAL: Bytes = Bytes::gib(1);

impl<C: Control> ControllerService<C> {
    pub(super) async fn create(
        &self,
        asked: CreateVolumeRequest,
        deadline: Deadline,
    ) -> Result<CreateVolumeResponse, Status> {
        let name = text("name", &asked.name)?;
        let id = VolumeId::for_name(name).map_err(|error| of(&error))?;
        let uses = every_use("volume_capabilities", &asked.volume_capabilities)?;
        let range =
            asked.capacity_range.as_ref().map(|range| check::size("capacity_range", range)).transpose()?;
        let parameters = volume_parameters("parameters", &asked.parameters)?;
        let changeable = mutable_parameters("mutable_parameters", &asked.mutable_parameters)?;
        let source = asked.volume_content_source.as_ref().map(source).transpose()?;
        self.place.must_take("accessibility_requirements", asked.accessibility_requirements.as_ref())?;
        let (class, abilities) = self.class(parameters.class.as_ref())?;
        fits(&class, abilities, &uses)?;
        let size = self.size(range, source.as_ref()).await?;
        let mut new = CreateVolume::new(id, size).class(class);
        new.fs_type = fs_type(&uses).or(parameters.fs_type);
        new.limits = changeable.over(parameters.limits);
        new.source = source;
        let refused = if new.source.is_some() { of_making } else { of };
        let made = self.make(new, deadline).await.map_err(|error| refused(&error))?;
        Ok(CreateVolumeResponse { volume: Some(self.told(&made)) })
    }

    /// Makes a volume. Where its source is a snapshot that is still being copied, it waits for that as long as the caller
    /// does, and the driver serves.
    async fn make(&self, new: CreateVolume, deadline: Deadline) -> Result<volumes::Volume, Error> {
        loop {
            let refused = match (self.control.create(new.clone()).await, &new.source) {
                (Err(error), Some(Source::Snapshot(id))) if error.kind() == Kind::Unavailable => {
                    (error, id.clone())
                }
                (ended, _) => return ended,
            };
            let (error, snapshot) = refused;
            let copied = tokio::select! {
                copied = self.control.copied(snapshot) => copied,
                () = deadline.reached() => false,
                () = self.ending.begun() => false,
            };
            if !copied {
                return Err(error);
            }
        }
    }

    /// What is asked for; without a lower bound the size of the source, else the usual one.
    async fn size(&self, range: Option<SizeRange>, source: Option<&Source>) -> Result<SizeRange, Status> {
        if let Some(range) = range.filter(|range| range.required() > Bytes::ZERO) {
            return Ok(range);
        }
        let limit = range.and_then(|range| range.limit());
        let least = match source {
            None => limit.map_or(USUAL, |limit| limit.min(USUAL)),
            Some(Source::Volume(id)) => {
                self.control.volume(id.clone()).await.map_err(|error| of(&error))?.size
            }
            Some(Source::Snapshot(id)) => {
                self.control.snapshot(id.clone()).await.map_err(|error| of(&error))?.size
            }
        };
        let range = SizeRange::at_least(least);
        Ok(limit.map_or(range, |limit| range.up_to(limit)))
    }
}

fn fs_type(uses: &[Use]) -> Option<FsType> {
    uses.iter().find_map(|wanted| wanted.fs_type)
}

/// What a volume is to be copied from. One that was never given out does not exist.
fn source(given: &VolumeContentSource) -> Result<Source, Status> {
    let missing = |field: &str| Status::not_found(format!("{field}: there is no such source"));
    match &given.r#type {
        None => Err(invalid("volume_content_source", "it says nothing")),
        Some(Type::Snapshot(SnapshotSource { snapshot_id })) => {
            let field = "volume_content_source.snapshot.snapshot_id";
            check::id(field, snapshot_id)?.map(Source::Snapshot).ok_or_else(|| missing(field))
        }
        Some(Type::Volume(VolumeSource { volume_id })) => {
            let field = "volume_content_source.volume.volume_id";
            check::id(field, volume_id)?.map(Source::Volume).ok_or_else(|| missing(field))
        }
    }
}

/// A source as callers get it.
pub(super) fn told_source(source: &Source) -> VolumeContentSource {
    let of = match source {
        Source::Snapshot(id) => Type::Snapshot(SnapshotSource { snapshot_id: id.to_string() }),
        Source::Volume(id) => Type::Volume(VolumeSource { volume_id: id.to_string() }),
    };
    VolumeContentSource { r#type: Some(of) }
}
