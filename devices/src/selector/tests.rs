use super::*;
use crate::discovery::made_up::MadeUp;

fn pattern(text: &str) -> Pattern {
    text.parse().unwrap()
}

fn host() -> MadeUp {
    let mut host = MadeUp::new();
    for (name, rotational) in [("sda", "0\n"), ("sdb", "1\n"), ("sdc", "1\n")] {
        let wwid = format!("naa.500000000000000{}\n", &name[2..]);
        let place = format!("end_device-0:0/host0/block/{name}");
        host.device(&place, &[("queue/rotational", rotational), ("device/wwid", &wwid)]);
    }
    host.device("end_device-0:0/host0/block/sda/sda1", &[("partition", "1\n")]);
    host.device("end_device-0:0/host0/block/sda/sda2", &[("partition", "2\n")]);
    host.device("host1/block/sdd", &[("device/wwid", "naa.500000000000000c\n")]);
    for name in ["loop2", "loop20", "loop22"] {
        host.device(&format!("virtual/block/{name}"), &[("loop/backing_file", "/srv/x\n")]);
    }
    host
}

fn chosen(selector: &Selector, inventory: &Inventory) -> Vec<String> {
    let all = inventory.iter().filter(|disk| selector.selects(inventory, disk).is_some());
    all.map(|disk| disk.name.clone()).collect()
}

fn by_name(text: &str) -> Selector {
    Selector::new().matching(Match::new().name(pattern(text)))
}

#[test]
fn every_property_that_is_given_must_hold() {
    let inventory = host().inventory();
    let sas = Match::new().transport(Transport::Sas);
    let cases = [
        (sas.clone(), vec!["sdb", "sdc"]),
        (sas.clone().rotational(false), vec![]),
        (sas.clone().name(pattern("sda[0-9]")), vec!["sda1", "sda2"]),
        (sas.clone().wwn(pattern("0x.*c")), vec!["sdc"]),
        (sas.clone().max_size(Bytes::gib(19)), vec![]),
        (sas.clone().min_size(Bytes::gib(20)).max_size(Bytes::gib(20)), vec!["sdb", "sdc"]),
        (sas.clone().serial(pattern(".*")), vec![]),
        (sas.model(pattern(".*")), vec![]),
    ];
    for (wanted, expected) in cases {
        assert_eq!(chosen(&Selector::new().matching(wanted.clone()), &inventory), expected, "{wanted:?}");
    }
}

#[test]
fn expressions_of_carina_take_what_the_table_says() {
    let inventory = host().inventory();
    assert_eq!(chosen(&by_name("sd[b-z]"), &inventory), ["sdb", "sdc", "sdd"]);
    assert_eq!(chosen(&by_name("loop2+"), &inventory), ["loop2", "loop22"]);
    assert_eq!(chosen(&by_name("loop2[0-9]*"), &inventory), ["loop2", "loop20", "loop22"]);
}

#[test]
fn a_loop_device_counts_as_named_only_by_a_pattern_for_loop_devices() {
    let inventory = host().inventory();
    let disk = inventory.by_name("loop2").unwrap();
    assert_eq!(by_name("loop2+").selects(&inventory, disk), Some(Chosen::ByName));
    assert_eq!(by_name(".*").selects(&inventory, disk), Some(Chosen::ByProperty));
}

#[test]
fn a_selector_that_would_take_everything_or_nothing_is_refused() {
    let check = |selector: Selector| selector.check().map_err(|error| error.kind());
    assert_eq!(check(Selector::new()), Err(Kind::InvalidArgument));
    assert_eq!(check(Selector::new().matching(Match::new())), Err(Kind::InvalidArgument));
    assert_eq!(check(Selector::new().path("sdb")), Err(Kind::InvalidArgument));
    let sizes = Match::new().min_size(Bytes::gib(2)).max_size(Bytes::gib(1));
    assert_eq!(check(Selector::new().matching(sizes)), Err(Kind::InvalidArgument));
    assert_eq!(check(by_name("sd[b-z]")), Ok(()));
}

/// What each class gets, and what it is refused.
fn divided(inventory: &Inventory, selectors: &[(&str, &Selector)]) -> Vec<(Vec<String>, Vec<String>)> {
    let classes: Vec<Class<'_>> = selectors.iter().map(|(name, selector)| Class { name, selector }).collect();
    let name = |disk: &Disk| disk.name.clone();
    divide(&classes, inventory)
        .iter()
        .map(|class| {
            let got = class.disks.iter().map(|selected| name(selected.disk)).collect();
            (got, class.contested.iter().map(|contested| name(contested.disk)).collect())
        })
        .collect()
}

#[test]
fn a_disk_that_two_classes_want_goes_to_neither_whichever_comes_first() {
    let inventory = host().inventory();
    let (fast, slow) = (by_name("sd[ab]"), by_name("sdb"));
    let strings = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let one = (strings(&["sda"]), strings(&["sdb"]));
    let other = (strings(&[]), strings(&["sdb"]));
    assert_eq!(divided(&inventory, &[("fast", &fast), ("slow", &slow)]), [one.clone(), other.clone()]);
    assert_eq!(divided(&inventory, &[("slow", &slow), ("fast", &fast)]), [other, one]);
}

#[test]
fn storage_is_compared_and_not_text() {
    let inventory = host().inventory();
    let contested = |one: &str, other: &str| {
        let (one, other) = (by_name(one), by_name(other));
        !divided(&inventory, &[("one", &one), ("other", &other)])[0].1.is_empty()
    };
    // The second path to the same disk; a disk and its partition; two partitions of one disk.
    assert!(contested("sdc", "sdd"));
    assert!(contested("sda", "sda1"));
    assert!(!contested("sda2", "sda1"));
}

#[test]
fn a_disk_with_partitions_does_not_bar_another_class_from_a_named_partition() {
    let inventory = host().inventory();
    let all = Selector::new().matching(Match::new().transport(Transport::Sas));
    let part = by_name("sda2");
    let result = divided(&inventory, &[("all", &all), ("part", &part)]);
    assert_eq!(result[1], (vec!["sda2".to_owned()], Vec::new()));
}

#[test]
fn a_path_that_leads_nowhere_is_missing_unless_it_is_optional() {
    let inventory = host().inventory();
    let selector = Selector::new().path("/no/such/disk").optional_path("/no/such/disk-2");
    let classes = [Class { name: "a", selector: &selector }];
    let missing = &divide(&classes, &inventory)[0].missing;
    assert_eq!(missing, &[PathBuf::from("/no/such/disk")]);
}
