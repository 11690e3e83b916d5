//! Following the file with the device classes while the agent runs.

use std::fs;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use volumes::class::DeviceClass;
use volumes::{Kind, Node};

/// So long after a change of its directory the file is read: an editor makes several.
const QUIET: Duration = Duration::from_millis(200);
/// How long before what was busy is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Takes other classes whenever the file has others, until the process ends.
pub(crate) fn start(node: Node, file: &Path) -> Result<()> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let tried = || format!("following changes of {}", file.display());
    let changes = inotify::init(CreateFlags::CLOEXEC).with_context(tried)?;
    // The directory, not the file: whoever replaces it as a whole puts another file there, and a mounted ConfigMap swaps links.
    let flags = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::CREATE | WatchFlags::ATTRIB;
    inotify::add_watch(&changes, directory, flags).with_context(tried)?;
    let follower = Follower { node, file: file.to_owned(), seen: fs::read_to_string(file).ok() };
    std::thread::Builder::new()
        .name("classes".to_owned())
        .spawn(move || follower.run(&changes))
        .with_context(tried)?;
    Ok(())
}

struct Follower {
    node: Node,
    file: PathBuf,
    /// What the file said when it was taken or refused last.
    seen: Option<String>,
}

impl Follower {
    fn run(mut self, changes: &OwnedFd) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        loop {
            if let Err(error) = inotify::Reader::new(changes, &mut buffer).next() {
                if error == rustix::io::Errno::INTR {
                    continue;
                }
                eprintln!("gabion: changes of {} are not followed any more: {error}", self.file.display());
                return;
            }
            std::thread::sleep(QUIET);
            self.look();
        }
    }

    fn look(&mut self) {
        // Between two versions there may be none.
        let Ok(text) = fs::read_to_string(&self.file) else { return };
        if self.seen.as_ref() == Some(&text) {
            return;
        }
        let taken = DeviceClass::parse_all(&text).and_then(|classes| {
            loop {
                match self.node.reload(classes.clone()) {
                    Err(error) if error.kind() == Kind::Busy => std::thread::sleep(AGAIN),
                    other => break other,
                }
            }
        });
        match taken {
            Ok(repairs) => eprintln!("gabion: took other classes: {repairs}"),
            Err(error) => eprintln!("gabion: the classes stay as they were: {error}"),
        }
        self.seen = Some(text);
    }
}
