use super::*;
use crate::discovery::DiskType;
use crate::discovery::made_up::MadeUp;
use crate::probe::whole::{Entry, Whole};

/// The reasons that show without opening the device.
fn words(host: &MadeUp, name: &str) -> Vec<&'static str> {
    let inventory = host.inventory();
    let disk = inventory.by_name(name).unwrap();
    let eligibility = Assessor::default().without_probing(&inventory, disk);
    eligibility.reasons().iter().map(Reason::as_word).collect()
}

#[test]
fn nothing_speaks_against_a_disk_of_nobody() {
    let mut host = MadeUp::new();
    host.device("virtio0/block/vda", &[]);
    assert_eq!(words(&host, "vda"), [""; 0]);
}

/// A device's place, its attributes, and the reasons that it must have.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);

#[test]
fn each_kind_and_state_has_its_reason() {
    let cases: [Case<'_>; 25] = [
        ("virtio0/block/vda", &[("size", "2048\n")], &["too-small"]),
        ("virtio0/block/vda", &[("size", "0\n")], &["no-medium"]),
        ("virtio0/block/vda", &[("ro", "1\n")], &["read-only"]),
        ("virtio0/block/vda", &[("removable", "1\n")], &["removable"]),
        ("virtio0/block/vda", &[("device/state", "transport-offline\n")], &["fault"]),
        ("virtio0/block/vda", &[("queue/zoned", "host-managed\n")], &["zoned"]),
        ("virtio0/block/vda", &[("bcache/x", "")], &["bcache"]),
        ("virtio0/block/vda", &[("holders/zd0/x", "")], &["held"]),
        ("host0/block/sr0", &[("device/type", "5\n"), ("removable", "1\n")], &["no-disk"]),
        ("virtual/block/zram0", &[], &["no-disk"]),
        ("virtual/block/ram0", &[], &["no-disk"]),
        ("virtual/block/nbd0", &[], &["network"]),
        ("virtual/block/drbd1", &[], &["network"]),
        // While it comes or goes.
        ("virtual/block/dm-0", &[], &["mapped", "suspended"]),
        ("virtual/block/md127", &[], &["array"]),
        ("virtual/block/rnbd0", &[], &["network"]),
        ("virtual/block/etherd!e0.1", &[], &["network"]),
        ("virtual/block/zd16", &[], &["offered"]),
        ("virtual/block/ublkb0", &[], &["offered"]),
        ("virtual/block/nullb0", &[], &["no-disk"]),
        ("virtual/block/mtdblock2", &[], &["no-disk"]),
        ("virtual/block/ubiblock0_1", &[], &["no-disk"]),
        ("virtual/block/md0", &[("md/level", "raid1\n")], &["array"]),
        ("virtual/block/bcache0", &[], &["cached"]),
        ("virtual/block/dm-0", &[("dm/name", "x\n"), ("dm/suspended", "1\n")], &["mapped", "suspended"]),
    ];
    for (place, attributes, expected) in cases {
        let mut host = MadeUp::new();
        host.device(place, attributes);
        assert_eq!(words(&host, place.rsplit('/').next().unwrap()), expected, "{place} {attributes:?}");
    }
}

#[test]
fn what_uses_a_disk_is_a_reason() {
    let mut host = MadeUp::new();
    let minor = host.device("virtio0/block/vda", &[]);
    host.device("virtio1/block/vdb", &[]);
    host.mount(minor, "/srv/a\\040b");
    host.swap("vdb");
    assert_eq!((words(&host, "vda"), words(&host, "vdb")), (vec!["mounted"], vec!["swap"]));
    let inventory = host.inventory();
    let mounted = Assessor::default().without_probing(&inventory, inventory.by_name("vda").unwrap());
    assert_eq!(mounted.to_string(), "mounted at /srv/a b");
}

#[test]
fn holders_are_told_by_what_they_are() {
    let mut host = MadeUp::new();
    for (name, holder) in
        [("vda", "dm-0"), ("vdb", "dm-1"), ("vdc", "dm-2"), ("vdd", "md0"), ("vde", "bcache0")]
    {
        host.device(&format!("virtio0/block/{name}"), &[(&format!("holders/{holder}/x"), ""), ("x", "")]);
    }
    let mapped = |host: &mut MadeUp, name: &str, dm_name: &str, uuid: &str| {
        let place = format!("virtual/block/{name}");
        host.device(&place, &[("dm/name", dm_name), ("dm/uuid", uuid), ("dm/suspended", "0\n")]);
    };
    mapped(&mut host, "dm-0", "my--data-db", "LVM-abc");
    mapped(&mut host, "dm-1", "mpatha", "mpath-3600");
    mapped(&mut host, "dm-2", "luks-x", "CRYPT-LUKS2-x");
    host.device("virtual/block/md0", &[("md/level", "raid1\n")]);
    host.device("virtual/block/bcache0", &[]);
    let text = |name: &str| {
        let inventory = host.inventory();
        Assessor::default().without_probing(&inventory, inventory.by_name(name).unwrap()).to_string()
    };
    assert_eq!(text("vda"), "LVM PV of group my-data");
    assert_eq!(text("vdb"), "one path of the multipath device mpatha");
    assert_eq!(text("vdc"), "in use by luks-x");
    assert_eq!(text("vdd"), "RAID member of md0 (linux_raid_member)");
    assert_eq!(text("vde"), "member of the bcache device bcache0");
    assert_eq!(text("dm-0"), "the LVM volume my-data/db");
}

