//! Volumes of device classes worked on by hand with the `gabion` command: through a running agent, and without one.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::path::{Path, PathBuf};
use std::process::Command;

use devices::Bytes;
use rig::agent::Agent;
use rig::{Disk, skip_unless_dm, tool};
use serde_json::Value;

/// The commands of a person on a node with a thin class; what is on its disk is taken out of the kernel at the end.
struct Person {
    agent: Option<Agent>,
    directory: tempfile::TempDir,
    /// Gone after the agent and the volumes.
    disk: Disk,
}

impl Person {
    fn new() -> Option<Self> {
        if skip_unless_dm() {
            return None;
        }
        let disk = Disk::partitioned(Bytes::gib(2), Bytes::new(512)).unwrap();
        Some(Self { agent: None, directory: tempfile::tempdir().unwrap(), disk })
    }

    fn class(&self, more: &str) -> String {
        format!(
            "apiVersion: gabion.dev/v1alpha1\nkind: DeviceClass\nmetadata: {{name: fast}}\n\
             spec: {{default: true, devices: {{paths: [{}]}}, {more}}}\n",
            self.disk.path().display()
        )
    }

    /// The file with the classes.
    fn config(&self) -> PathBuf {
        match &self.agent {
            Some(agent) => agent.directory().join("classes.yaml"),
            None => self.directory.path().join("classes.yaml"),
        }
    }

    fn gabion(&self, arguments: &[&str]) -> (i32, String) {
        let socket = self.agent.as_ref().map_or_else(|| self.directory.path().join("none"), Agent::socket);
        let mut command = Command::new(std::env::var_os("GABION_BIN").unwrap());
        command.args(arguments).env("GABION_OWNER", "rig").env("GABION_CONFIG", self.config());
        let output = command.env("CSI_ENDPOINT", format!("unix://{}", socket.display())).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        println!("{arguments:?}: {}\n{said}", output.status);
        (output.status.code().unwrap(), said)
    }

    /// A command that must succeed, and say something.
    fn done(&self, arguments: &[&str], says: &str) {
        let (code, said) = self.gabion(arguments);
        assert!(code == 0 && said.contains(says), "{arguments:?}: {code}: {said}");
    }

    /// A command that must be refused.
    fn refused(&self, arguments: &[&str], exit: i32, why: &str) {
        let (code, said) = self.gabion(arguments);
        assert!(code == exit && said.contains(why), "{arguments:?}: {code}: {said}");
    }

    /// The document that a command gives to programs.
    fn document(&self, arguments: &[&str]) -> Value {
        let (code, said) = self.gabion(&[arguments, &["-o", "json"]].concat());
        assert_eq!(code, 0);
        serde_json::from_str(&said).unwrap()
    }

