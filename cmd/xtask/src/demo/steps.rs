//! The story: what is typed, and what must come of it.
//!
//! `{a}` to `{d}` stand for the disks. Checksums of what was written are kept outside the machine's own disks
//! and memory, in /run/out, so that they outlive its power.

/// A part of the story.
#[derive(Debug)]
pub(super) struct Step {
    /// What it is about, as a person would say it.
    pub(super) title: &'static str,
    /// What is done, in order.
    pub(super) acts: &'static [Act],
}

/// One thing that is done.
#[derive(Debug)]
pub(super) enum Act {
    /// Something is typed in the machine, and shown with its output.
    Run(Run),
    /// A claim about what is there now; holds when the script ends with 0.
    Check {
        /// What holds.
        claim: &'static str,
        /// What proves it.
        script: &'static str,
    },
    /// The driver is started, and goes on beside what follows.
    Serve(&'static str),
    /// A disk is pulled out, by its place among the disks.
    Unplug(usize),
    /// The power is cut while a script writes, once it has written `after`.
    CutPower {
        /// What writes.
        during: &'static str,
        /// What it must have told by then.
        after: &'static str,
    },
}

/// Something that is typed.
#[derive(Debug)]
pub(super) struct Run {
    /// The command, for a shell that ends at the first failure.
    pub(super) command: &'static str,
    /// The code that it must end with.
    pub(super) exit: i32,
    /// What its output must say.
    pub(super) says: &'static [&'static str],
}