#[test]
fn two_paths_to_one_disk_are_one_disk() {
    let mut host = MadeUp::new();
    let wwid = ("device/wwid", "naa.5000c500a1b2c3d4\n");
    host.device("host0/block/sda", &[wwid]);
    host.device("host1/block/sdb", &[wwid]);
    host.device("host2/block/sdc", &[("device/wwid", "naa.5000c500a1b2c3d5\n")]);
    assert_eq!((words(&host, "sda"), words(&host, "sdb")), (vec!["other-path"], vec!["other-path"]));
    assert_eq!(words(&host, "sdc"), [""; 0]);
    let inventory = host.inventory();
    let by_name = |name: &str| inventory.by_name(name).unwrap();
    assert!(inventory.overlap(by_name("sda"), by_name("sdb")));
}

#[test]
fn partitions_that_firmware_needs_and_those_of_a_disk_in_use_are_refused() {
    let mut host = MadeUp::new();
    let disk = host.device("virtio0/block/vda", &[]);
    for (number, note) in [
        (1, "E:ID_PART_ENTRY_TYPE=c12a7328-f81f-11d2-ba4b-00a0c93ec93b\n"),
        (2, "E:ID_PART_ENTRY_NAME=Microsoft\\x20reserved\\x20partition\n"),
        (3, "E:ID_PART_ENTRY_TYPE=0x5\n"),
        (4, "E:ID_PART_ENTRY_TYPE=0fc63daf-8483-4772-8e79-3d69d8477de4\n"),
    ] {
        let place = format!("virtio0/block/vda/vda{number}");
        let minor = host.device(&place, &[("partition", &format!("{number}\n"))]);
        host.udev(minor, note);
    }
    assert_eq!(words(&host, "vda"), ["partition-table"]);
    assert_eq!(words(&host, "vda1"), ["boot-partition"]);
    assert_eq!(words(&host, "vda2"), ["boot-partition"]);
    assert_eq!(words(&host, "vda3"), ["extended-partition"]);
    assert_eq!(words(&host, "vda4"), [""; 0]);
    host.mount(disk, "/srv");
    assert_eq!(words(&host, "vda4"), ["disk-in-use"]);
}

#[test]
fn loops_are_only_used_by_name_and_never_those_of_kubelet_or_of_removed_files() {
    let cases = [
        ("/srv/disk.img", "loop", Verdict::OnlyByName),
        ("/srv/disk.img (deleted)", "loop-deleted", Verdict::NotEligible),
        (
            "/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/x/dev/y",
            "loop-of-kubelet",
            Verdict::NotEligible,
        ),
        ("/data/kubelet/pods/x", "loop-of-kubelet", Verdict::NotEligible),
    ];
    for (file, word, verdict) in cases {
        let mut host = MadeUp::new();
        host.device("virtual/block/loop0", &[("loop/backing_file", file)]);
        let inventory = host.inventory();
        let eligibility =
            Assessor::default().without_probing(&inventory, inventory.by_name("loop0").unwrap());
        assert_eq!((eligibility.reasons()[0].as_word(), eligibility.verdict()), (word, verdict), "{file}");
    }
}

#[test]
fn a_device_whose_node_is_missing_is_not_eligible() {
    let mut host = MadeUp::new();
    host.device("virtio0/block/vda", &[]);
    let inventory = host.inventory();
    let eligibility = Assessor::default().assess(&inventory, inventory.by_name("vda").unwrap());
    assert!(matches!(eligibility.reasons(), [Reason::Unreadable { .. }]), "{eligibility}");
}

#[test]
fn a_suspended_device_is_not_opened_even_when_asked_to_look() {
    let mut host = MadeUp::new();
    host.device("virtual/block/dm-0", &[("dm/name", "x\n"), ("dm/suspended", "1\n")]);
    let inventory = host.inventory();
    let looked = Prober::new(Duration::from_secs(1)).start(inventory.by_name("dm-0").unwrap()).wait();
    // To open it would have given another answer, for there is no node.
    assert_eq!(looked, Err(Reason::Suspended));
}

