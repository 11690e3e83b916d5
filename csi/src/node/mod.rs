//! Bringing volumes to the paths where workloads see them.

mod ephemeral;

use tonic::{Request, Response, Status};
use volumes::{Publish, Stage, VolumeId};

use crate::check::{map, node_id, one_use, path, place, size};
use crate::proto::node_server::Node;
use crate::proto::node_service_capability::{self as capability, rpc};
use crate::proto::*;
use crate::status::{answer, of, of_growing};
use crate::{Alpha, Local, Place, health};

/// The service.
#[derive(Debug)]
pub(crate) struct NodeService {
    pub(crate) local: Local,
    pub(crate) place: Place,
    pub(crate) alpha: Alpha,
}

impl NodeService {
    async fn stage(&self, asked: NodeStageVolumeRequest) -> Result<NodeStageVolumeResponse, Status> {
        let id = node_id("volume_id", &asked.volume_id)?;
        let staging = path("staging_target_path", &asked.staging_target_path)?;
        let wanted = one_use("volume_capability", asked.volume_capability.as_ref())?;
        map("publish_context", &asked.publish_context)?;
        map("volume_context", &asked.volume_context)?;
        let mut stage =
            Stage::new(id, staging, wanted.mode).mount_options(wanted.mount_options).access(wanted.access);
        stage.fs_type = wanted.fs_type;
        self.local.run(move |node| node.stage(&stage)).await.map_err(|error| of(&error))?;
        Ok(NodeStageVolumeResponse {})
    }

    async fn unstage(&self, asked: NodeUnstageVolumeRequest) -> Result<NodeUnstageVolumeResponse, Status> {
        let id = node_id("volume_id", &asked.volume_id)?;
        let staging = path("staging_target_path", &asked.staging_target_path)?.to_owned();
        self.local.run(move |node| node.unstage(&id, &staging)).await.map_err(|error| of(&error))?;
        Ok(NodeUnstageVolumeResponse {})
    }

    async fn publish(&self, asked: NodePublishVolumeRequest) -> Result<NodePublishVolumeResponse, Status> {
        let id = node_id("volume_id", &asked.volume_id)?;
        let target = path("target_path", &asked.target_path)?;
        let wanted = one_use("volume_capability", asked.volume_capability.as_ref())?;
        map("publish_context", &asked.publish_context)?;
        map("volume_context", &asked.volume_context)?;
        let access = if asked.readonly { volumes::Access::ReadOnly } else { wanted.access };
        if ephemeral::is_ephemeral(&asked.volume_context) {
            self.publish_ephemeral(id, target, wanted, access, &asked.volume_context).await?;
            return Ok(NodePublishVolumeResponse {});
        }
        if asked.staging_target_path.is_empty() {
            return Err(Status::failed_precondition(
                "staging_target_path: it is missing, and volumes are staged first",
            ));
        }
        let staging = path("staging_target_path", &asked.staging_target_path)?;
        let publish = Publish::new(id, staging, target, wanted.mode).access(access).sharing(wanted.sharing);
        self.local.run(move |node| node.publish(&publish)).await.map_err(|error| of(&error))?;
        Ok(NodePublishVolumeResponse {})
    }

    async fn unpublish(
        &self,
        asked: NodeUnpublishVolumeRequest,
    ) -> Result<NodeUnpublishVolumeResponse, Status> {
        let id = node_id("volume_id", &asked.volume_id)?;
        let target = path("target_path", &asked.target_path)?.to_owned();
        let given = asked.volume_id;
        let gone = self.local.run(move |node| ephemeral::unpublish(node, &given, &id, &target)).await;
        gone.map_err(|error| of(&error))?;
        Ok(NodeUnpublishVolumeResponse {})
    }

    async fn stats(&self, asked: NodeGetVolumeStatsRequest) -> Result<NodeGetVolumeStatsResponse, Status> {
        let id = node_id("volume_id", &asked.volume_id)?;
        let at = place("volume_path", &asked.volume_path)?.map(ToOwned::to_owned);
        if_given("staging_target_path", &asked.staging_target_path)?;
        self.exists(&id).await?;
        let at = at.ok_or_else(|| nothing_there("volume_path"))?;
        let stats = self.local.run(move |node| node.stats(&id, &at)).await.map_err(|error| of(&error))?;
        Ok(NodeGetVolumeStatsResponse { usage: usage(&stats) })
    }

    /// Where the volume is used, or whether at all, says nothing about its health: the paths are not needed.
    async fn health(&self, asked: NodeGetVolumeHealthRequest) -> Result<NodeGetVolumeHealthResponse, Status> {
        let id = node_id("volume_id", &asked.volume_id)?;
        if_given("volume_publish_path", &asked.volume_publish_path)?;
        if_given("staging_target_path", &asked.staging_target_path)?;
        let health = self.local.run(move |node| node.health(&id)).await.map_err(|error| of(&error))?;
        Ok(NodeGetVolumeHealthResponse { volume_health: Some(health::of_volume(&health)) })
    }

    async fn storage_health(&self) -> Result<NodeGetStorageHealthResponse, Status> {
        let ill = self.local.run(|node| Ok(node.ill_classes())).await.map_err(|error| of(&error))?;
        Ok(NodeGetStorageHealthResponse { backend_health: health::of_classes(&ill) })
    }