/// A command that succeeds and says these words.
const fn run(command: &'static str, says: &'static [&'static str]) -> Act {
    Act::Run(Run { command, exit: 0, says })
}

/// A command that ends with this code and says these words.
const fn fails(exit: i32, command: &'static str, says: &'static [&'static str]) -> Act {
    Act::Run(Run { command, exit, says })
}

/// A claim and its proof.
const fn check(claim: &'static str, script: &'static str) -> Act {
    Act::Check { claim, script }
}

/// The demonstration.
pub(super) const STEPS: &[Step] = &[
    Step {
        title: "Make a group of the three disks",
        acts: &[
            run("gabion group create demo {a} {b} {c}", &["created group demo"]),
            run("gabion pools", &["demo", "group", "ok", "gabion"]),
        ],
    },
    Step {
        title: "Make volumes: a linear one, and one with a copy on a second disk",
        acts: &[
            run("gabion volume create demo/files --size 400MiB --on {a}", &["created volume demo/files: 400 MiB"]),
            run(
                "gabion volume create demo/mirror --type raid1 --size 200MiB --on {a} --on {b} --wait",
                &["created volume demo/mirror: 200 MiB"],
            ),
            fails(4, "gabion volume create demo/files --size 400MiB", &["it is there already", "--if-absent"]),
            fails(5, "gabion volume create demo/huge --size 1TiB", &["could not create volume demo/huge"]),
        ],
    },
    Step {
        title: "Make two thin pools, one of them with a copy of everything, and thin volumes in them",
        acts: &[
            run("gabion pool create demo/pool --size 300MiB --on {c}", &["created thin pool demo/pool: 300 MiB"]),
            run(
                "gabion pool create demo/safe --type raid1 --size 200MiB --on {a} --on {b} --wait",
                &["created thin pool demo/safe: 200 MiB"],
            ),
            run("gabion volume create demo/www --pool pool --size 1GiB", &["created volume demo/www: 1 GiB"]),
            run("gabion volume create demo/db --pool safe --size 1GiB", &["created volume demo/db: 1 GiB"]),
            run("gabion volumes", &["demo/db", "demo/mirror", "raid1", "demo/safe", "active"]),
            check(
                "the thin pool demo/safe lies on RAID 1, its data and its metadata",
                "gabion volumes demo --all | grep -q '^demo/safe_tdata *raid1'
                 gabion volumes demo --all | grep -q '^demo/safe_tmeta *raid1'",
            ),
        ],
    },
    Step {
        title: "Put filesystems with data on them",
        acts: &[
            run(
                "mkfs.ext4 -q /dev/demo/files && mkfs.ext4 -q /dev/demo/mirror
mkfs.xfs -q /dev/demo/www && mkfs.ext4 -q /dev/demo/db
for volume in files mirror www db; do
    mkdir -p /run/demo/$volume && mount /dev/demo/$volume /run/demo/$volume
    head -c 20M /dev/urandom > /run/demo/$volume/data
    (cd /run/demo/$volume && sha256sum data) > /run/out/$volume.sum
done
sync && df -h --output=source,fstype,size,used,target /run/demo/*",
                &["xfs", "ext4", "/run/demo/mirror"],
            ),
            check("all four filesystems hold the data that was written", SUMS),
        ],
    },
    Step {
        title: "Grow a volume and its filesystem while it is mounted",
        acts: &[
            run("gabion volume grow demo/files --size 600MiB", &["grew volume demo/files from 400 MiB to 600 MiB"]),
            run("resize2fs /dev/demo/files 2>&1 | tail -n 2", &["is now"]),
            check(
                "the filesystem is larger than the volume was, and was never unmounted",
                "test $(df --output=size -k /run/demo/files | tail -n 1) -gt $((400 * 1024))",
            ),
            check("its data are unharmed", "cd /run/demo/files && sha256sum --check --quiet /run/out/files.sum"),
        ],
    },
    Step {
        title: "Cut a snapshot, make a mistake, and put the old data back",
        acts: &[
            run("gabion volume snapshot demo/db before", &["cut snapshot demo/before of volume demo/db"]),
            run("rm /run/demo/db/data && echo oops > /run/demo/db/mistake && sync && ls /run/demo/db", &["mistake"]),
            fails(6, "gabion volume restore demo/before", &["open", "unmount"]),
            run("umount /run/demo/db", &[]),
            run("gabion volume restore demo/before", &["restored volume demo/db from snapshot demo/before"]),
            run(
                "gabion volume activate demo/db && mount /dev/demo/db /run/demo/db && ls /run/demo/db",
                &["data"],
            ),
            check("the old data are back", "cd /run/demo/db && sha256sum --check --quiet /run/out/db.sum"),
            check("the mistake is gone", "test ! -e /run/demo/db/mistake"),
        ],
    },
    Step {
        title: "Fill a thin pool until it grows itself",
        acts: &[
            run(
                "gabion pool watch demo/pool --once --by 50% --limit 150 &
watcher=$!
head -c 240M /dev/zero > /run/demo/www/fill && sync
wait $watcher",
                &["demo/pool: its data were", "grown from 300 MiB to 452 MiB"],
            ),
            check(
                "the pool takes writes, and everything that was written is there",
                "test $(stat --format %s /run/demo/www/fill) = $((240 << 20)) && touch /run/demo/www/more && sync
                 cd /run/demo/www && sha256sum --check --quiet /run/out/www.sum",
            ),
            run("gabion pools", &["452 MiB"]),
        ],
    },
    Step {
        title: "Pull out the second disk",
        acts: &[
            Act::Unplug(1),
            run("echo 'written to one leg' > /run/demo/mirror/later && echo 'also here' > /run/demo/db/later && sync", &[]),
            fails(
                8,
                "gabion doctor",
                &["ERROR", "is missing", "demo/mirror", "legs does not work any more", "without a spare copy now"],
            ),
            run("gabion volumes", &["degraded"]),
            check("nothing is lost: all four filesystems still hold their data", SUMS),
        ],
    },
    Step {
        title: "Cut the power in the midst of writing; all disks are there when it comes back",
        acts: &[
            Act::CutPower {
                during: "n=0
while true; do
    n=$((n + 1)); echo record-$n >> /run/demo/mirror/log; sync /run/demo/mirror/log
    echo record-$n >> /run/demo/db/log; sync /run/demo/db/log
    echo \"written $n\"
done",
                after: "written 25\n",
            },
            run("gabion group activate demo", &["activated group demo"]),
            run("gabion group restore demo --wait", &["group demo"]),
            run("gabion volumes", &["demo/db", "demo/files", "demo/mirror", "demo/www"]),
            run(
                "for volume in files mirror www db; do
    mkdir -p /run/demo/$volume && mount /dev/demo/$volume /run/demo/$volume
done
ls /run/demo/*",
                &["later", "log", "data"],
            ),
            check("all four filesystems hold their data", SUMS),
            check(
                "every record that was told to be written before the power was cut is there",
                "for volume in mirror db; do
                     for n in $(seq 1 25); do grep -qx record-$n /run/demo/$volume/log; done
                 done",
            ),
            check(
                "what was written while the disk was away is there",
                "grep -q 'one leg' /run/demo/mirror/later && grep -q 'also here' /run/demo/db/later",
            ),
            run("gabion doctor", &["1 group examined"]),
        ],
    },
    Step {
        title: "Both copies are whole again: read the mirror without its first disk",
        acts: &[
            Act::Unplug(0),
            check(
                "the copy that was brought up to date holds all data",
                "echo 3 > /proc/sys/vm/drop_caches
                 cd /run/demo/mirror && sha256sum --check --quiet /run/out/mirror.sum
                 grep -q 'one leg' later && grep -qx record-25 log",
            ),
        ],
    },
    Step {
        title: "Serve volumes of a device class on the fourth disk, by a CSI driver on a socket",
        acts: &[
            run(
                "cat > /run/fast.yaml <<'END'
apiVersion: gabion.dev/v1alpha1
kind: DeviceClass
metadata: {name: fast}
spec:
  default: true
  devices: {paths: [{d}]}
  pool: {thin: {}}
END",
                &[],
            ),
            Act::Serve(
                "gabion node --config /run/fast.yaml --owner demo --controller=local --csi-endpoint unix:///run/gabion/csi.sock",
            ),
            run("gabion classes --config /run/fast.yaml", &["fast", "thin", "gabion-fast"]),
            run("gabion classes --config /run/fast.yaml --bytes > /run/room", &[]),
            run("gabion volume create web --size 300MiB", &["created volume web: 300 MiB"]),
            run(
                "gabion volume mount web /run/demo/web
head -c 20M /dev/urandom > /run/demo/web/data
(cd /run/demo/web && sha256sum data) > /run/out/web.sum",
                &["volume web is mounted at /run/demo/web"],
            ),
        ],
    },
    Step {
        title: "The same driver: snapshot, overwrite, grow, restore, compare",
        acts: &[
            run("gabion volume snapshot web before", &["cut snapshot before of volume web"]),
            run("echo oops > /run/demo/web/data && sync", &[]),
            run("gabion volume grow web --size 600MiB", &["grew volume web from 300 MiB to 600 MiB"]),
            check(
                "its filesystem grew with it while it was mounted",
                "test $(df --output=size -k /run/demo/web | tail -n 1) -gt $((400 * 1024))",
            ),
            run("gabion volume clone --snapshot before old", &["created volume old: 300 MiB"]),
            run("gabion volume mount old /run/demo/old && ls /run/demo/old", &["data"]),
            check(
                "the restored volume holds what was there when the snapshot was cut",
                "cd /run/demo/old && sha256sum --check --quiet /run/out/web.sum",
            ),
            check("the other one holds what was written since", "grep -qx oops /run/demo/web/data"),
            run("gabion volumes --classes && gabion snapshots", &["web", "old", "snapshot/before"]),
        ],
    },
    Step {
        title: "The same driver: delete everything, and the space is back",
        acts: &[
            fails(6, "gabion volume delete web", &["mounted at"]),
            run(
                "gabion volume unmount web /run/demo/web
gabion volume unmount old /run/demo/old
gabion volume delete web
gabion volume delete old
gabion volume delete --snapshot before",
                &["deleted volume web", "deleted volume old", "deleted snapshot before"],
            ),
            check("there is as much room as before", "gabion classes --config /run/fast.yaml --bytes | cmp - /run/room"),
            check(
                "told to end, the driver ends in order",
                "pkill -TERM -f 'gabion [n]ode' && for nth in $(seq 300); do
                     grep -q 'ended in order' /run/node.log && exit 0
                     sleep 0.1
                 done
                 cat /run/node.log; exit 1",
            ),
        ],
    },
];

/// Proves that every filesystem holds what was written to it first.
const SUMS: &str = "for volume in files mirror www db; do
    (cd /run/demo/$volume && sha256sum --check --quiet /run/out/$volume.sum)
done";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_proves_something_and_storage_is_changed_by_gabion_alone() {
        for step in STEPS {
            let proves = |act: &Act| match act {
                Act::Run(run) => run.exit != 0 || !run.says.is_empty(),
                Act::Check { .. } => true,
                Act::Serve(_) | Act::Unplug(_) | Act::CutPower { .. } => false,
            };
            assert!(step.acts.iter().any(proves), "{}", step.title);
            for act in step.acts {
                let script = match act {
                    Act::Run(run) => run.command,
                    Act::Check { script, .. } => script,
                    Act::Serve(command) => command,
                    Act::CutPower { during, .. } => during,
                    Act::Unplug(_) => continue,
                };
                for tool in [
                    "lvcreate",
                    "lvextend",
                    "lvconvert",
                    "lvremove",
                    "vgcreate",
                    "vgchange",
                    "pvcreate",
                    "dmsetup",
                ] {
                    assert!(!script.contains(tool), "{script}");
                }
            }
        }
    }
}
