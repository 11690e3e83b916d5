//! Requests that no service may take, on a node without classes: the code of each refusal is the specification's, and
//! none reaches the library's disks, for there are none.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use tonic::{Code, Request, Status};
use volumes::{DeviceScope, Node, Settings};

use crate::check::{max_results, offset};
use crate::controller::ControllerService;
use crate::metadata::MetadataService;
use crate::node::NodeService;
use crate::proto::controller_server::Controller;
use crate::proto::node_server::Node as _;
use crate::proto::snapshot_metadata_server::SnapshotMetadata;
use crate::proto::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use crate::proto::volume_content_source::{SnapshotSource, Type, VolumeSource};
use crate::proto::*;
use crate::{Alpha, Local, Place};

/// What no field takes: control characters, and far too much.
fn hostile() -> [String; 3] {
    ["a\nb".into(), "\0".into(), "x".repeat(1 << 20)]
}

/// A node that has nothing to change.
pub(crate) fn node_without_classes(directory: &Path) -> Node {
    let settings = Settings::new("test".parse().unwrap(), Vec::new())
        .scope(DeviceScope::Only(Vec::new()))
        .below(directory)
        // Never started.
        .worker("/bin/true");
    Node::open(settings).unwrap().0
}

struct Services {
    controller: ControllerService<Local>,
    node: NodeService,
    runtime: tokio::runtime::Runtime,
    _directory: TempDir,
}

impl Services {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let local = Local::new(node_without_classes(directory.path()));
        let place = Place::new("here").unwrap();
        let alpha = Alpha::Offered;
        let (_, ending) = crate::ending::serving();
        let controller =
            ControllerService { control: Arc::new(local.clone()), place: place.clone(), alpha, ending };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { controller, node: NodeService { local, place, alpha }, runtime, _directory: directory }
    }

    /// The code of a call, and that its text is one line without any secret.
    fn code<T: std::fmt::Debug>(&self, call: impl Future<Output = Result<T, Status>>) -> Code {
        match self.runtime.block_on(call) {
            Ok(_) => Code::Ok,
            Err(refusal) => {
                let text = refusal.message();
                assert!(!text.is_empty() && text.len() < 1100 && !text.contains(char::is_control), "{text}");
                assert!(!text.contains(SECRET), "{text}");
                refusal.code()
            }
        }
    }
}

const SECRET: &str = "hunter2";

fn secrets() -> std::collections::BTreeMap<String, String> {
    [("password".to_owned(), SECRET.to_owned())].into()
}

fn mount() -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode { mode: 1 }),
        access_type: Some(AccessType::Mount(MountVolume::default())),
    }
}

/// A request with one thing changed.
fn but<T>(mut request: T, change: impl FnOnce(&mut T)) -> T {
    change(&mut request);
    request
}

fn create() -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: "pvc-1".into(),
        capacity_range: Some(CapacityRange { required_bytes: 1 << 30, limit_bytes: 0 }),
        volume_capabilities: vec![mount()],
        secrets: secrets(),
        ..Default::default()
    }
}

