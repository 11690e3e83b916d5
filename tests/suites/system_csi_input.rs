//! Requests that nobody may make, over the socket: every field of every request missing, empty, huge and hostile gives the
//! code of the specification and changes nothing, and no secret is ever written.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

#[path = "csi_input/changes.rs"]
mod changes;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use changes::{Changes, capabilities, change, maps, opaque, pages, paths, places, ranges, texts};
use csi::proto::volume_content_source::{SnapshotSource, Type, VolumeSource};
use csi::proto::*;
use rig::served::{SECRET, SIZE, Served, at, mount, secrets, volume};
use rig::tool;
use tonic::{Code, Status};

const INVALID: Code = Code::InvalidArgument;
const NOT_FOUND: Code = Code::NotFound;

/// A driver of a thin class with the volume `db`, staged and published, and its snapshot `cut`.
struct Target {
    served: Served,
    refused: usize,
}

/// Everything that a request could change.
#[derive(Debug, PartialEq)]
struct State {
    volumes: Vec<Volume>,
    snapshots: Vec<Snapshot>,
    room: GetCapacityResponse,
    mounts: String,
}

impl Target {
    fn new() -> Option<Self> {
        let served = Served::with("pool: {thin: {}}", &["--csi-alpha"])?;
        served.create(volume("db")).unwrap();
        let (staging, target) = (served.path("staging"), served.path("target"));
        served.stage("db", &staging, mount("", &[])).unwrap();
        served.publish(at("db", &staging, &target, mount("", &[]))).unwrap();
        served.snapshot("cut", "db").unwrap();
        Some(Self { served, refused: 0 })
    }

    fn state(&self) -> State {
        State {
            volumes: self.served.volumes(),
            snapshots: self.served.snapshots(),
            room: self.served.room(),
            mounts: fs::read_to_string("/proc/self/mountinfo").unwrap(),
        }
    }

    /// Makes each change to a good request, and looks whether the code is the right one and nothing else happened.
    fn refuses<R: Clone, A>(
        &mut self,
        call: &impl AsyncFn(&Served, R) -> Result<A, Status>,
        name: &str,
        good: &R,
        changes: Vec<Changes<R>>,
    ) {
        let before = (self.state(), commits());
        for one in changes.into_iter().flatten() {
            let mut request = good.clone();
            (one.apply)(&mut request);
            let code = match self.served.csi.run(call(&self.served, request)) {
                Ok(_) => Code::Ok,
                Err(refusal) => {
                    let text = refusal.message();
                    let plain = !text.is_empty() && text.len() < 1100 && !text.contains(char::is_control);
                    assert!(plain && !text.contains(SECRET), "{name}, {}: {text}", one.what);
                    refusal.code()
                }
            };
            assert_eq!(code, one.code, "{name}, {}", one.what);
            assert_eq!(self.state(), before.0, "{name}, {}", one.what);
            self.refused += 1;
        }
        assert_eq!(commits(), before.1, "{name}: LVM's metadata changed");
    }

    /// Takes everything away, and looks at what the driver wrote.
    fn end(self) {
        let Self { served, refused } = self;
        for left in ["staging2", "target2"] {
            assert!(!served.path(left).exists(), "{left}");
        }
        served.unpublish("db", &served.path("target")).unwrap();
        served.unstage("db", &served.path("staging")).unwrap();
        served.delete_snapshot("cut").unwrap();
        served.delete("db").unwrap();
        let log = served.agent.log();
        println!("FIGURES: {refused} requests, {} lines of log", log.lines().count());
        assert!(log.contains(": InvalidArgument: ") && !log.contains(SECRET), "{log}");
        assert!(log.lines().all(|line| line.len() < 1200 && !line.contains(char::is_control)), "{log}");
    }
}

/// How often LVM's metadata were written.
fn commits() -> String {
    tool::run("vgs", ["--noheadings", "-o", "vg_name,vg_seqno"]).unwrap()
}

/// Calls a method of a service with a request.
macro_rules! call {
    ($service:ident . $method:ident) => {
        async |served: &Served, request| {
            served.csi.$service().$method(request).await.map(tonic::Response::into_inner)
        }
    };
}