    /// A volume's life.
    fn life(&self) {
        let place = self.directory.path().join("mounted");
        let restored = self.directory.path().join("restored");
        let (at, restored_at) = (place.to_str().unwrap(), restored.to_str().unwrap());
        self.done(&["volume", "create", "db", "--size", "64MiB"], "created volume db: 64 MiB");
        self.refused(&["volume", "create", "db", "--size", "64MiB"], 4, "db");
        self.done(&["volume", "create", "db", "--size", "64MiB", "--if-absent"], "db");
        self.refused(&["volume", "create", "db2", "--size", "64MiB", "--pool", "x"], 2, "--pool");
        self.refused(&["volume", "create", "db2", "--size", "900GiB"], 5, "db2");
        self.done(&["volume", "mount", "db", at], "volume db is mounted at");
        std::fs::write(place.join("file"), "first").unwrap();
        self.done(&["volume", "snapshot", "db", "cut"], "cut snapshot cut of volume db");
        std::fs::write(place.join("file"), "second").unwrap();
        let before = size(&place);
        self.done(&["volume", "grow", "db", "--by", "64MiB"], "from 64 MiB to 128 MiB");
        assert!(size(&place) > before * 3 / 2, "its filesystem grew with it: {before}, {}", size(&place));
        self.done(&["volume", "clone", "cut", "copy", "--snapshot"], "created volume copy: 64 MiB");
        self.done(&["volume", "mount", "copy", restored_at], "volume copy is mounted at");
        assert_eq!(std::fs::read_to_string(restored.join("file")).unwrap(), "first");
        assert_eq!(std::fs::read_to_string(place.join("file")).unwrap(), "second");
        let listed = self.document(&["volumes", "--classes"]);
        let volumes = listed["volumes"].as_array().unwrap();
        assert_eq!(volumes.len(), 2);
        let of = |id: &str| volumes.iter().find(|volume| volume["id"] == id).unwrap();
        assert_eq!(of("db")["size_bytes"], 128 << 20);
        assert_eq!(of("copy")["source"], "snapshot/cut");
        let cuts = self.document(&["snapshots"]);
        assert_eq!(
            (&cuts["snapshots"][0]["id"], &cuts["snapshots"][0]["state"]),
            (&"cut".into(), &"ready".into())
        );
        self.refused(&["volume", "delete", "db"], 6, "mounted");
        for (volume, at) in [("db", at), ("copy", restored_at)] {
            self.done(&["volume", "unmount", volume, at], "is not mounted at");
            self.done(&["volume", "delete", volume], "deleted volume");
        }
        self.done(&["volume", "delete", "--snapshot", "cut"], "deleted snapshot cut");
        self.refused(&["volume", "delete", "db"], 3, "no volume db");
        self.done(&["volume", "delete", "db", "--if-exists"], "not there");
        assert!(!Path::new("/run/gabion/mounts/db").exists());
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.agent.as_ref().map_or_else(String::new, Agent::log));
        }
        // What is still in use belongs to a test that has failed already; the runner tells what is left.
        for volume in ["mounted", "restored"] {
            let _ = tool::run("umount", [self.directory.path().join(volume)]);
        }
        for volume in ["db", "copy"] {
            let _ = tool::run("umount", [format!("/run/gabion/mounts/{volume}")]);
        }
        drop(self.agent.take());
        let _ = tool::run("vgchange", ["--activate", "n"]);
    }
}

/// The size of the filesystem that is mounted somewhere.
fn size(place: &Path) -> u64 {
    let said = tool::run("df", ["--output=size", "-k", place.to_str().unwrap()]).unwrap();
    said.lines().last().unwrap().trim().parse().unwrap()
}

#[test]
fn people_work_on_volumes_of_classes_through_the_agent_and_give_it_other_classes() {
    let Some(mut person) = Person::new() else { return };
    person.agent = Some(Agent::start(&person.class("pool: {thin: {}}"), &[]).unwrap());
    let room = person.document(&["classes"]);
    let class = &room["classes"][0];
    assert_eq!(
        (&class["name"], &class["pool"], &class["group"]),
        (&"fast".into(), &"thin".into(), &"gabion-fast".into())
    );
    assert!(class["largest_bytes"].as_u64().unwrap() > 1 << 30, "{class}");
    person.life();
    assert_eq!(person.document(&["classes"]), room, "the space is back");

    let file = person.directory.path().join("new.yaml");
    let apply = ["class", "apply", "-f", file.to_str().unwrap()];
    std::fs::write(&file, person.class("pool: {lvm: {}}")).unwrap();
    person.refused(&apply, 2, "spec.pool cannot change");
    std::fs::write(&file, person.class("pool: {thin: {overprovisionRatio: 2}}")).unwrap();
    person.done(&apply, "class fast: changed");
    let agent = person.agent.as_ref().unwrap();
    rig::eventually("the agent took it", std::time::Duration::from_secs(30), || {
        agent.log().contains("took other classes")
    });
    let less = person.document(&["classes"]);
    assert!(less["classes"][0]["available_bytes"].as_u64() < class["available_bytes"].as_u64(), "{less}");
}

#[test]
fn people_work_on_volumes_of_classes_without_an_agent() {
    let Some(person) = Person::new() else { return };
    let file = person.directory.path().join("new.yaml");
    std::fs::write(&file, person.class("pool: {thin: {}}")).unwrap();
    person.done(&["class", "apply", "-f", file.to_str().unwrap()], "class fast: added");
    person.life();
}
