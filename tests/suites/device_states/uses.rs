//! What can use a disk.

use super::{State, state};

pub(crate) const ALL: [State; 12] = [
    state(
        "mounted",
        "mkfs.ext4 -qF $D; mkdir $T/m; mount $D $T/m; echo $D",
        "no",
        &["mounted"],
        "umount $T/m",
    ),
    state(
        "mounted in another mount namespace",
        "mkfs.ext4 -qF $D; mkdir $T/m
         unshare -m --propagation private sh -c \"mount $D $T/m; touch $T/there; exec sleep 60\" >/dev/null 2>&1 &
         echo $! >$T/pid; while ! [ -e $T/there ]; do sleep 0.1; done; echo $D",
        "no",
        &["mounted"],
        "kill $(cat $T/pid)",
    ),
    state("in use as swap", "mkswap -q $D; swapon $D; echo $D", "no", &["swap"], "swapoff $D"),
    state("set to read-only", "blockdev --setro $D; echo $D", "no", &["read-only"], "blockdev --setrw $D"),
    state(
        "taken off line",
        "echo offline >/sys/class/block/${S#/dev/}/device/state; echo $S",
        "no",
        &["fault"],
        "echo running >/sys/class/block/${S#/dev/}/device/state",
    ),
    state(
        "a PV under an active volume",
        "vgcreate -q g $D >&2; lvcreate -q -L 64M -n v g >&2; echo $D",
        "no",
        &["lvm-pv"],
        "vgremove -qy g",
    ),
    state(
        "a volume of LVM",
        "vgcreate -q g $D >&2; lvcreate -q -L 2G -n v g >&2; echo /dev/g/v",
        "no",
        &["volume"],
        "vgremove -qy g",
    ),
    state(
        "a registered backing device of bcache",
        "modprobe bcache; make-bcache -B $D >&2; udevadm settle
         [ -e /sys/class/block/${D#/dev/}/bcache ] || echo $D >/sys/fs/bcache/register; udevadm settle; echo $D",
        "no",
        &["bcache"],
        "echo 1 >/sys/class/block/${D#/dev/}/bcache/stop; while [ -e /dev/bcache0 ]; do sleep 0.1; done",
    ),
    state(
        "a bcache device",
        "modprobe bcache; make-bcache -B $D >&2; udevadm settle
         [ -e /sys/class/block/${D#/dev/}/bcache ] || echo $D >/sys/fs/bcache/register; udevadm settle
         echo /dev/$(ls /sys/class/block/${D#/dev/}/holders)",
        "by-name",
        &["cached"],
        "echo 1 >/sys/class/block/${D#/dev/}/bcache/stop; while ls /dev/bcache[0-9]* 2>/dev/null; do sleep 0.1; done",
    ),
    state(
        "a cache device of bcache",
        "modprobe bcache; make-bcache -C $D >&2; udevadm settle
         [ -e /sys/class/block/${D#/dev/}/bcache ] || echo $D >/sys/fs/bcache/register; udevadm settle; echo $D",
        "no",
        &["bcache"],
        "echo 1 >/sys/class/block/${D#/dev/}/bcache/set/stop
         while [ -e /sys/class/block/${D#/dev/}/bcache ]; do sleep 0.1; done",
    ),
    state(
        "a member of a running array",
        "modprobe raid1; echo md_rig >/sys/module/md_mod/parameters/new_array; m=/sys/block/md_rig/md
         echo none >$m/metadata_version; echo raid1 >$m/level; echo 2 >$m/raid_disks
         for d in $D $E; do
           cat /sys/class/block/${d#/dev/}/dev >$m/new_dev; echo 4194304 >$m/dev-${d#/dev/}/size
         done
         echo 4194304 >$m/component_size; echo 0 >$m/dev-${D#/dev/}/slot; echo 1 >$m/dev-${E#/dev/}/slot; echo active >$m/array_state; echo $D",
        "no",
        &["raid-member"],
        "echo clear >/sys/block/md_rig/md/array_state",
    ),
    state(
        "an array",
        "modprobe raid1; echo md_rig >/sys/module/md_mod/parameters/new_array; m=/sys/block/md_rig/md
         echo none >$m/metadata_version; echo raid1 >$m/level; echo 2 >$m/raid_disks
         for d in $D $E; do
           cat /sys/class/block/${d#/dev/}/dev >$m/new_dev; echo 4194304 >$m/dev-${d#/dev/}/size
         done
         echo 4194304 >$m/component_size; echo 0 >$m/dev-${D#/dev/}/slot; echo 1 >$m/dev-${E#/dev/}/slot; echo active >$m/array_state
         echo /dev/md_rig",
        "by-name",
        &["array"],
        "echo clear >/sys/block/md_rig/md/array_state",
    ),
];
