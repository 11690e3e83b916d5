//! Whether what is asked for can be had of what is there, or is there already.

use devices::Bytes;
use devices::filesystem::FsType;
use lvm::ops::SizeRange;

use crate::backend::Backend;
use crate::class::DeviceClass;
use crate::{ClassName, CreateVolume, Error, Kind, Snapshot, SnapshotState, Source, Volume};

/// The range with the least size of its filesystem.
pub(crate) fn with_minimum(size: SizeRange, fs: Option<FsType>, tried: &str) -> Result<SizeRange, Error> {
    if let Some(limit) = size.limit()
        && limit < size.required()
    {
        return Err(Error::new(Kind::OutOfRange, tried)
            .with_answer(format!("the limit {limit:#} is below the size required, {:#}", size.required())));
    }
    let Some(fs) = fs else { return Ok(size) };
    let least = size.required().max(fs.minimum_size());
    if let Some(limit) = size.limit().filter(|limit| *limit < least) {
        return Err(Error::new(Kind::OutOfRange, tried)
            .with_answer(format!("{fs} needs {:#}, and the limit is {limit:#}", fs.minimum_size())));
    }
    let range = SizeRange::at_least(least);
    Ok(size.limit().map_or(range, |limit| range.up_to(limit)))
}

/// A copy is not smaller than what it is copied from.
pub(crate) fn large_enough(size: SizeRange, source: Bytes, tried: &str) -> Result<(), Error> {
    match size.limit() {
        Some(limit) if limit < source => Err(Error::new(Kind::OutOfRange, tried)
            .with_answer(format!("its source has {source:#}, and the limit is {limit:#}"))),
        _ if size.required() < source => Err(Error::new(Kind::OutOfRange, tried)
            .with_answer(format!("its source has {source:#}, and {:#} were asked for", size.required()))),
        _ => Ok(()),
    }
}

pub(crate) fn ready_to_use(snapshot: &Snapshot, tried: &str) -> Result<(), Error> {
    match &snapshot.state {
        SnapshotState::Ready => Ok(()),
        SnapshotState::Copying { done, total } => Err(Error::new(Kind::Unavailable, tried)
            .with_answer(format!("snapshot {} is being copied: {done} of {total} are done", snapshot.id))
            .with_advice("try again when it is ready")),
        SnapshotState::Failed(why) => Err(Error::new(Kind::FailedPrecondition, tried)
            .with_answer(format!("snapshot {} has failed: {why}", snapshot.id))
            .with_advice("delete it, and cut another one")),
    }
}

pub(crate) fn same_pool(wanted: &dyn Backend, source: &dyn Backend, tried: &str) -> Result<(), Error> {
    let (wanted, source) = (&wanted.class().name, &source.class().name);
    if wanted == source {
        return Ok(());
    }
    Err(Error::new(Kind::FailedPrecondition, tried)
        .with_answer(format!("its source is in class {source}, and it was asked for in class {wanted}"))
        .with_advice("make it in the class of its source"))
}

/// Whether reading and writing of a class's volumes can be limited.
pub(crate) fn can_limit(class: &DeviceClass, tried: &str) -> Result<(), Error> {
    if class.abilities().limits {
        return Ok(());
    }
    Err(Error::new(Kind::InvalidArgument, tried)
        .with_answer(format!(
            "reading and writing cannot be limited in class {}: the kernel limits whole devices",
            class.name
        ))
        .with_advice("leave the limits out, or choose a class of logical volumes"))
}

/// The volume that is there, if it is what is asked for.
pub(crate) fn same_or_exists(
    there: Volume,
    new: &CreateVolume,
    class: &ClassName,
    tried: String,
) -> Result<Volume, Error> {
    let size = &new.size;
    let differs = if there.class != *class {
        format!("it is in class {}", there.class)
    } else if there.size < size.required() || size.limit().is_some_and(|limit| there.size > limit) {
        format!("it has {:#}", there.size)
    } else if there.source != new.source {
        match &there.source {
            None => "it was made blank".to_owned(),
            Some(Source::Snapshot(id)) => format!("it was copied from snapshot {id}"),
            Some(Source::Volume(id)) => format!("it was copied from volume {id}"),
        }
    } else if let (Some(wanted), Some(has)) = (new.fs_type, there.fs_type)
        && wanted != has
    {
        format!("it is for {has}")
    } else {
        return Ok(there);
    };
    Err(Error::new(Kind::Exists, tried)
        .with_answer(format!("a volume of that id exists: {differs}"))
        .with_advice("choose another id, or delete the other volume first"))
}
