//! Directories opened and removed without ever leaving the one they are in: no link is followed, no mount is entered.
//!
//! What is in a volume was made by its user, who may have nested directories deeper than any stack or path can hold. So
//! removing never recurses: a directory that is not empty is moved up to the top before its turn comes.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::path::Arg;

/// How many names are read at once.
const BATCH: usize = 1024;
/// How often opening is tried while renames elsewhere on the host race with it (openat2(2), EAGAIN).
const RACES_MAX: usize = 128;

/// Opens a directory by its name in another one, to read it.
pub(super) fn open(parent: BorrowedFd<'_>, name: impl Arg + Copy) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    for _ in 0..RACES_MAX {
        match rustix::fs::openat2(parent, name, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN) => {}
            opened => return opened,
        }
    }
    Err(Errno::AGAIN)
}

/// Removes a directory with all that is in it; one that is not there is removed already.
///
/// # Errors
///
/// `EBUSY` or `EXDEV` where something is mounted in it. What was not removed then can be removed by the same call later.
pub(super) fn remove(parent: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    let top = match open(parent, name) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    let mut moved = 0_u64;
    empty(top.as_fd(), |entry| {
        let directory = open(top.as_fd(), entry)?;
        empty(directory.as_fd(), |inner| lift(directory.as_fd(), inner, top.as_fd(), &mut moved))?;
        rustix::fs::unlinkat(&top, entry, AtFlags::REMOVEDIR)
    })?;
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Removes every entry of a directory, and has `full` do away with the directories in it that are not empty.
fn empty(directory: BorrowedFd<'_>, mut full: impl FnMut(&CStr) -> Result<(), Errno>) -> Result<(), Errno> {
    loop {
        let batch = entries(directory)?;
        if batch.is_empty() {
            return Ok(());
        }
        for (name, kind) in batch {
            let removed = match kind {
                FileType::Directory => Err(Errno::ISDIR),
                _ => rustix::fs::unlinkat(directory, &name, AtFlags::empty()),
            };
            let removed = match removed {
                Err(Errno::ISDIR) => rustix::fs::unlinkat(directory, &name, AtFlags::REMOVEDIR),
                other => other,
            };
            match removed {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST) => full(&name)?,
                Err(errno) => return Err(errno),
            }
        }
    }
}

/// The next entries of a directory; none when it is empty.
fn entries(directory: BorrowedFd<'_>) -> Result<Vec<(CString, FileType)>, Errno> {
    let is_other = |name: &CStr| name != c"." && name != c"..";
    Dir::read_from(directory)?
        .filter(|entry| entry.as_ref().map_or(true, |entry| is_other(entry.file_name())))
        .take(BATCH)
        .map(|entry| entry.map(|entry| (entry.file_name().to_owned(), entry.file_type())))
        .collect()
}

/// Moves a directory up to the top, under a name that is free there.
fn lift(from: BorrowedFd<'_>, name: &CStr, top: BorrowedFd<'_>, moved: &mut u64) -> Result<(), Errno> {
    loop {
        *moved += 1;
        let free = format!(".moved-{moved}");
        match rustix::fs::renameat_with(from, name, top, &free, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    fn opened(path: &Path) -> OwnedFd {
        fs::File::open(path).unwrap().into()
    }

    #[test]
    fn a_tree_is_removed_whatever_is_in_it_and_nothing_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let (tree, beside) = (place.path().join("tree"), place.path().join("beside"));
        fs::create_dir_all(tree.join("a/b/c")).unwrap();
        fs::create_dir_all(beside.join("kept")).unwrap();
        fs::write(beside.join("kept/file"), "kept").unwrap();
        symlink(&beside, tree.join("link")).unwrap();
        symlink("../../beside", tree.join("a/b/link")).unwrap();
        symlink("/", tree.join("a/root")).unwrap();
        fs::hard_link(beside.join("kept/file"), tree.join("a/b/c/hard")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            tree.join("a/fifo"),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        for at in 0..3 * BATCH {
            fs::write(tree.join("a").join(at.to_string()), "").unwrap();
        }
        // A name that removing itself gives.
        fs::create_dir_all(tree.join(".moved-1/x")).unwrap();
        let parent = opened(place.path());
        remove(parent.as_fd(), c"tree").unwrap();
        assert!(!tree.exists());
        assert_eq!(fs::read_to_string(beside.join("kept/file")).unwrap(), "kept");
        remove(parent.as_fd(), c"tree").unwrap();
    }

    #[test]
    fn directories_nested_deeper_than_any_path_are_removed() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("tree")).unwrap();
        let parent = opened(place.path());
        let mut at = open(parent.as_fd(), c"tree").unwrap();
        for _ in 0..1_000 {
            rustix::fs::mkdirat(&at, c"deeper", Mode::from_raw_mode(0o700)).unwrap();
            at = open(at.as_fd(), c"deeper").unwrap();
        }
        drop(at);
        remove(parent.as_fd(), c"tree").unwrap();
        assert!(!place.path().join("tree").exists());
    }

    #[test]
    fn only_directories_right_there_are_opened() {
        let place = tempfile::tempdir().unwrap();
        let inside = place.path().join("inside");
        fs::create_dir_all(inside.join("real")).unwrap();
        fs::create_dir(place.path().join("outside")).unwrap();
        fs::write(inside.join("file"), "").unwrap();
        symlink("../outside", inside.join("link")).unwrap();
        let inside = opened(&inside);
        let open = |name: &str| open(inside.as_fd(), name).map(drop);
        assert_eq!(open("real"), Ok(()));
        assert_eq!(open("gone"), Err(Errno::NOENT));
        assert_eq!(open("../outside"), Err(Errno::XDEV));
        assert_eq!(open("/"), Err(Errno::XDEV));
        assert!(matches!(open("link"), Err(Errno::LOOP | Errno::NOTDIR)), "{:?}", open("link"));
        assert_eq!(open("file"), Err(Errno::NOTDIR));
        // A name that is a link is not removed as a tree.
        assert!(remove(inside.as_fd(), c"link").is_err());
    }
}
