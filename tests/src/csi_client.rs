//! A caller of the driver's services, for tests.

use std::future::Future;
use std::path::Path;

use anyhow::{Context, Result};
use csi::proto::controller_client::ControllerClient;
use csi::proto::identity_client::IdentityClient;
use csi::proto::node_client::NodeClient;
use csi::proto::snapshot_metadata_client::SnapshotMetadataClient;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};

/// A connection to a driver.
#[derive(Debug)]
pub struct Csi {
    runtime: Runtime,
    channel: Channel,
}

impl Csi {
    /// Connects to a socket.
    ///
    /// # Errors
    ///
    /// If nobody answers there.
    pub fn connect(socket: &Path) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().context("make a runtime")?;
        let endpoint = Endpoint::from_shared(format!("unix://{}", socket.display()))?;
        let channel = runtime.block_on(endpoint.connect()).context("connect to the driver")?;
        Ok(Self { runtime, channel })
    }

    /// The controller service.
    #[must_use]
    pub fn controller(&self) -> ControllerClient<Channel> {
        ControllerClient::new(self.channel.clone())
    }

    /// The node service.
    #[must_use]
    pub fn node(&self) -> NodeClient<Channel> {
        NodeClient::new(self.channel.clone())
    }

    /// The identity service.
    #[must_use]
    pub fn identity(&self) -> IdentityClient<Channel> {
        IdentityClient::new(self.channel.clone())
    }

    /// The service that tells the blocks of snapshots.
    #[must_use]
    pub fn snapshot_metadata(&self) -> SnapshotMetadataClient<Channel> {
        SnapshotMetadataClient::new(self.channel.clone())
    }

    /// Waits for whatever calls the driver.
    pub fn run<T>(&self, calls: impl Future<Output = T>) -> T {
        self.runtime.block_on(calls)
    }

    /// Waits for a call's answer.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn wait<T>(&self, call: impl Future<Output = Result<Response<T>, Status>>) -> Result<T, Status> {
        self.runtime.block_on(call).map(Response::into_inner)
    }
}
