//! Mappings and partitions.

use super::{State, state};

pub(crate) const ALL: [State; 21] = [
    state(
        "under a mapping",
        "dmsetup create top --table \"0 8388608 linear $D 0\"; echo $D",
        "no",
        &["held"],
        "dmsetup remove --retry top",
    ),
    state(
        "a mapping",
        "dmsetup create top --table \"0 8388608 linear $D 0\"; echo /dev/mapper/top",
        "by-name",
        &["mapped"],
        "dmsetup remove --retry top",
    ),
    state(
        "a suspended mapping",
        "dmsetup create top --table \"0 8388608 linear $D 0\"; udevadm settle; dmsetup suspend top; \
         echo /dev/mapper/top",
        "no",
        &["mapped", "suspended"],
        "dmsetup resume top; dmsetup remove --retry top",
    ),
    state(
        "opened encryption",
        "dmsetup create open --uuid CRYPT-PLAIN-open --table \
         \"0 8388608 crypt aes-cbc-plain 0123456789abcdef0123456789abcdef 0 $D 0\"; echo /dev/mapper/open",
        "by-name",
        &["mapped"],
        "dmsetup remove --retry open",
    ),
    state(
        "one path of a multipath device",
        "modprobe dm-multipath; dmsetup create mp --uuid mpath-rig --table \
         \"0 8388608 multipath 0 0 1 1 round-robin 0 2 0 $D $E\"; echo $E",
        "no",
        &["multipath-leg"],
        "dmsetup remove --retry mp",
    ),
    state(
        "a multipath device",
        "modprobe dm-multipath; dmsetup create mp --uuid mpath-rig --table \
         \"0 8388608 multipath 0 0 1 1 round-robin 0 2 0 $D $E\"; echo /dev/mapper/mp",
        "by-name",
        &["mapped"],
        "dmsetup remove --retry mp",
    ),
    state(
        "a disk with a blank partition",
        "sgdisk -n 1:0:+2G $D >&2; udevadm settle; echo $D",
        "no",
        &["partition-table"],
        "sgdisk -Z $D; blockdev --rereadpt $D",
    ),
    state(
        "a blank partition",
        "sgdisk -n 1:0:+2G $D >&2; udevadm settle; echo ${D}1",
        "yes",
        &[],
        "sgdisk -Z $D; blockdev --rereadpt $D",
    ),
    state(
        "a partition that is too small",
        "sgdisk -n 1:0:+100M $D >&2; udevadm settle; echo ${D}1",
        "no",
        &["too-small"],
        "sgdisk -Z $D; blockdev --rereadpt $D",
    ),
    state(
        "the EFI system partition",
        "sgdisk -n 1:0:+2G -t 1:ef00 -c 1:x $D >&2; udevadm settle; echo ${D}1",
        "no",
        &["boot-partition"],
        "sgdisk -Z $D; blockdev --rereadpt $D",
    ),
    state(
        "a partition whose name says that it is reserved",
        "sgdisk -n 1:0:+2G -c '1:Vendor Reserved area' $D >&2; udevadm settle; echo ${D}1",
        "no",
        &["boot-partition"],
        "sgdisk -Z $D; blockdev --rereadpt $D",
    ),
    state(
        "an extended partition",
        "printf '\\000\\000\\000\\000\\005\\000\\000\\000\\000\\010\\000\\000\\000\\000\\200\\000' | \
         dd of=$D bs=1 seek=446 conv=fsync status=none
         printf '\\125\\252' | dd of=$D bs=1 seek=510 conv=fsync status=none
         blockdev --rereadpt $D; udevadm settle; echo ${D}1",
        "no",
        &["too-small", "extended-partition"],
        "dd if=/dev/zero of=$D bs=512 count=1 conv=fsync status=none; blockdev --rereadpt $D",
    ),
    state(
        "a disk with a mounted partition",
        "sgdisk -n 1:0:+2G $D >&2; udevadm settle; mkfs.ext4 -qF ${D}1; mkdir $T/m; mount ${D}1 $T/m; echo $D",
        "no",
        &["partition-table"],
        "umount $T/m; sgdisk -Z $D; blockdev --rereadpt $D",
    ),
    state(
        "a partition of a disk that is used as a whole",
        "sgdisk -n 1:0:+2G $D >&2; udevadm settle; dmsetup create top --table \"0 8388608 linear $D 0\"; echo ${D}1",
        "no",
        &["disk-in-use"],
        "dmsetup remove --retry top; sgdisk -Z $D; blockdev --rereadpt $D",
    ),
    state(
        "two levels above a suspended mapping",
        "dmsetup create low --table \"0 8388608 linear $D 0\"
         dmsetup create middle --table \"0 8388608 linear /dev/mapper/low 0\"
         dmsetup create top --table \"0 8388608 linear /dev/mapper/middle 0\"
         udevadm settle; dmsetup suspend low; echo /dev/mapper/top",
        "no",
        &["mapped", "suspended-below"],
        "dmsetup resume low; dmsetup remove --retry top; dmsetup remove --retry middle; dmsetup remove --retry low",
    ),
    state(
        "a file on a filesystem whose disk is suspended",
        "dmsetup create low --table \"0 8388608 linear $D 0\"
         mkfs.ext4 -qF /dev/mapper/low; mkdir $T/m; mount /dev/mapper/low $T/m; truncate -s 2G $T/m/a
         l=$(losetup -f --show $T/m/a); echo $l >$T/name; udevadm settle; dmsetup suspend low; echo $l",
        "no",
        &["loop", "suspended-below"],
        "dmsetup resume low; losetup -d $(cat $T/name); umount $T/m; dmsetup remove --retry low",
    ),
    state(
        "a partition of a disk that a RAID controller labelled",
        "sgdisk -n 1:0:+2G $D >&2
         printf 'Intel Raid ISM Cfg Sig. 1.0.00' | dd of=$D bs=1 conv=fsync,notrunc status=none \
           seek=$(($(blockdev --getsize64 $D) - 1024))
         udevadm settle; echo ${D}1",
        "no",
        &["disk-in-use"],
        "sgdisk -Z $D; blockdev --rereadpt $D",
    ),
    state(
        "a boot partition that udevd has not noted",
        "sgdisk -n 1:0:+2G -t 1:ef02 $D >&2; udevadm settle
         rm /run/udev/data/b$(cat /sys/class/block/${D#/dev/}1/dev); echo ${D}1",
        "no",
        &["boot-partition"],
        "sgdisk -Z $D; blockdev --rereadpt $D",
    ),
    state(
        "a partition that only the kernel knows",
        "addpart $D 1 2048 4194304; echo ${D}1",
        "no",
        &["disk-unknown"],
        "delpart $D 1",
    ),
    state(
        "a partition of a disk whose end cannot be read",
        "sgdisk -n 1:0:+2G $D >&2; udevadm settle; n=$(($(blockdev --getsz $D) - 8))
         printf '0 %s linear %s 0\n%s 8 error\n' $n $D $n | dmsetup create cut
         l=$(losetup -P -f --show /dev/mapper/cut); echo $l >$T/name; udevadm settle; echo ${l}p1",
        "no",
        &["loop", "disk-unknown"],
        "losetup -d $(cat $T/name); dmsetup remove --retry cut; sgdisk -Z $D; blockdev --rereadpt $D",
    ),
    state(
        "a part of a pod's device",
        "d=$T/kubelet/plugins/kubernetes.io; mkdir -p $d; truncate -s 4G $d/a; sgdisk -n 1:0:+2G $d/a >&2
         l=$(losetup -P -f --show $d/a); echo $l >$T/name; udevadm settle; echo ${l}p1",
        "no",
        &["loop-of-kubelet"],
        "losetup -d $(cat $T/name)",
    ),
];