#[test]
fn create_volume_refuses_each_field_that_cannot_be() {
    let services = Services::new();
    let code = |request| services.code(services.controller.create_volume(Request::new(request)));
    let from = |of| Some(VolumeContentSource { r#type: of });
    let snapshot = |id: &str| from(Some(Type::Snapshot(SnapshotSource { snapshot_id: id.into() })));
    let volume = |id: &str| from(Some(Type::Volume(VolumeSource { volume_id: id.into() })));
    let range = |required_bytes, limit_bytes| Some(CapacityRange { required_bytes, limit_bytes });
    let elsewhere =
        Topology { segments: [(crate::names::TOPOLOGY_KEY.to_owned(), "there".to_owned())].into() };
    let mut refused = vec![
        (but(create(), |r| r.name.clear()), Code::InvalidArgument),
        (but(create(), |r| r.name = "x".repeat(129)), Code::InvalidArgument),
        (but(create(), |r| r.volume_capabilities.clear()), Code::InvalidArgument),
        (
            but(create(), |r| r.volume_capabilities[0].access_mode = Some(AccessMode { mode: 99 })),
            Code::InvalidArgument,
        ),
        (but(create(), |r| r.capacity_range = range(-1, 0)), Code::InvalidArgument),
        (but(create(), |r| r.capacity_range = range(0, i64::MIN)), Code::InvalidArgument),
        (but(create(), |r| r.capacity_range = range(2, 1)), Code::OutOfRange),
        (
            but(create(), |r| drop(r.parameters.insert("XXX_FakeKey".into(), "1".into()))),
            Code::InvalidArgument,
        ),
        (
            but(create(), |r| drop(r.mutable_parameters.insert("XXX_FakeKey".into(), "1".into()))),
            Code::InvalidArgument,
        ),
        (but(create(), |r| r.volume_content_source = from(None)), Code::InvalidArgument),
        (but(create(), |r| r.volume_content_source = snapshot("")), Code::InvalidArgument),
        (but(create(), |r| r.volume_content_source = snapshot("../../x")), Code::NotFound),
        (but(create(), |r| r.volume_content_source = volume("../../x")), Code::NotFound),
        (
            but(create(), |r| {
                let requisite = vec![elsewhere];
                r.accessibility_requirements = Some(TopologyRequirement { requisite, preferred: Vec::new() });
            }),
            Code::ResourceExhausted,
        ),
        // All is well but that there is no class.
        (create(), Code::InvalidArgument),
    ];
    for text in hostile() {
        refused.push((but(create(), |r| r.name.clone_from(&text)), Code::InvalidArgument));
        refused.push((
            but(create(), |r| drop(r.parameters.insert(text.clone(), "1".into()))),
            Code::InvalidArgument,
        ));
        let class = |r: &mut CreateVolumeRequest| {
            drop(r.parameters.insert("gabion.dev/device-class".into(), text.clone()));
        };
        refused.push((but(create(), class), Code::InvalidArgument));
        refused.push((but(create(), |r| r.volume_content_source = volume(&text)), Code::InvalidArgument));
    }
    for (request, expected) in refused {
        assert_eq!(code(request.clone()), expected, "{:.300}", format!("{request:?}"));
    }
}

#[test]
fn the_controller_knows_no_volume_that_it_never_made() {
    let services = Services::new();
    let c = &services.controller;
    let range = Some(CapacityRange { required_bytes: 1, limit_bytes: 0 });
    for (id, unknown, deleted) in [
        ("pvc-1", Code::NotFound, Code::Ok),
        ("../../x", Code::NotFound, Code::Ok),
        ("", Code::InvalidArgument, Code::InvalidArgument),
        ("a\nb", Code::InvalidArgument, Code::InvalidArgument),
        (&"x".repeat(1 << 20), Code::InvalidArgument, Code::InvalidArgument),
    ] {
        let volume_id = id.to_owned();
        let deletion = DeleteVolumeRequest { volume_id: volume_id.clone(), secrets: secrets() };
        assert_eq!(services.code(c.delete_volume(Request::new(deletion))), deleted, "{id:.20}");
        let deletion = DeleteSnapshotRequest { snapshot_id: volume_id.clone(), secrets: secrets() };
        assert_eq!(services.code(c.delete_snapshot(Request::new(deletion))), deleted);
        let expansion = ControllerExpandVolumeRequest {
            volume_id: volume_id.clone(),
            capacity_range: range,
            secrets: secrets(),
            volume_capability: None,
        };
        assert_eq!(services.code(c.controller_expand_volume(Request::new(expansion.clone()))), unknown);
        let nothing = but(expansion, |r| r.capacity_range = None);
        assert_eq!(services.code(c.controller_expand_volume(Request::new(nothing))), Code::InvalidArgument);
        let cut = CreateSnapshotRequest {
            source_volume_id: volume_id.clone(),
            name: "s".into(),
            secrets: secrets(),
            ..Default::default()
        };
        assert_eq!(services.code(c.create_snapshot(Request::new(cut.clone()))), unknown);
        let nameless = but(cut, |r| r.name.clear());
        assert_eq!(services.code(c.create_snapshot(Request::new(nameless))), Code::InvalidArgument);
        let validation = ValidateVolumeCapabilitiesRequest {
            volume_id: volume_id.clone(),
            volume_capabilities: vec![mount()],
            ..Default::default()
        };
        assert_eq!(services.code(c.validate_volume_capabilities(Request::new(validation.clone()))), unknown);
        let none = but(validation, |r| r.volume_capabilities.clear());
        assert_eq!(services.code(c.validate_volume_capabilities(Request::new(none))), Code::InvalidArgument);
        let get = ControllerGetVolumeRequest { volume_id: volume_id.clone() };
        assert_eq!(services.code(c.controller_get_volume(Request::new(get))), unknown);
        let get = GetSnapshotRequest { snapshot_id: volume_id, secrets: secrets() };
        assert_eq!(services.code(c.get_snapshot(Request::new(get))), unknown);
    }
}

#[test]
fn lists_refuse_negative_limits_and_tokens_of_others() {
    let services = Services::new();
    for (max_entries, token, expected) in [
        (0, "", Code::Ok),
        (i32::MAX, "after:pvc-1", Code::Ok),
        (-1, "", Code::InvalidArgument),
        (i32::MIN, "", Code::InvalidArgument),
        (0, "invalid-token", Code::Aborted),
        (0, "after:\n", Code::Aborted),
    ] {
        let starting_token = token.to_owned();
        let volumes = ListVolumesRequest { max_entries, starting_token: starting_token.clone() };
        assert_eq!(
            services.code(services.controller.list_volumes(Request::new(volumes))),
            expected,
            "{token:?}"
        );
        let snapshots =
            ListSnapshotsRequest { max_entries, starting_token, secrets: secrets(), ..Default::default() };
        assert_eq!(services.code(services.controller.list_snapshots(Request::new(snapshots))), expected);
    }
    let of = |id: &str| ListSnapshotsRequest {
        snapshot_id: id.into(),
        source_volume_id: id.into(),
        ..Default::default()
    };
    assert_eq!(services.code(services.controller.list_snapshots(Request::new(of("../../x")))), Code::Ok);
    assert_eq!(
        services.code(services.controller.list_snapshots(Request::new(of("\n")))),
        Code::InvalidArgument
    );
}

/// Each call of the node that names a volume and a path, whatever else it needs being there.
fn node_codes(services: &Services, id: &str, path: &str) -> [Code; 6] {
    let (volume_id, n) = (id.to_owned(), &services.node);
    let staging_target_path = path.to_owned();
    let stage = NodeStageVolumeRequest {
        volume_id: volume_id.clone(),
        staging_target_path: staging_target_path.clone(),
        volume_capability: Some(mount()),
        secrets: secrets(),
        ..Default::default()
    };
    let publish = NodePublishVolumeRequest {
        volume_id: volume_id.clone(),
        staging_target_path: "/staging".into(),
        target_path: path.into(),
        volume_capability: Some(mount()),
        secrets: secrets(),
        ..Default::default()
    };
    let unstage = NodeUnstageVolumeRequest { volume_id: volume_id.clone(), staging_target_path };
    let unpublish = NodeUnpublishVolumeRequest { volume_id: volume_id.clone(), target_path: path.into() };
    let stats = NodeGetVolumeStatsRequest {
        volume_id: volume_id.clone(),
        volume_path: path.into(),
        ..Default::default()
    };
    let expand = NodeExpandVolumeRequest {
        volume_id,
        volume_path: path.into(),
        secrets: secrets(),
        ..Default::default()
    };
    [
        services.code(n.node_stage_volume(Request::new(stage))),
        services.code(n.node_publish_volume(Request::new(publish))),
        services.code(n.node_unstage_volume(Request::new(unstage))),
        services.code(n.node_unpublish_volume(Request::new(unpublish))),
        services.code(n.node_get_volume_stats(Request::new(stats))),
        services.code(n.node_expand_volume(Request::new(expand))),
    ]
}

#[test]
fn the_node_refuses_ids_and_paths_that_cannot_be() {
    use Code::{InvalidArgument as Invalid, NotFound, Ok};
    let services = Services::new();
    let codes = |id: &str, path: &str| node_codes(&services, id, path);
    let nowhere = "/nonexistent-place/of/a/test";
    assert_eq!(codes("pvc-1", nowhere), [NotFound, NotFound, Ok, Ok, NotFound, NotFound]);
    // Whether there is such a volume comes before what the path looks like, where one only looks.
    for path in ["some/path", "/a/../b", "../../x"] {
        assert_eq!(codes("pvc-1", path), [Invalid, Invalid, Invalid, Invalid, NotFound, NotFound], "{path}");
    }
    for bad in hostile().iter().map(String::as_str).chain([""]) {
        assert_eq!(codes(bad, nowhere), [Invalid; 6], "{bad:.20}");
        assert_eq!(codes("pvc-1", bad), [Invalid; 6], "{bad:.20}");
    }
    assert!(!std::path::Path::new("/nonexistent-place").exists());
}

#[test]
fn staging_and_publishing_need_a_capability_and_staging_comes_first() {
    let services = Services::new();
    let block = VolumeCapability { access_type: Some(AccessType::Block(BlockVolume {})), ..mount() };
    let request = NodePublishVolumeRequest {
        volume_id: "pvc-1".into(),
        target_path: "/target".into(),
        volume_capability: Some(mount()),
        ..Default::default()
    };
    let code = |request| services.code(services.node.node_publish_volume(Request::new(request)));
    assert_eq!(code(request.clone()), Code::FailedPrecondition);
    assert_eq!(code(but(request.clone(), |r| r.volume_capability = None)), Code::InvalidArgument);
    let inline = |attributes: &[(&str, &str)], capability: &VolumeCapability| {
        let mut request = request.clone();
        let ephemeral = (crate::names::EPHEMERAL, "true");
        let pairs = attributes.iter().chain([&ephemeral]);
        request.volume_context = pairs.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        request.volume_capability = Some(capability.clone());
        request
    };
    for attributes in [
        &[][..],
        &[("gabion.dev/size", "")],
        &[("gabion.dev/size", "-1Gi")],
        &[("gabion.dev/size", "1Gi"), ("gabion.dev/device-class", "../../x")],
        &[("gabion.dev/size", "1Gi"), ("gabion.dev/other", "1")],
    ] {
        assert_eq!(code(inline(attributes, &mount())), Code::InvalidArgument, "{attributes:?}");
    }
    assert_eq!(code(inline(&[("gabion.dev/size", "1Gi")], &block)), Code::InvalidArgument);
    let stage = NodeStageVolumeRequest {
        volume_id: "pvc-1".into(),
        staging_target_path: "/staging".into(),
        ..Default::default()
    };
    assert_eq!(services.code(services.node.node_stage_volume(Request::new(stage))), Code::InvalidArgument);
}

#[test]
fn what_is_asked_of_blocks_is_refused_by_name_and_not_offered_where_no_class_can() {
    let services = Services::new();
    let control = Arc::new(Local::new(node_without_classes(services._directory.path())));
    let (_end, ending) = crate::ending::serving();
    let metadata = MetadataService { control, alpha: Alpha::Offered, ending };
    let request = GetMetadataDeltaRequest {
        base_snapshot_id: "a".into(),
        target_snapshot_id: "b".into(),
        secrets: secrets(),
        ..Default::default()
    };
    let code = |request| services.code(metadata.get_metadata_delta(Request::new(request)));
    assert_eq!(code(request), Code::Unimplemented);
    assert_eq!(offset("f", 5).unwrap().get(), 5);
    assert_eq!(offset("f", -1).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!((max_results(0).unwrap(), max_results(3).unwrap()), (usize::MAX, 3));
    assert_eq!(max_results(-1).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn what_no_class_can_do_is_not_offered() {
    let services = Services::new();
    let answer = services.runtime.block_on(
        services.controller.controller_get_capabilities(Request::new(ControllerGetCapabilitiesRequest {})),
    );
    let offered = answer.unwrap().into_inner().capabilities;
    let told = format!("{offered:?}");
    assert!(told.contains("CreateDeleteVolume") && told.contains("ExpandVolume"), "{told}");
    for absent in ["Snapshot", "Clone", "PublishUnpublish", "Modify"] {
        assert!(!told.contains(absent), "{absent} in {told}");
    }
}
