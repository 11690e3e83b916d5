//! What can be on a disk.

use super::{State, state};

pub(crate) const ALL: [State; 17] = [
    state("ext4", "mkfs.ext4 -qF $D; echo $D", "no", &["signature"], ""),
    state("xfs", "mkfs.xfs -qf $D; echo $D", "no", &["signature"], ""),
    state("btrfs", "mkfs.btrfs -qf $D; echo $D", "no", &["signature"], ""),
    state("prepared for swap", "mkswap -q $D; echo $D", "no", &["signature"], ""),
    state(
        "closed LUKS",
        "printf 'LUKS\\272\\276\\000\\001' | dd of=$D conv=fsync status=none; echo $D",
        "no",
        &["signature"],
        "",
    ),
    state("a GPT without partitions", "sgdisk -o $D >&2; echo $D", "no", &["partition-table"], ""),
    state(
        "a GPT of which only the copy at the end is left",
        "sgdisk -o $D >&2; dd if=/dev/zero of=$D bs=512 count=34 conv=fsync status=none; echo $D",
        "no",
        &["partition-table"],
        "",
    ),
    state(
        "an MBR table without partitions",
        "printf '\\125\\252' | dd of=$D bs=1 seek=510 conv=fsync status=none
         printf '\\001\\002\\003\\004' | dd of=$D bs=1 seek=440 conv=fsync status=none; echo $D",
        "no",
        &["partition-table"],
        "",
    ),
    state("a PV of no group", "pvcreate -q $D >&2; echo $D", "no", &["lvm-pv"], ""),
    state(
        "a member of an array that does not run",
        "printf '\\374\\116\\053\\251\\001\\000\\000\\000' | dd of=$D bs=1 seek=4096 conv=fsync status=none
         printf '\\010' | dd of=$D bs=1 seek=4240 conv=fsync status=none; echo $D",
        "no",
        &["raid-member"],
        "",
    ),
    state(
        "two bytes at the end that a RAID controller also writes",
        "printf JM | dd of=$D bs=1 seek=$(($(blockdev --getsize64 $D) - 512)) conv=fsync status=none; echo $D",
        "no",
        &["raid-member"],
        "",
    ),
    state(
        "ext4 and btrfs at once",
        "mkfs.btrfs -qf $E; mkfs.ext4 -qF $D
         dd if=$E of=$D bs=64K skip=1 seek=1 count=1 conv=fsync status=none; echo $D",
        "no",
        &["ambiguous"],
        "",
    ),
    state(
        "both ends cannot be read",
        "dmsetup create dead --table \"0 $(blockdev --getsz $D) error\"; echo /dev/mapper/dead",
        "no",
        &["mapped", "unreadable"],
        "dmsetup remove --retry dead",
    ),
    state(
        "it needs more than a second for each read",
        // udevd would wait for the device, too.
        "touch $T/unsettled; udevadm control --stop-exec-queue
         DM_DISABLE_UDEV=1 dmsetup create slow --table \"0 $(blockdev --getsz $D) delay $D 0 1200\"
         echo /dev/mapper/slow",
        "no",
        &["mapped", "no-answer"],
        "export DM_DISABLE_UDEV=1; dmsetup load slow --table \"0 $(blockdev --getsz $D) linear $D 0\"
         dmsetup suspend slow; dmsetup resume slow; dmsetup remove --retry slow; udevadm control --start-exec-queue",
    ),
    state(
        "its end cannot be read",
        "n=$(($(blockdev --getsz $D) - 8))
         printf '0 %s linear %s 0\n%s 8 error\n' $n $D $n | dmsetup create cut; echo /dev/mapper/cut",
        "no",
        &["mapped", "unreadable"],
        "dmsetup remove --retry cut",
    ),
    state(
        "a disk that fails for a minute at a time",
        "dmsetup create ill --table \"0 $(blockdev --getsz $D) flakey $D 0 0 60\"; echo /dev/mapper/ill",
        "no",
        &["mapped", "unreadable"],
        "dmsetup remove --retry ill",
    ),
    state(
        "a PV of a group without an active volume",
        "vgcreate -q g $D >&2; echo $D",
        "no",
        &["lvm-pv"],
        "vgremove -qy g",
    ),
];