#[test]
fn nothing_that_is_made_of_a_suspended_device_is_looked_at_however_many_levels_deep() {
    let mut host = MadeUp::new();
    let mapped = |host: &mut MadeUp, name: &str, suspended: &str, below: Option<&str>| {
        let slaves = below.map(|below| format!("slaves/{below}/x")).unwrap_or_default();
        let mut attributes = vec![("dm/name", name), ("dm/suspended", suspended)];
        attributes.extend(below.map(|_| (slaves.as_str(), "")));
        host.device(&format!("virtual/block/{name}"), &attributes)
    };
    let bottom = mapped(&mut host, "dm-0", "1\n", None);
    mapped(&mut host, "dm-1", "0\n", Some("dm-0"));
    mapped(&mut host, "dm-2", "0\n", Some("dm-1"));
    mapped(&mut host, "dm-3", "0\n", None);
    host.device("virtual/block/loop0", &[("loop/backing_file", "/srv/image\n")]);
    host.mount(bottom, "/srv");
    assert_eq!(words(&host, "dm-0"), ["mapped", "suspended", "mounted"]);
    assert_eq!(words(&host, "dm-1"), ["mapped", "suspended-below"]);
    assert_eq!(words(&host, "dm-2"), ["mapped", "suspended-below"]);
    assert_eq!(words(&host, "dm-3"), ["mapped"]);
    assert_eq!(words(&host, "loop0"), ["loop", "suspended-below"]);
    let inventory = host.inventory();
    let top = Assessor::default().without_probing(&inventory, inventory.by_name("dm-2").unwrap());
    assert_eq!((top.verdict(), top.to_string().contains("made of dm-0")), (Verdict::NotEligible, true));
}

/// A partition with this entry in its disk's table, and what is on the disk as a whole.
fn against(number: u32, entry: (u32, &str, &str), probed: Probed) -> Vec<String> {
    let mut host = MadeUp::new();
    host.device("virtio0/block/vda", &[]);
    host.device("virtio0/block/vda/vda1", &[("partition", &format!("{number}\n"))]);
    let inventory = host.inventory();
    let DiskType::Partition(partition) = &inventory.by_name("vda1").unwrap().kind else { panic!() };
    let (number, type_code, label) = (entry.0, entry.1.to_owned(), entry.2.to_owned());
    let whole = Whole { probed, entries: vec![Entry { number, type_code, label }] };
    against_by_whole(partition, &whole).iter().map(ToString::to_string).collect()
}

fn on_the_disk(usage: Usage, kind: &str) -> Signature {
    Signature { kind: kind.to_owned(), usage, label: None, uuid: None, offset: None }
}

#[test]
fn a_partition_is_judged_by_what_is_on_its_disk() {
    let gpt = || on_the_disk(Usage::PartitionTable, "gpt");
    let linux = (1, "0fc63daf-8483-4772-8e79-3d69d8477de4", "");
    assert_eq!(against(1, linux, Probed::Found(vec![gpt()])), [""; 0]);
    let raid = Probed::Found(vec![on_the_disk(Usage::Raid, "isw_raid_member"), gpt()]);
    assert_eq!(against(1, linux, raid), ["its disk vda is used as a whole: RAID member (isw_raid_member)"]);
    let two = Probed::Ambiguous(vec![gpt(), on_the_disk(Usage::Filesystem, "ext4")]);
    assert!(against(1, linux, two)[0].contains("contradicting"));
    assert!(against(2, linux, Probed::Found(vec![gpt()]))[0].contains("does not name the partition"));
}

#[test]
fn the_table_on_the_disk_tells_boot_partitions_where_udevd_does_not_run() {
    let found = || Probed::Found(vec![on_the_disk(Usage::PartitionTable, "gpt")]);
    for (type_code, label) in [
        ("21686148-6449-6E6F-744E-656564454649", ""),
        ("e3c9e316-0b5c-4db8-817d-f92df00215ae", "Microsoft reserved partition"),
        ("0fc63daf-8483-4772-8e79-3d69d8477de4", "BIOS boot"),
    ] {
        assert!(against(1, (1, type_code, label), found())[0].starts_with("boot or reserved"), "{type_code}");
    }
    assert_eq!(against(1, (1, "0xf", ""), found()), ["extended partition"]);
}

#[test]
fn a_partition_is_what_its_disk_is() {
    let kubelet = "/var/lib/kubelet/plugins/kubernetes.io/csi/x/dev/y\n";
    let cases: [Case<'_>; 6] = [
        ("virtual/block/loop0", &[("loop/backing_file", kubelet)], &["loop-of-kubelet"]),
        ("virtual/block/loop0", &[("loop/backing_file", "/srv/image\n")], &["loop"]),
        ("virtual/block/nbd0", &[], &["network"]),
        ("virtual/block/md0", &[("md/level", "raid1\n")], &["array"]),
        ("virtual/block/bcache0", &[], &["cached"]),
        ("virtual/block/zd0", &[], &["offered"]),
    ];
    for (place, attributes, expected) in cases {
        let mut host = MadeUp::new();
        host.device(place, attributes);
        let name = format!("{}p1", place.rsplit('/').next().unwrap());
        host.device(&format!("{place}/{name}"), &[("partition", "1\n")]);
        assert_eq!(words(&host, &name), expected, "{name}");
    }
}
