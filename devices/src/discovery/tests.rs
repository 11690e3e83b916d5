use super::made_up::MadeUp;
use super::*;
use crate::{Bytes, DeviceNumber};

const SCSI: &str = "pci0000:00/0000:00:05.0/host0/target0:0:0/0:0:0:0/block";

#[test]
fn sysfs_and_udev_together_tell_what_a_disk_is_known_by() {
    let mut host = MadeUp::new();
    let minor = host.device(
        &format!("{SCSI}/sdb"),
        &[
            ("device/wwid", "naa.5000C500A1B2C3D4\n"),
            ("device/vendor", "SEAGATE \n"),
            ("device/model", "ST4000NM0025    \n"),
            ("device/vpd_pg80", "\0\u{80}\0\u{8} ZC1234 "),
            ("device/state", "running\n"),
            ("queue/rotational", "1\n"),
            ("queue/logical_block_size", "4096\n"),
            ("queue/physical_block_size", "4096\n"),
            ("diskseq", "9\n"),
        ],
    );
    host.udev(minor, "S:disk/by-id/wwn-0x5000c500a1b2c3d4\nI:1\nE:ID_FS_TYPE=ext4\n");
    let disk = host.discovery().disk("sdb").unwrap();
    assert_eq!(disk.number, DeviceNumber { major: 240, minor });
    assert_eq!((disk.size, disk.logical_sector), (Bytes::gib(20), Bytes::new(4096)));
    assert_eq!(disk.transport, Some(Transport::Scsi));
    assert_eq!(disk.identity.wwn.as_deref(), Some("0x5000c500a1b2c3d4"));
    assert_eq!(disk.identity.model.as_deref(), Some("ST4000NM0025"));
    assert_eq!(disk.key().unwrap().as_str(), "wwn:0x5000c500a1b2c3d4");
    assert_eq!(disk.links, [host.root().join("dev/disk/by-id/wwn-0x5000c500a1b2c3d4")]);
    assert_eq!((disk.udev, disk.fault, disk.sequence), (Udev::Done, None, Some(9)));
    assert!(disk.rotational && !disk.read_only && !disk.removable);
}

#[test]
fn the_key_is_the_same_with_udev_and_without_and_under_another_name() {
    let mut with = MadeUp::new();
    let minor = with.device(&format!("{SCSI}/sdb"), &[("device/wwid", "naa.5000c500a1b2c3d4\n")]);
    with.udev(minor, "I:1\nE:ID_WWN=0x5000c500a1b2c3d4\nE:ID_SERIAL_SHORT=5000c500a1b2c3d4\n");
    let mut without = MadeUp::new();
    without.device(&format!("{SCSI}/sdz"), &[("device/wwid", "naa.5000c500a1b2c3d4\n")]);
    let key = |host: &MadeUp, name: &str| host.discovery().disk(name).unwrap().key();
    assert_eq!(key(&with, "sdb"), key(&without, "sdz"));
}

#[test]
fn what_a_device_says_of_itself_cannot_upset_a_terminal() {
    let mut host = MadeUp::new();
    host.device("virtio0/block/vda", &[("serial", "a\u{1b}[31mb\n")]);
    assert_eq!(host.discovery().disk("vda").unwrap().identity.serial.as_deref(), Some("a[31mb"));
}

