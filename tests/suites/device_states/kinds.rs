//! What kinds of devices there are.

use super::{State, state};

pub(crate) const ALL: [State; 15] = [
    state("a blank virtio disk", "echo $D", "yes", &[], ""),
    state("a blank SCSI disk", "echo $S", "yes", &[], ""),
    state("a blank NVMe disk", "echo $N", "yes", &[], ""),
    state(
        "a CD drive without a disc",
        "modprobe sr_mod; echo /dev/sr0",
        "no",
        &["no-disk", "too-small", "read-only"],
        "",
    ),
    state(
        "a compressed memory disk",
        "modprobe zram; echo 2G >/sys/block/zram0/disksize; echo /dev/zram0",
        "no",
        &["no-disk"],
        "echo 1 >/sys/block/zram0/reset; modprobe -r zram",
    ),
    state(
        "a memory disk",
        "modprobe brd rd_nr=1 rd_size=2097152; echo /dev/ram0",
        "no",
        &["no-disk"],
        "rmmod brd",
    ),
    state(
        "a network block device without a server",
        "modprobe nbd nbds_max=1; echo /dev/nbd0",
        "no",
        &["network", "no-medium"],
        "rmmod nbd",
    ),
    state(
        "a disk that must be written zone by zone",
        "modprobe null_blk nr_devices=1 gb=2 zoned=1; echo /dev/nullb0",
        "no",
        &["no-disk", "zoned"],
        "rmmod null_blk",
    ),
    state(
        "a disk with a removable medium",
        "modprobe scsi_debug removable=1 virtual_gb=2 dev_size_mb=8;          echo /dev/$(ls /sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*/block)",
        "by-name",
        &["removable"],
        "rmmod scsi_debug",
    ),
    state(
        "one of two paths to the same disk, which nothing has joined",
        "modprobe scsi_debug add_host=2 vpd_use_hostno=0 virtual_gb=2 dev_size_mb=8;          echo /dev/$(ls /sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*/block)",
        "no",
        &["other-path"],
        "rmmod scsi_debug",
    ),
    state(
        "a file as a disk",
        "truncate -s 2G $T/a; losetup -f --show $T/a",
        "by-name",
        &["loop"],
        "losetup -d $(losetup -nO NAME -j $T/a)",
    ),
    state(
        "a file as a disk that cannot be written",
        "truncate -s 2G $T/a; losetup -r -f --show $T/a",
        "no",
        &["loop", "read-only"],
        "losetup -d $(losetup -nO NAME -j $T/a)",
    ),
    state(
        "a file as a disk, removed since",
        "truncate -s 2G $T/a; losetup -f --show $T/a | tee $T/name; rm $T/a",
        "no",
        &["loop-deleted"],
        "losetup -d $(cat $T/name)",
    ),
    state(
        "the device that kubelet makes for a pod",
        "d=$T/kubelet/plugins/kubernetes.io; mkdir -p $d; truncate -s 2G $d/a; losetup -f --show $d/a",
        "no",
        &["loop-of-kubelet"],
        "losetup -d $(losetup -nO NAME -j $T/kubelet/plugins/kubernetes.io/a)",
    ),
    state(
        "a loop device without a file, as a detached pod leaves it",
        "truncate -s 2G $T/a; l=$(losetup -f --show $T/a); losetup -d $l; echo $l",
        "no",
        &["no-medium"],
        "",
    ),
];
