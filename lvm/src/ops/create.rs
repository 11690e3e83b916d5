//! The protocol by which everything is made: tagged as unfinished, completed, then handed out.

use super::guard::Guard;
use super::seen::{Need, Seen};
use super::{CREATING, Change, Group, Volume};
use crate::command::{Command, LvChange};
use crate::metadata::{Lv, Vg};
use crate::{Effect, Error, Kind, LvName, Tag};

/// How one kind of volume is made.
pub(crate) trait Recipe {
    /// The name it gets.
    fn name(&self) -> &LvName;

    /// The caller's tags.
    fn tags(&self) -> &[Tag];

    /// Whether the volume found under that name is what was asked for; the text says what differs.
    fn matches(&self, seen: &Seen, found: &Lv) -> Result<(), String>;

    /// Makes it, with `tags`, the unfinished one among them.
    fn make(&self, group: &Group, seen: &Seen, tags: &[Tag], tried: &str) -> Result<(), Error>;

    /// Completes it: wipes it or checks that it is empty. `seen` was taken after it was made.
    fn complete(&self, group: &Group, seen: &Seen, made: &Lv, tried: &str) -> Result<(), Error>;

    /// The tag that says what is on it once it is complete.
    fn content_tag(&self, group: &Group, seen: &Seen) -> Option<Tag>;
}

impl Group {
    /// Makes what the recipe says, or finds it made.
    pub(crate) fn make(&self, recipe: &impl Recipe, tried: &str) -> Result<Change<Volume>, Error> {
        let name = recipe.name();
        super::own_tags(recipe.tags(), tried)?;
        let _guard = Guard::take(&self.lvm.settings().run_dir, self.uuid, name, tried)?;
        let mut seen = Seen::of(&self.lvm, self.uuid, Need::Complete, tried)?;
        if let Some(found) = seen.vg().lv(name.as_str()) {
            if !seen.is_unfinished(found) {
                return self.found(recipe, &seen, found, tried);
            }
            seen.own_lv(&self.lvm, name, tried)?;
            self.remove_one(&seen, name, tried)?;
            seen = Seen::of(&self.lvm, self.uuid, Need::Complete, tried)?;
        }
        seen.dm_name_fits(name, tried)?;
        let tags = self.tags_while_creating(recipe.tags())?;
        let made = recipe.make(self, &seen, &tags, tried).and_then(|()| self.finish(recipe, tried));
        match made {
            Ok(volume) => Ok(Change::Made(volume)),
            Err(error) => Err(self.undo(name, error, tried)),
        }
    }

    fn found(
        &self,
        recipe: &impl Recipe,
        seen: &Seen,
        found: &Lv,
        tried: &str,
    ) -> Result<Change<Volume>, Error> {
        let differs = match seen.finished_lv(&self.lvm, recipe.name(), tried) {
            Ok(_) => recipe.matches(seen, found),
            Err(error) if error.kind() == Kind::Busy => return Err(error),
            Err(error) => Err(error.answer().unwrap_or_default().to_owned()),
        };
        match differs {
            Ok(()) => self.lvm.already(seen, tried, Volume::of(seen.vg(), found)),
            Err(difference) => Err(Error::new(Kind::AlreadyExists, tried)
                .with_answer(format!("a volume of that name exists: {difference}"))
                .with_advice("choose another name, or remove the other volume first")),
        }
    }

    /// Completes what was made, and swaps the unfinished tag for the one that says what is on it.
    fn finish(&self, recipe: &impl Recipe, tried: &str) -> Result<Volume, Error> {
        let seen = Seen::of(&self.lvm, self.uuid, Need::Ours, tried)?;
        let lv = seen.lv(recipe.name(), tried)?;
        recipe.complete(self, &seen, lv, tried)?;
        let add: Vec<Tag> = recipe.content_tag(self, &seen).into_iter().collect();
        let remove = [Tag::literal(CREATING)];
        let change = LvChange::Tags { add: &add, remove: &remove };
        self.lvm.run(seen.scope(), tried, &(change, seen.target(recipe.name())))?;
        let seen = Seen::of(&self.lvm, self.uuid, Need::Ours, tried)?;
        Ok(Volume::of(seen.vg(), seen.lv(recipe.name(), tried)?))
    }

    /// Removes what a failed creation left, unless its command may still run.
    pub(crate) fn undo(&self, name: &LvName, error: Error, tried: &str) -> Error {
        if may_still_run(&error) {
            return error;
        }
        let left = Seen::of(&self.lvm, self.uuid, Need::Ours, tried).and_then(|seen| {
            match seen.vg().lv(name.as_str()) {
                Some(lv) if seen.is_unfinished(lv) => {
                    self.remove_one(&seen, name, tried).map(|()| Left::Nothing)
                }
                Some(_) => Ok(Left::Complete),
                None => Ok(Left::Nothing),
            }
        });
        match left {
            Ok(Left::Nothing) if error.effect() == Effect::Unknown => error.with_effect(Effect::None),
            Ok(_) => error,
            // It stays tagged as unfinished, so that nobody uses it and the next start removes it.
            Err(_) => error.with_effect(Effect::Done).with_advice("remove what is unfinished in the group"),
        }
    }

