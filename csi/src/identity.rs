//! Who the driver is.

use std::sync::Arc;

use tonic::{Request, Response, Status};

use crate::names::DRIVER;
use crate::proto::identity_server::Identity;
use crate::proto::plugin_capability::{self, service, volume_expansion};
use crate::proto::{
    GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginInfoRequest, GetPluginInfoResponse,
    PluginCapability, ProbeRequest, ProbeResponse,
};
use crate::{Alpha, Control};

/// The service.
#[derive(Debug)]
pub(crate) struct IdentityService<C> {
    pub(crate) control: Arc<C>,
    pub(crate) alpha: Alpha,
}

fn service(of: service::Type) -> PluginCapability {
    let service = plugin_capability::Service { r#type: of.into() };
    PluginCapability { r#type: Some(plugin_capability::Type::Service(service)) }
}

fn expansion(of: volume_expansion::Type) -> PluginCapability {
    let expansion = plugin_capability::VolumeExpansion { r#type: of.into() };
    PluginCapability { r#type: Some(plugin_capability::Type::VolumeExpansion(expansion)) }
}

#[tonic::async_trait]
impl<C: Control> Identity for IdentityService<C> {
    async fn get_plugin_info(
        &self,
        _: Request<GetPluginInfoRequest>,
    ) -> Result<Response<GetPluginInfoResponse>, Status> {
        Ok(Response::new(GetPluginInfoResponse {
            name: DRIVER.into(),
            vendor_version: env!("CARGO_PKG_VERSION").into(),
            manifest: [].into(),
        }))
    }

    async fn get_plugin_capabilities(
        &self,
        _: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        let mut capabilities = vec![
            service(service::Type::ControllerService),
            service(service::Type::VolumeAccessibilityConstraints),
            expansion(volume_expansion::Type::Online),
        ];
        if self.alpha == Alpha::Offered {
            capabilities.push(service(service::Type::SnapshotAccessibilityConstraints));
            if self.control.abilities().changed_blocks {
                capabilities.push(service(service::Type::SnapshotMetadataService));
            }
        }
        Ok(Response::new(GetPluginCapabilitiesResponse { capabilities }))
    }

    /// Ready as soon as it answers: nothing is answered before the pools were opened.
    async fn probe(&self, _: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Status> {
        Ok(Response::new(ProbeResponse { ready: Some(true) }))
    }
}