fn source(of: Type) -> Option<VolumeContentSource> {
    Some(VolumeContentSource { r#type: Some(of) })
}

#[test]
fn the_controller_refuses_every_field_that_cannot_be_and_changes_nothing() {
    let Some(mut target) = Target::new() else { return };
    making_volumes_and_snapshots(&mut target);
    removing_and_growing(&mut target);
    confirming_and_listing(&mut target);
    asking_for_one_and_for_room(&mut target);
    target.end();
}

#[test]
fn the_node_refuses_every_field_that_cannot_be_and_changes_nothing() {
    let Some(mut target) = Target::new() else { return };
    staging_and_publishing(&mut target);
    inline_volumes_and_taking_away(&mut target);
    looking_at_and_growing_what_is_published(&mut target);
    target.end();
}

fn making_volumes_and_snapshots(target: &mut Target) {
    let from_snapshot: fn(&mut CreateVolumeRequest, String) =
        |r, snapshot_id| r.volume_content_source = source(Type::Snapshot(SnapshotSource { snapshot_id }));
    let from_volume: fn(&mut CreateVolumeRequest, String) =
        |r, volume_id| r.volume_content_source = source(Type::Volume(VolumeSource { volume_id }));
    let mut names: Changes<CreateVolumeRequest> = texts("name", |r, name| r.name = name, INVALID, Code::Ok);
    // Any other text is a name.
    names.retain(|one| one.code != Code::Ok);
    target.refuses(
        &call!(controller.create_volume),
        "CreateVolume",
        &volume("other"),
        vec![
            names,
            ranges("capacity_range", |r, range| r.capacity_range = Some(range), Code::OutOfRange),
            capabilities(
                "volume_capabilities",
                |r, one| r.volume_capabilities = one.into_iter().collect(),
                INVALID,
                INVALID,
            ),
            maps("parameters", |r, map| r.parameters = map),
            maps("mutable_parameters", |r, map| r.mutable_parameters = map),
            vec![change("volume_content_source: nothing", INVALID, |r: &mut CreateVolumeRequest| {
                r.volume_content_source = Some(VolumeContentSource { r#type: None });
            })],
            texts("volume_content_source.snapshot", from_snapshot, INVALID, NOT_FOUND),
            texts("volume_content_source.volume", from_volume, INVALID, NOT_FOUND),
            places("accessibility_requirements", |r, wanted| r.accessibility_requirements = Some(wanted)),
            vec![
                change(
                    "the name of a volume of another size",
                    Code::AlreadyExists,
                    |r: &mut CreateVolumeRequest| {
                        r.name = "db".into();
                        r.capacity_range = Some(CapacityRange { required_bytes: 2 * SIZE, limit_bytes: 0 });
                    },
                ),
                change("too small for its source", Code::OutOfRange, |r: &mut CreateVolumeRequest| {
                    r.volume_content_source = source(Type::Volume(VolumeSource { volume_id: "db".into() }));
                    r.capacity_range = Some(CapacityRange { required_bytes: 1, limit_bytes: SIZE / 2 });
                }),
            ],
        ],
    );
    let good = CreateSnapshotRequest {
        source_volume_id: "db".into(),
        name: "other".into(),
        secrets: secrets(),
        ..Default::default()
    };
    let mut names: Changes<CreateSnapshotRequest> = texts("name", |r, name| r.name = name, INVALID, Code::Ok);
    names.retain(|one| one.code != Code::Ok);
    target.refuses(
        &call!(controller.create_snapshot),
        "CreateSnapshot",
        &good,
        vec![
            names,
            texts("source_volume_id", |r, id| r.source_volume_id = id, INVALID, NOT_FOUND),
            maps("parameters", |r, map| r.parameters = map),
            places("accessibility_requirements", |r, wanted| r.accessibility_requirements = Some(wanted)),
        ],
    );
}

fn removing_and_growing(target: &mut Target) {
    // What was never there is removed already.
    let good = DeleteVolumeRequest { volume_id: "other".into(), secrets: secrets() };
    target.refuses(
        &call!(controller.delete_volume),
        "DeleteVolume",
        &good,
        vec![
            texts("volume_id", |r, id| r.volume_id = id, INVALID, Code::Ok),
            vec![change("one that is in use", Code::FailedPrecondition, |r: &mut DeleteVolumeRequest| {
                r.volume_id = "db".into();
            })],
        ],
    );
    let good = DeleteSnapshotRequest { snapshot_id: "other".into(), secrets: secrets() };
    let ids = texts("snapshot_id", |r: &mut DeleteSnapshotRequest, id| r.snapshot_id = id, INVALID, Code::Ok);
    target.refuses(&call!(controller.delete_snapshot), "DeleteSnapshot", &good, vec![ids]);
    let good = ControllerExpandVolumeRequest {
        volume_id: "db".into(),
        capacity_range: Some(CapacityRange { required_bytes: SIZE, limit_bytes: 0 }),
        secrets: secrets(),
        volume_capability: None,
    };
    target.refuses(
        &call!(controller.controller_expand_volume),
        "ControllerExpandVolume",
        &good,
        vec![
            texts("volume_id", |r, id| r.volume_id = id, INVALID, NOT_FOUND),
            vec![
                change("capacity_range: nothing", INVALID, |r: &mut ControllerExpandVolumeRequest| {
                    r.capacity_range = None;
                }),
                change(
                    "a limit below its size",
                    Code::OutOfRange,
                    |r: &mut ControllerExpandVolumeRequest| {
                        r.capacity_range = Some(CapacityRange { required_bytes: 1, limit_bytes: SIZE / 2 });
                    },
                ),
            ],
            ranges("capacity_range", |r, range| r.capacity_range = Some(range), Code::OutOfRange),
            capabilities("volume_capability", |r, one| r.volume_capability = one, Code::Ok, INVALID),
        ],
    );
}

fn confirming_and_listing(target: &mut Target) {
    let good = ValidateVolumeCapabilitiesRequest {
        volume_id: "db".into(),
        volume_capabilities: vec![mount("", &[])],
        secrets: secrets(),
        ..Default::default()
    };
    // What cannot be confirmed is no error, but what is too much to look at is.
    let validate = async |served: &Served, request| {
        let answer = served.csi.controller().validate_volume_capabilities(request).await?.into_inner();
        assert!(answer.confirmed.is_none() && !answer.message.is_empty(), "{answer:?}");
        Ok(())
    };
    let unconfirmed = |changes: Changes<ValidateVolumeCapabilitiesRequest>| {
        changes.into_iter().map(|one| change(&one.what, Code::Ok, one.apply)).collect()
    };
    target.refuses(
        &validate,
        "ValidateVolumeCapabilities",
        &good,
        vec![
            texts("volume_id", |r, id| r.volume_id = id, INVALID, NOT_FOUND),
            opaque("volume_context", |r, map| r.volume_context = map),
            capabilities(
                "volume_capabilities",
                |r, one| r.volume_capabilities = one.into_iter().collect(),
                INVALID,
                Code::Ok,
            ),
            unconfirmed(maps("parameters", |r, map| r.parameters = map)),
            unconfirmed(maps("mutable_parameters", |r, map| r.mutable_parameters = map)),
        ],
    );
    let lists =
        pages(|r: &mut ListVolumesRequest, most| r.max_entries = most, |r, token| r.starting_token = token);
    target.refuses(
        &call!(controller.list_volumes),
        "ListVolumes",
        &ListVolumesRequest::default(),
        vec![lists],
    );
    let good = ListSnapshotsRequest { secrets: secrets(), ..Default::default() };
    target.refuses(
        &call!(controller.list_snapshots),
        "ListSnapshots",
        &good,
        vec![
            pages(
                |r: &mut ListSnapshotsRequest, most| r.max_entries = most,
                |r, token| r.starting_token = token,
            ),
            texts("source_volume_id", |r, id| r.source_volume_id = id, Code::Ok, Code::Ok),
            texts("snapshot_id", |r, id| r.snapshot_id = id, Code::Ok, Code::Ok),
        ],
    );
}

fn asking_for_one_and_for_room(target: &mut Target) {
    let good = GetSnapshotRequest { snapshot_id: "cut".into(), secrets: secrets() };
    let ids = texts("snapshot_id", |r: &mut GetSnapshotRequest, id| r.snapshot_id = id, INVALID, NOT_FOUND);
    target.refuses(&call!(controller.get_snapshot), "GetSnapshot", &good, vec![ids]);
    let good = ControllerGetVolumeRequest { volume_id: "db".into() };
    let ids =
        texts("volume_id", |r: &mut ControllerGetVolumeRequest, id| r.volume_id = id, INVALID, NOT_FOUND);
    target.refuses(&call!(controller.controller_get_volume), "ControllerGetVolume", &good, vec![ids]);
    let good = ControllerGetVolumeHealthRequest { volume_id: "db".into(), secrets: secrets() };
    let ids = texts(
        "volume_id",
        |r: &mut ControllerGetVolumeHealthRequest, id| r.volume_id = id,
        INVALID,
        NOT_FOUND,
    );
    target.refuses(
        &call!(controller.controller_get_volume_health),
        "ControllerGetVolumeHealth",
        &good,
        vec![ids],
    );
    let changed = BTreeMap::from([("readIops".to_owned(), "1000".to_owned())]);
    let good = ControllerModifyVolumeRequest {
        volume_id: "db".into(),
        mutable_parameters: changed,
        secrets: secrets(),
    };
    let ids =
        texts("volume_id", |r: &mut ControllerModifyVolumeRequest, id| r.volume_id = id, INVALID, NOT_FOUND);
    let limit = |key: &'static str, value: &'static str| {
        change(&format!("{key}: {value:?}"), INVALID, move |r: &mut ControllerModifyVolumeRequest| {
            r.mutable_parameters.insert(key.into(), value.into());
        })
    };
    let mut limits: Changes<_> = ["", "0", "-1", "1 000", "many", "max\n", "4294967295", "99999999999Ei"]
        .map(|value| limit("writeIops", value))
        .into();
    limits.extend(["readiops", "gabion.dev/device-class", "riops"].map(|key| limit(key, "1")));
    target.refuses(
        &call!(controller.controller_modify_volume),
        "ControllerModifyVolume",
        &good,
        vec![ids, maps("mutable_parameters", |r, map| r.mutable_parameters = map), limits],
    );
    let room = async |served: &Served, request| {
        let answer = served.csi.controller().get_capacity(request).await?.into_inner();
        assert_eq!(answer.available_capacity, 0, "there is no room for what cannot be made");
        Ok(())
    };
    target.refuses(
        &room,
        "GetCapacity",
        &GetCapacityRequest::default(),
        vec![
            maps("parameters", |r, map| r.parameters = map),
            capabilities(
                "volume_capabilities",
                |r: &mut GetCapacityRequest, one| r.volume_capabilities = one.into_iter().collect(),
                Code::Ok,
                Code::Ok,
            )
            .into_iter()
            .filter(|one| !one.what.ends_with(": nothing"))
            .collect(),
            vec![change("accessible_topology: elsewhere", Code::Ok, |r: &mut GetCapacityRequest| {
                r.accessible_topology =
                    Some(Topology { segments: [("a\nb".into(), "../../x".into())].into() });
            })],
        ],
    );
}

fn staging_and_publishing(target: &mut Target) {
    let staging = target.served.path("staging2").display().to_string();
    let good = NodeStageVolumeRequest {
        volume_id: "db".into(),
        staging_target_path: staging,
        volume_capability: Some(mount("", &[])),
        secrets: secrets(),
        ..Default::default()
    };
    target.refuses(
        &call!(node.node_stage_volume),
        "NodeStageVolume",
        &good,
        vec![
            texts("volume_id", |r, id| r.volume_id = id, INVALID, NOT_FOUND),
            paths("staging_target_path", |r, path| r.staging_target_path = path, INVALID, INVALID),
            capabilities("volume_capability", |r, one| r.volume_capability = one, INVALID, INVALID),
            opaque("publish_context", |r, map| r.publish_context = map),
            opaque("volume_context", |r, map| r.volume_context = map),
        ],
    );
    let good = at("db", &target.served.path("staging"), &target.served.path("target2"), mount("", &[]));
    target.refuses(
        &call!(node.node_publish_volume),
        "NodePublishVolume",
        &good,
        vec![
            texts("volume_id", |r, id| r.volume_id = id, INVALID, NOT_FOUND),
            paths(
                "staging_target_path",
                |r, path| r.staging_target_path = path,
                Code::FailedPrecondition,
                INVALID,
            ),
            paths("target_path", |r, path| r.target_path = path, INVALID, INVALID),
            capabilities("volume_capability", |r, one| r.volume_capability = one, INVALID, INVALID),
            opaque("publish_context", |r, map| r.publish_context = map),
            opaque("volume_context", |r, map| r.volume_context = map),
        ],
    );
}

fn inline_volumes_and_taking_away(target: &mut Target) {
    let mut inline = at("csi-inline", Path::new(""), &target.served.path("target2"), mount("", &[]));
    inline.volume_context.insert("csi.storage.k8s.io/ephemeral".into(), "true".into());
    inline.volume_context.insert("gabion.dev/size".into(), "64Mi".into());
    let attribute = |key: &'static str, value: &'static str| {
        change(&format!("{key}: {value:?}"), INVALID, move |r: &mut NodePublishVolumeRequest| {
            r.volume_context.insert(key.into(), value.into());
        })
    };
    let mut attributes: Changes<_> = ["", "-1Gi", "0", "many", "1Gi\n", "99999999999Ei"]
        .map(|size| attribute("gabion.dev/size", size))
        .into();
    attributes
        .extend(["", "../../x", "a\nb", "nobody's"].map(|class| attribute("gabion.dev/device-class", class)));
    attributes.push(attribute("gabion.dev/other", "1"));
    attributes.push(change("no size", INVALID, |r: &mut NodePublishVolumeRequest| {
        drop(r.volume_context.remove("gabion.dev/size"));
    }));
    target.refuses(
        &call!(node.node_publish_volume),
        "NodePublishVolume of an inline volume",
        &inline,
        vec![
            attributes,
            paths("target_path", |r, path| r.target_path = path, INVALID, INVALID),
            capabilities("volume_capability", |r, one| r.volume_capability = one, INVALID, INVALID),
        ],
    );
    // A volume or a mount that is not there is taken away already.
    let good =
        NodeUnpublishVolumeRequest { volume_id: "other".into(), target_path: "/nowhere/target".into() };
    target.refuses(
        &call!(node.node_unpublish_volume),
        "NodeUnpublishVolume",
        &good,
        vec![
            texts("volume_id", |r, id| r.volume_id = id, INVALID, Code::Ok),
            paths("target_path", |r, path| r.target_path = path, INVALID, INVALID),
        ],
    );
    let staging_target_path = "/nowhere/staging".into();
    let good = NodeUnstageVolumeRequest { volume_id: "other".into(), staging_target_path };
    target.refuses(
        &call!(node.node_unstage_volume),
        "NodeUnstageVolume",
        &good,
        vec![
            texts("volume_id", |r, id| r.volume_id = id, INVALID, Code::Ok),
            paths("staging_target_path", |r, path| r.staging_target_path = path, INVALID, INVALID),
        ],
    );
}

fn looking_at_and_growing_what_is_published(target: &mut Target) {
    let volume_path = target.served.path("target").display().to_string();
    let good = NodeGetVolumeStatsRequest {
        volume_id: "db".into(),
        volume_path: volume_path.clone(),
        ..Default::default()
    };
    let ids: fn(&mut NodeGetVolumeStatsRequest, String) = |r, id| r.volume_id = id;
    target.refuses(
        &call!(node.node_get_volume_stats),
        "NodeGetVolumeStats",
        &good,
        vec![
            texts("volume_id", ids, INVALID, NOT_FOUND),
            paths("volume_path", |r, path| r.volume_path = path, INVALID, NOT_FOUND),
            paths("staging_target_path", |r, path| r.staging_target_path = path, Code::Ok, INVALID),
        ],
    );
    let good = NodeGetVolumeHealthRequest { volume_id: "db".into(), ..Default::default() };
    target.refuses(
        &call!(node.node_get_volume_health),
        "NodeGetVolumeHealth",
        &good,
        vec![
            texts("volume_id", |r: &mut NodeGetVolumeHealthRequest, id| r.volume_id = id, INVALID, NOT_FOUND),
            paths("volume_publish_path", |r, path| r.volume_publish_path = path, Code::Ok, INVALID),
            paths("staging_target_path", |r, path| r.staging_target_path = path, Code::Ok, INVALID),
        ],
    );
    let good = NodeExpandVolumeRequest {
        volume_id: "db".into(),
        volume_path,
        secrets: secrets(),
        ..Default::default()
    };
    target.refuses(
        &call!(node.node_expand_volume),
        "NodeExpandVolume",
        &good,
        vec![
            texts("volume_id", |r, id| r.volume_id = id, INVALID, NOT_FOUND),
            paths("volume_path", |r, path| r.volume_path = path, INVALID, NOT_FOUND),
            paths("staging_target_path", |r, path| r.staging_target_path = path, Code::Ok, INVALID),
            ranges("capacity_range", |r, range| r.capacity_range = Some(range), Code::OutOfRange),
            capabilities("volume_capability", |r, one| r.volume_capability = one, Code::Ok, INVALID),
        ],
    );
    for code in [
        unserved(
            &target.served,
            &call!(controller.controller_publish_volume),
            ControllerPublishVolumeRequest::default(),
        ),
        unserved(
            &target.served,
            &call!(controller.controller_unpublish_volume),
            ControllerUnpublishVolumeRequest::default(),
        ),
    ] {
        assert_eq!(code, Code::Unimplemented);
    }
}

/// The code of a call that no driver without its capability serves.
fn unserved<R, A: std::fmt::Debug>(
    served: &Served,
    call: &impl AsyncFn(&Served, R) -> Result<A, Status>,
    request: R,
) -> Code {
    served.csi.run(call(served, request)).unwrap_err().code()
}