#[test]
fn a_stack_is_followed_to_its_bottom_and_top() {
    let mut host = MadeUp::new();
    host.device("virtio0/block/vda", &[]);
    host.device(
        "virtio0/block/vda/vda1",
        &[("partition", "1\n"), ("start", "2048\n"), ("holders/md0/x", "")],
    );
    host.device("virtio1/block/vdb", &[("holders/md0/x", "")]);
    host.device(
        "virtual/block/md0",
        &[("md/level", "raid1\n"), ("slaves/vda1/x", ""), ("slaves/vdb/x", ""), ("holders/dm-0/x", "")],
    );
    host.device(
        "virtual/block/dm-0",
        &[("dm/name", "data-db\n"), ("dm/uuid", "LVM-x\n"), ("dm/suspended", "0\n"), ("slaves/md0/x", "")],
    );
    let inventory = host.inventory();
    let names = |disks: Vec<&Disk>| disks.into_iter().map(|disk| disk.name.clone()).collect::<Vec<_>>();
    let by_name = |name: &str| inventory.by_name(name).unwrap();
    assert_eq!(names(inventory.all_below(by_name("dm-0"))), ["md0", "vda1", "vdb", "vda"]);
    assert_eq!(names(inventory.all_above(by_name("vda"))), ["vda1", "md0", "dm-0"]);
    assert!(inventory.overlap(by_name("vda"), by_name("dm-0")));
    assert!(!inventory.overlap(by_name("vda"), by_name("vdb")));
    assert_eq!((by_name("md0").type_word(), by_name("dm-0").type_word()), ("raid1", "lvm"));
    let DiskType::Partition(partition) = &by_name("vda1").kind else { panic!("vda1 is a partition") };
    assert_eq!((partition.number, partition.disk.as_str()), (1, "vda"));
    assert_eq!(by_name("vda").partitions, ["vda1"]);
}

#[test]
fn a_ring_of_holders_ends() {
    let mut host = MadeUp::new();
    host.device("virtual/block/dm-0", &[("slaves/dm-1/x", ""), ("holders/dm-1/x", "")]);
    host.device("virtual/block/dm-1", &[("slaves/dm-0/x", ""), ("holders/dm-0/x", "")]);
    let inventory = host.inventory();
    assert_eq!(inventory.all_below(inventory.by_name("dm-0").unwrap()).len(), 1);
}

#[test]
fn a_loop_device_lies_on_the_disk_of_its_file() {
    let mut host = MadeUp::new();
    let minor = host.device("virtio0/block/vda", &[]);
    host.device("virtual/block/loop0", &[("loop/backing_file", "/srv/images/a\n")]);
    host.device("virtual/block/loop1", &[("loop/backing_file", "/srv/images/b (deleted)\n")]);
    host.device("virtual/block/loop2", &[("size", "0\n")]);
    host.mount(minor, "/srv");
    let inventory = host.inventory();
    let kind = |name: &str| inventory.by_name(name).unwrap().kind.clone();
    assert_eq!(inventory.by_name("loop0").unwrap().below, ["vda"]);
    let DiskType::Loop(Some(file)) = kind("loop1") else { panic!("loop1 has a file") };
    assert!(file.deleted && file.path == std::path::Path::new("/srv/images/b"));
    assert_eq!(kind("loop2"), DiskType::Loop(None));
}

#[test]
fn names_are_sorted_as_people_count() {
    let mut host = MadeUp::new();
    for name in ["sda10", "sda2", "sdb", "sda"] {
        host.device(&format!("virtio0/block/{name}"), &[]);
    }
    let names: Vec<String> = host.inventory().iter().map(|disk| disk.name.clone()).collect();
    assert_eq!(names, ["sda", "sda2", "sda10", "sdb"]);
}

#[test]
fn a_path_hidden_inside_an_nvme_multipath_device_is_no_disk() {
    let mut host = MadeUp::new();
    host.device("virtual/nvme-subsystem/nvme-subsys0/nvme0c0n1", &[("hidden", "1\n")]);
    assert_eq!(host.discovery().disk("nvme0c0n1"), None);
}

#[test]
fn a_broken_mount_table_is_an_error_and_not_a_host_without_mounts() {
    let host = MadeUp::new();
    std::fs::write(host.root().join("proc/self/mountinfo"), "rubbish\n").unwrap();
    let error = host.discovery().inventory().unwrap_err();
    assert_eq!(error.kind(), crate::Kind::Inconsistent);
}
