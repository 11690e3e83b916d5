use devices::Bytes;
use devices::filesystem::FsType;

use super::*;
use crate::Kind;

const FULL: &str = r#"
apiVersion: gabion.dev/v1alpha1
kind: DeviceClass
metadata: {name: fast, labels: {a: b}, generation: 3}
spec:
  default: true
  nodeSelector: {}
  devices:
    paths: [/dev/disk/by-id/a]
    optionalPaths: []
    match:
      - {name: "nvme[0-9]n1", model: "", serial: "", wwn: "", transport: nvme, rotational: false, minSize: 10Gi, maxSize: 8Ti}
    discovery: Static
    wipe: Never
  pool:
    thin: {volumeGroup: gabion-fast, poolName: pool, sizePercent: 90, chunkSize: Auto, metadataSize: Auto, layout: {linear: {}},
           overprovisionRatio: 10, autoExtend: {threshold: 80, by: 20}, refuseAt: {data: 95, metadata: 80}}
  reserve: "0"
  volume: {fsType: ext4, mkfsOptions: [], mountOptions: [], rootMode: "2777", onDelete: Discard, trim: Weekly, qos: {}}
  storageClass: {create: true, name: gabion-fast, reclaimPolicy: Delete, volumeBindingMode: WaitForFirstConsumer,
                 allowVolumeExpansion: true, mountOptions: [], allowedTopologies: [], labels: {}, parameters: {}}
  snapshotClass: {create: true, deletionPolicy: Delete}
  groupSnapshots: false
"#;

fn one(yaml: &str) -> DeviceClass {
    DeviceClass::parse_all(yaml).unwrap().remove(0)
}