    async fn expand(&self, asked: NodeExpandVolumeRequest) -> Result<NodeExpandVolumeResponse, Status> {
        let id = node_id("volume_id", &asked.volume_id)?;
        let at = place("volume_path", &asked.volume_path)?.map(ToOwned::to_owned);
        if_given("staging_target_path", &asked.staging_target_path)?;
        let range = asked.capacity_range.as_ref().map(|range| size("capacity_range", range)).transpose()?;
        if let Some(given) = &asked.volume_capability {
            one_use("volume_capability", Some(given))?;
        }
        self.exists(&id).await?;
        let at = at.ok_or_else(|| nothing_there("volume_path"))?;
        // Where no controller grows volumes, this call alone does it all.
        let grow = move |node: &volumes::Node| {
            if let Some(range) = range {
                node.grow(&id, range)?;
            }
            node.expand_filesystem(&id, &at)
        };
        let volume = self.local.run(grow).await.map_err(|error| of_growing(&error))?;
        Ok(NodeExpandVolumeResponse { capacity_bytes: bytes(volume.size) })
    }

    /// That the volume is there comes before what its path looks like.
    async fn exists(&self, id: &VolumeId) -> Result<(), Status> {
        let id = id.clone();
        self.local.run(move |node| node.volume(&id)).await.map(drop).map_err(|error| of(&error))
    }
}

/// A path that a request need not have: all that it tells is in the mount table.
fn if_given(field: &str, given: &str) -> Result<(), Status> {
    if given.is_empty() { Ok(()) } else { path(field, given).map(drop) }
}

fn nothing_there(field: &str) -> Status {
    Status::not_found(format!("{field}: the volume is not there"))
}

fn bytes(size: devices::Bytes) -> i64 {
    i64::try_from(size.get()).unwrap_or(i64::MAX)
}

fn usage(stats: &volumes::Stats) -> Vec<VolumeUsage> {
    use volume_usage::Unit;
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let Some(usage) = &stats.usage else {
        // A block device: only its size is known.
        return vec![VolumeUsage {
            available: 0,
            total: bytes(stats.size),
            used: 0,
            unit: Unit::Bytes.into(),
        }];
    };
    let mut told = vec![VolumeUsage {
        available: bytes(usage.available),
        total: bytes(usage.total),
        used: bytes(usage.used),
        unit: Unit::Bytes.into(),
    }];
    told.extend(usage.inodes.map(|inodes| VolumeUsage {
        available: count(inodes.free),
        total: count(inodes.total),
        used: count(inodes.used),
        unit: Unit::Inodes.into(),
    }));
    told
}

#[tonic::async_trait]
impl Node for NodeService {
    async fn node_stage_volume(
        &self,
        request: Request<NodeStageVolumeRequest>,
    ) -> Result<Response<NodeStageVolumeResponse>, Status> {
        answer("NodeStageVolume", self.stage(request.into_inner()).await)
    }

    async fn node_unstage_volume(
        &self,
        request: Request<NodeUnstageVolumeRequest>,
    ) -> Result<Response<NodeUnstageVolumeResponse>, Status> {
        answer("NodeUnstageVolume", self.unstage(request.into_inner()).await)
    }

    async fn node_publish_volume(
        &self,
        request: Request<NodePublishVolumeRequest>,
    ) -> Result<Response<NodePublishVolumeResponse>, Status> {
        answer("NodePublishVolume", self.publish(request.into_inner()).await)
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<NodeUnpublishVolumeRequest>,
    ) -> Result<Response<NodeUnpublishVolumeResponse>, Status> {
        answer("NodeUnpublishVolume", self.unpublish(request.into_inner()).await)
    }

    async fn node_get_volume_stats(
        &self,
        request: Request<NodeGetVolumeStatsRequest>,
    ) -> Result<Response<NodeGetVolumeStatsResponse>, Status> {
        answer("NodeGetVolumeStats", self.stats(request.into_inner()).await)
    }

    async fn node_get_volume_health(
        &self,
        request: Request<NodeGetVolumeHealthRequest>,
    ) -> Result<Response<NodeGetVolumeHealthResponse>, Status> {
        answer("NodeGetVolumeHealth", self.health(request.into_inner()).await)
    }

    async fn node_get_storage_health(
        &self,
        _: Request<NodeGetStorageHealthRequest>,
    ) -> Result<Response<NodeGetStorageHealthResponse>, Status> {
        answer("NodeGetStorageHealth", self.storage_health().await)
    }

    async fn node_expand_volume(
        &self,
        request: Request<NodeExpandVolumeRequest>,
    ) -> Result<Response<NodeExpandVolumeResponse>, Status> {
        answer("NodeExpandVolume", self.expand(request.into_inner()).await)
    }

    async fn node_get_capabilities(
        &self,
        _: Request<NodeGetCapabilitiesRequest>,
    ) -> Result<Response<NodeGetCapabilitiesResponse>, Status> {
        use rpc::Type;
        let mut offered = vec![
            Type::StageUnstageVolume,
            Type::GetVolumeStats,
            Type::ExpandVolume,
            Type::SingleNodeMultiWriter,
        ];
        if self.alpha == Alpha::Offered {
            offered.extend([Type::GetVolumeHealth, Type::GetStorageHealth]);
        }
        let capability = |of: Type| NodeServiceCapability {
            r#type: Some(capability::Type::Rpc(capability::Rpc { r#type: of.into() })),
        };
        Ok(Response::new(NodeGetCapabilitiesResponse {
            capabilities: offered.into_iter().map(capability).collect(),
        }))
    }

    async fn node_get_info(
        &self,
        _: Request<NodeGetInfoRequest>,
    ) -> Result<Response<NodeGetInfoResponse>, Status> {
        // Zero leaves it to the caller, which is right where it cannot be told now: the call itself must not fail for that.
        let most = self.local.run(volumes::Node::max_volumes).await.ok().flatten().unwrap_or(0);
        Ok(Response::new(NodeGetInfoResponse {
            node_id: self.place.node().to_owned(),
            max_volumes_per_node: i64::try_from(most).unwrap_or(0),
            accessible_topology: Some(self.place.topology()),
        }))
    }
}