    fn tags_while_creating(&self, tags: &[Tag]) -> Result<Vec<Tag>, Error> {
        let owner = self.lvm.settings().owner.iter().cloned();
        let mut all: Vec<Tag> = [Tag::literal(CREATING)].into_iter().chain(owner).collect();
        for tag in tags {
            if !all.contains(tag) {
                all.push(tag.clone());
            }
        }
        Ok(all)
    }

    /// Runs a command in this group's queue. Where LVM failed for no known reason, the metadata tell whether anything
    /// was changed.
    pub(crate) fn run(&self, seen: &Seen, tried: &str, command: &impl Command) -> Result<(), Error> {
        let error = match self.lvm.run(seen.scope(), tried, command) {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        if error.effect() != Effect::Unknown || may_still_run(&error) {
            return Err(error);
        }
        match self.look() {
            Ok(now) if now.seqno == seen.vg().seqno => Err(error.with_effect(Effect::None)),
            _ => Err(error),
        }
    }

    /// Removes every volume that is tagged as unfinished and ours, and tells their names.
    ///
    /// For the start of a program and after a crash; a volume that is being made at this moment, by this or another
    /// process with the same run directory, is left alone.
    ///
    /// # Errors
    ///
    /// Of the first volume that could not be removed. [`Kind::Foreign`] for a group that is not ours.
    pub fn remove_unfinished(&self) -> Result<Vec<LvName>, Error> {
        let mut removed = Vec::new();
        // Removing one may free another: a snapshot before its origin.
        loop {
            let tried = "remove unfinished volumes".to_owned();
            let seen = Seen::of(&self.lvm, self.uuid, Need::Ours, &tried)?;
            let Some((name, _guard)) = self.next_unfinished(&seen, &tried)? else { return Ok(removed) };
            let tried = format!("remove unfinished volume {}/{name}", seen.vg().name);
            self.remove_one(&seen, &name, &tried)?;
            removed.push(name);
        }
    }

    /// The next unfinished volume that nothing else is built on.
    fn next_unfinished(&self, seen: &Seen, tried: &str) -> Result<Option<(LvName, Guard)>, Error> {
        for lv in seen.vg().visible_lvs().filter(|lv| seen.is_unfinished(lv)) {
            if seen.vg().users_of(&lv.name).any(|user| seen.is_unfinished(user)) {
                continue;
            }
            if seen.own_lv(&self.lvm, &lv.name, tried).is_err() {
                continue;
            }
            match Guard::take(&self.lvm.settings().run_dir, self.uuid, &lv.name, tried) {
                Ok(guard) => return Ok(Some((lv.name.clone(), guard))),
                Err(error) if error.kind() == Kind::Busy => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// What a failed creation left.
enum Left {
    Nothing,
    /// The volume, complete: only its last step was not confirmed.
    Complete,
}

/// Whether the command behind an error may go on, or its group has to be recovered first.
fn may_still_run(error: &Error) -> bool {
    matches!(error.kind(), Kind::TimedOut | Kind::Crashed)
}

impl Seen {
    /// Device-mapper takes 127 bytes, hyphens doubled; LVM itself finds out only when it activates the volume.
    pub(crate) fn dm_name_fits(&self, name: &LvName, tried: &str) -> Result<(), Error> {
        // `_tdata` with the layer `tpool` or `_rimage_0` with `real` are the longest that LVM adds.
        let longest = LvName::existing(&format!("{name}_rimage_00")).unwrap_or_else(|_| name.clone());
        longest.dm_name(&self.vg().name, None).map(|_| ()).map_err(|cause| {
            Error::new(Kind::InvalidArgument, tried)
                .with_answer(cause.to_string())
                .with_advice("choose a shorter name, with fewer hyphens")
                .with_source(cause)
        })
    }
}

/// What a group's metadata say about the size of a volume, for comparing with a request.
pub(crate) fn size_matches(vg: &Vg, lv: &Lv, size: super::SizeRange) -> Result<(), String> {
    let has = vg.extent_size.span(lv.extents()).unwrap_or_default();
    if has < size.required() || size.limit().is_some_and(|limit| has > limit) {
        return Err(match size.limit() {
            Some(limit) => format!("it has {has:#}, and {:#} to {limit:#} were asked for", size.required()),
            None => format!("it has {has:#}, and {:#} were asked for", size.required()),
        });
    }
    Ok(())
}