fn named(name: &str, spec: &str) -> String {
    format!("apiVersion: gabion.dev/v1alpha1\nkind: DeviceClass\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

#[test]
fn every_field_of_the_design_is_read() {
    let class = one(FULL);
    assert_eq!(class.volume_group().unwrap().as_str(), "gabion-fast");
    let Pool::Thin(pool) = &class.spec.pool else { panic!("{:?}", class.spec.pool) };
    assert_eq!(
        (pool.size_percent, pool.overprovision_ratio, pool.chunk_size),
        (90, Ratio(1000), AutoSize::Auto)
    );
    assert_eq!(class.spec.devices.matches[0].min_size, Some(Size(Bytes::gib(10))));
    assert_eq!(class.spec.volume.fs_type, Some(FsType::Ext4));
    assert_eq!(class.spec.volume.root_mode, RootMode(0o2777));
}

#[test]
fn a_short_class_has_the_defaults_of_a_long_one() {
    let short = one(&named("fast", "{devices: {paths: [/dev/disk/by-id/a]}}"));
    let Pool::Thin(pool) = &short.spec.pool else { panic!("{:?}", short.spec.pool) };
    assert_eq!(*pool, ThinPool::default());
    assert_eq!(short.volume_group().unwrap().as_str(), "gabion-fast");
    assert_eq!(short.spec.volume.root_mode, RootMode(0o2777));
}

#[test]
fn what_is_wrong_is_named_by_its_whole_path() {
    refused_by_field(&[
        ("{devices: {path: [/dev/a]}}", "spec.devices.path"),
        (
            "{devices: {paths: [/dev/a]}, pool: {lvm: {layout: {striped: {stripes: 1}}}}}",
            "spec.pool.lvm.layout.striped.stripes",
        ),
        (
            "{devices: {paths: [/dev/a]}, pool: {lvm: {layout: {striped: {stripes: 2, stripeSize: 65Ki}}}}}",
            "spec.pool.lvm.layout.striped.stripeSize",
        ),
        ("{devices: {paths: [/dev/a]}, pool: {lvm: {volumeGroup: \"a b\"}}}", "spec.pool.lvm.volumeGroup"),
        ("{devices: {paths: [/dev/a]}, pool: {raid: {}}}", "spec.pool"),
        ("{devices: {paths: [/dev/a]}, pool: {lvm: {}, thin: {}}}", "spec.pool"),
        ("{devices: {paths: [/dev/a]}, pool: {thin: {sizePercent: 0}}}", "spec.pool.thin.sizePercent"),
        ("{devices: {paths: [/dev/a]}, pool: {thin: {sizePercent: 300}}}", "spec.pool.thin.sizePercent"),
        ("{devices: {paths: [/dev/a]}, pool: {thin: {poolName: snapshot1}}}", "spec.pool.thin.poolName"),
        (
            "{devices: {paths: [/dev/a]}, pool: {thin: {overprovisionRatio: 0.5}}}",
            "spec.pool.thin.overprovisionRatio",
        ),
        ("{devices: {paths: [/dev/a]}, pool: {thin: {chunkSize: big}}}", "spec.pool.thin.chunkSize"),
        (
            "{devices: {paths: [/dev/a]}, pool: {thin: {autoExtend: {threshold: 20}}}}",
            "spec.pool.thin.autoExtend.threshold",
        ),
        ("{devices: {paths: [dev/a]}}", "spec.devices"),
        ("{}", "spec.devices"),
        ("{devices: {match: [{}]}}", "spec.devices"),
        ("{devices: {match: [{name: \"sd(\"}]}}", "spec.devices.match[0].name"),
        ("{devices: {match: [{transport: ide}]}}", "spec.devices.match[0].transport"),
        ("{devices: {match: [{minSize: 10GiB}]}}", "spec.devices.match[0].minSize"),
        ("{devices: {paths: [/dev/a], wipe: Always}}", "spec.devices.wipe"),
        ("{devices: {paths: [/dev/a], sharedWith: fast}}", "spec.devices"),
        ("{devices: {paths: [/dev/a]}, reserve: 100%}", "spec.reserve"),
        ("{devices: {paths: [/dev/a]}, reserve: -1}", "spec.reserve"),
        ("{devices: {paths: [/dev/a]}, volume: {fsType: ntfs}}", "spec.volume.fsType"),
        ("{devices: {paths: [/dev/a]}, volume: {rootMode: \"9777\"}}", "spec.volume.rootMode"),
        ("{devices: {paths: [/dev/a]}, volume: {mkfsOptions: [\"-d /etc\"]}}", "spec.volume.mkfsOptions"),
        ("{devices: {paths: [/dev/a]}, volume: {mountOptions: [remount]}}", "spec.volume.mountOptions"),
        ("{devices: {paths: [/dev/a]}, volume: {onDelete: Burn}}", "spec.volume.onDelete"),
        ("{devices: {paths: [/dev/a]}, volume: {qos: {readIops: 0}}}", "spec.volume.qos"),
        ("{devices: {paths: [/dev/a]}, volume: {qos: {reads: 1}}}", "spec.volume.qos"),
        (
            "{devices: {paths: [/dev/a]}, pool: {partition: {}}, volume: {qos: {readIops: 1}}}",
            "spec.volume.qos",
        ),
        ("{devices: {paths: [/dev/a]}, groupSnapshots: true}", "spec.groupSnapshots"),
        (
            "{devices: {paths: [/dev/a]}, storageClass: {reclaimPolicy: Keep}}",
            "spec.storageClass.reclaimPolicy",
        ),
        ("{pool: {directory: {path: data}}}", "spec.pool.directory.path"),
        ("{pool: {directory: {}}}", "spec.pool.directory"),
        ("{pool: {directory: {path: /d}}, volume: {mkfsOptions: [-O, quota]}}", "spec.volume.mkfsOptions"),
        ("{pool: {directory: {path: /d}}, volume: {onDelete: Zero}}", "spec.volume.onDelete"),
        ("{pool: {directory: {path: /d}}, volume: {mountOptions: [discard]}}", "spec.volume.mountOptions"),
        ("{devices: {paths: [/dev/a]}, pool: {directory: {path: /data}}}", "spec.devices"),
    ]);
}

#[test]
fn what_is_wrong_with_raid_is_named_by_its_whole_path() {
    refused_by_field(&[
        ("{devices: {paths: [/dev/a]}, pool: {lvm: {layout: {raid: {}}}}}", "spec.pool.lvm.layout.raid"),
        (
            "{devices: {paths: [/dev/a]}, pool: {lvm: {layout: {raid: {level: 3}}}}}",
            "spec.pool.lvm.layout.raid.level",
        ),
        (
            "{devices: {paths: [/dev/a]}, pool: {lvm: {layout: {raid: {level: 1, mirrors: 0}}}}}",
            "spec.pool.lvm.layout.raid.mirrors",
        ),
        (
            "{devices: {paths: [/dev/a]}, pool: {lvm: {layout: {raid: {level: 5, mirrors: 1}}}}}",
            "spec.pool.lvm.layout.raid.mirrors",
        ),
        (
            "{devices: {paths: [/dev/a]}, pool: {lvm: {layout: {raid: {level: 1, stripes: 2}}}}}",
            "spec.pool.lvm.layout.raid.stripes",
        ),
        (
            "{devices: {paths: [/dev/a]}, pool: {thin: {layout: {raid: {level: 6, stripes: 2}}}}}",
            "spec.pool.thin.layout.raid.stripes",
        ),
        (
            "{devices: {paths: [/dev/a]}, pool: {lvm: {layout: {raid: {level: 10, mirrors: 3, stripes: 20}}}}}",
            "spec.pool.lvm.layout.raid",
        ),
        (
            "{devices: {paths: [/dev/a]}, pool: {lvm: {layout: {raid: {level: 5, stripeSize: 8Mi}}}}}",
            "spec.pool.lvm.layout.raid.stripeSize",
        ),
        (
            "{devices: {paths: [/dev/a]}, pool: {thin: {layout: {raid: {level: 1, integrity: Journal}}}}}",
            "spec.pool.thin.layout.raid.integrity",
        ),
    ]);
}

fn refused_by_field(cases: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (spec, field) in cases {
        let error = DeviceClass::parse_all(&named("fast", spec)).expect_err(spec);
        assert_eq!(error.kind(), Kind::InvalidArgument, "{spec}");
        if !error.to_string().contains(&format!("take {field}:")) {
            wrong.push(format!("{spec}: {field} is not in: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn raid_has_as_few_legs_as_its_level_takes() {
    use lvm::ops::Layout;
    let stripe_size = devices::Bytes::kib(64);
    for (raid, layout) in [
        ("{level: 1}", Layout::Raid1 { copies: 2 }),
        ("{level: 1, mirrors: 2}", Layout::Raid1 { copies: 3 }),
        ("{level: 4}", Layout::Raid4 { stripes: 2, stripe_size }),
        ("{level: 5}", Layout::Raid5 { stripes: 2, stripe_size }),
        (
            "{level: 5, stripes: 4, stripeSize: 16Ki}",
            Layout::Raid5 { stripes: 4, stripe_size: devices::Bytes::kib(16) },
        ),
        ("{level: 6}", Layout::Raid6 { stripes: 3, stripe_size }),
        ("{level: 10, integrity: None}", Layout::Raid10 { copies: 2, stripes: 2, stripe_size }),
    ] {
        for pool in ["lvm", "thin"] {
            let class = one(&named(
                "a",
                &format!("{{devices: {{paths: [/dev/a]}}, pool: {{{pool}: {{layout: {{raid: {raid}}}}}}}}}"),
            ));
            assert_eq!(class.layout(), Some(layout), "{raid}");
        }
    }
}

#[test]
fn documents_that_are_no_class_are_refused() {
    for bad in [
        named("Fast", "{devices: {paths: [/dev/a]}}"),
        named("fast", "{devices: {paths: [/dev/a]}}").replace("v1alpha1", "v1"),
        named("fast", "{devices: {paths: [/dev/a]}}").replace("DeviceClass", "Pod"),
        "a: [".to_owned(),
        "[]".to_owned(),
        format!("{}more: 1\n", named("fast", "{devices: {paths: [/dev/a]}}")),
    ] {
        assert!(DeviceClass::parse_all(&bad).is_err(), "{bad}");
    }
    assert_eq!(DeviceClass::parse_all("").unwrap(), []);
}

#[test]
fn classes_are_checked_together() {
    let a = named("a", "{default: true, devices: {paths: [/dev/a]}, pool: {lvm: {}}}");
    let both = |second: &str| DeviceClass::parse_all(&format!("{a}---\n{second}"));
    assert_eq!(both(&named("b", "{devices: {sharedWith: a}}")).unwrap().len(), 2);
    for (second, why) in [
        (named("a", "{devices: {paths: [/dev/b]}}"), "two classes are called a"),
        (named("b", "{default: true, devices: {paths: [/dev/b]}}"), "both are the default"),
        (named("b", "{devices: {sharedWith: c}}"), "not there"),
        (
            named("b", "{devices: {paths: [/dev/b]}, pool: {lvm: {volumeGroup: gabion-a}}}"),
            "same volume group",
        ),
        (named("b", "{devices: {sharedWith: a}, pool: {lvm: {volumeGroup: other}}}"), "another volume group"),
    ] {
        let text = both(&second).expect_err(why).to_string();
        assert!(text.contains(why), "{text}");
    }
}

#[test]
fn what_a_pool_is_built_of_may_not_change_and_the_rest_may() {
    let changed = |from: &str, to: &str| -> Vec<&'static str> {
        let changes = one(&named("a", from)).forbidden_changes(&one(&named("a", to)));
        changes.into_iter().map(|change| change.field).collect()
    };
    let base = "{devices: {paths: [/dev/a]}, pool: {thin: {}}}";
    assert_eq!(
        changed(base, "{devices: {paths: [/dev/a]}, pool: {thin: {volumeGroup: x, chunkSize: 128Ki}}}"),
        ["spec.pool.thin.volumeGroup", "spec.pool.thin.chunkSize"]
    );
    assert_eq!(changed(base, "{devices: {paths: [/dev/a]}, pool: {lvm: {}}}"), ["spec.pool"]);
    assert_eq!(
        changed(base, "{devices: {match: [{rotational: true}], wipe: OnceDestroyingData}, pool: {thin: {}}}"),
        ["spec.devices.match", "spec.devices.wipe"]
    );
    assert_eq!(
        changed(
            base,
            "{default: true, devices: {paths: [/dev/b]}, reserve: 5%, pool: {thin: {overprovisionRatio: 2, sizePercent: 95}}, volume: {fsType: xfs}}"
        ),
        [""; 0]
    );
}
