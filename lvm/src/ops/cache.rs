//! dm-cache and dm-writecache on a volume.

use devices::Bytes;

use super::seen::{Need, Seen};
use super::{Change, Group, Volume};
use crate::command::{AttachCache, AttachWriteCache, DetachCache, LvChange};
use crate::metadata::{self, Lv, SegmentKind};
use crate::{Error, Kind, LvName};

/// How dm-cache treats writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CacheMode {
    /// Written to both before they end: losing the fast disk loses nothing.
    #[default]
    WriteThrough,
    /// Written to the fast disk first: losing it loses what was not yet copied.
    WriteBack,
    /// The cache is not used: for emptying it.
    PassThrough,
}

/// What becomes of the fast volume when its cache is taken off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AfterDetach {
    /// It is a volume again.
    #[default]
    Keep,
    /// It is removed.
    Remove,
}

impl Group {
    /// Puts a fast volume in front of a slow one as its dm-cache; its content is lost. A volume with a dm-cache only
    /// gets the mode.
    ///
    /// `chunk` is a multiple of 32 KiB up to 1 GiB; LVM chooses one if none is given.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] for a volume that has another kind of cache, is a snapshot's origin, or is itself
    /// the fast one; [`Kind::InUse`] for a fast volume that is open; [`Kind::NotFound`], [`Kind::Unsupported`],
    /// [`Kind::MissingPv`], [`Kind::Foreign`], [`Kind::Busy`], and what LVM itself says.
    pub fn attach_cache(
        &self,
        slow: &LvName,
        fast: &LvName,
        mode: CacheMode,
        chunk: Option<Bytes>,
    ) -> Result<Change<Volume>, Error> {
        let tried = format!("cache volume {} on {fast}", self.calls(slow));
        self.needs_kernel(&tried)?;
        let _guard = self.guard(slow, &tried)?;
        let seen = Seen::of(&self.lvm, self.uuid, Need::Complete, &tried)?;
        let lv = seen.finished_lv(&self.lvm, slow, &tried)?;
        if let Some(SegmentKind::Cache(cache)) = lv.kind() {
            if is_mode(cache.settings.mode.as_ref(), mode) {
                return self.lvm.already(&seen, &tried, Volume::of(seen.vg(), lv));
            }
            self.run(&seen, &tried, &(LvChange::CacheMode(mode), seen.target(slow)))?;
            return self.volume_after(slow, &tried).map(Change::Made);
        }
        self.can_cache(&seen, lv, fast, &tried)?;
        let chunk = chunk.map(|chunk| super::size::check(chunk, &tried)).transpose()?;
        let command = AttachCache { slow: seen.target(slow), fast, mode, chunk };
        self.run(&seen, &tried, &command)?;
        self.volume_after(slow, &tried).map(Change::Made)
    }

    /// Puts a fast volume in front of a slow one as its dm-writecache; its content is lost.
    ///
    /// # Errors
    ///
    /// As [`Group::attach_cache`].
    pub fn attach_writecache(&self, slow: &LvName, fast: &LvName) -> Result<Change<Volume>, Error> {
        let tried = format!("write-cache volume {} on {fast}", self.calls(slow));
        self.needs_kernel(&tried)?;
        let _guard = self.guard(slow, &tried)?;
        let seen = Seen::of(&self.lvm, self.uuid, Need::Complete, &tried)?;
        let lv = seen.finished_lv(&self.lvm, slow, &tried)?;
        if let Some(SegmentKind::Writecache(_)) = lv.kind() {
            return self.lvm.already(&seen, &tried, Volume::of(seen.vg(), lv));
        }
        self.can_cache(&seen, lv, fast, &tried)?;
        self.run(&seen, &tried, &AttachWriteCache { slow: seen.target(slow), fast })?;
        self.volume_after(slow, &tried).map(Change::Made)
    }

    /// Writes back what is dirty and takes the cache off a volume; one without a cache stays as it is. Takes as long
    /// as writing back does. A cache whose disk is lost is never forced off, since that may lose data.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`], [`Kind::MissingPv`], [`Kind::Unsupported`], [`Kind::Foreign`], [`Kind::Busy`], and what
    /// LVM itself says.
    pub fn detach_cache(&self, slow: &LvName, after: AfterDetach) -> Result<Change<Volume>, Error> {
        let tried = format!("take the cache off volume {}", self.calls(slow));
        self.needs_kernel(&tried)?;
        let _guard = self.guard(slow, &tried)?;
        let seen = Seen::of(&self.lvm, self.uuid, Need::Complete, &tried)?;
        let lv = seen.finished_lv(&self.lvm, slow, &tried)?;
        if !matches!(lv.kind(), Some(SegmentKind::Cache(_) | SegmentKind::Writecache(_))) {
            return self.lvm.already(&seen, &tried, Volume::of(seen.vg(), lv));
        }
        self.run(&seen, &tried, &DetachCache { slow: seen.target(slow), after })?;
        self.volume_after(slow, &tried).map(Change::Made)
    }

    fn can_cache(&self, seen: &Seen, slow: &Lv, fast: &LvName, tried: &str) -> Result<(), Error> {
        let refuse = |kind, answer: String| Err(Error::new(kind, tried).with_answer(answer));
        if matches!(slow.kind(), Some(SegmentKind::Cache(_) | SegmentKind::Writecache(_))) {
            return refuse(Kind::InvalidArgument, "it has another cache already".to_owned());
        }
        let fast = seen.finished_lv(&self.lvm, fast, tried)?;
        if fast.name == slow.name {
            return refuse(Kind::InvalidArgument, "a volume cannot cache itself".to_owned());
        }
        for lv in [slow, fast] {
            if lv.as_thin().is_some() || seen.vg().snapshot_with_store(&lv.name).is_some() {
                let answer = format!("volume {} is thin or a snapshot", lv.name);
                return refuse(Kind::InvalidArgument, answer);
            }
            if seen.vg().snapshots_of(&lv.name).next().is_some() {
                return refuse(Kind::InvalidArgument, format!("volume {} has classic snapshots", lv.name));
            }
        }
        seen.wait_until_closed(&[fast], tried)
    }
}

fn is_mode(has: Option<&metadata::CacheMode>, mode: CacheMode) -> bool {
    matches!(
        (has, mode),
        (Some(metadata::CacheMode::Writethrough), CacheMode::WriteThrough)
            | (Some(metadata::CacheMode::Writeback), CacheMode::WriteBack)
            | (Some(metadata::CacheMode::Passthrough), CacheMode::PassThrough)
    )
}
