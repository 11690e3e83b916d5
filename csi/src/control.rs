//! What the controller services need done: one trait, whoever does it.

use std::future::Future;

use devices::Bytes;
use volumes::class::DeviceClass;
use volumes::{
    Abilities, Blocks, Capacity, ClassName, CreateSnapshot, CreateVolume, Error, Kind, Limits, Node,
    SizeRange, Snapshot, SnapshotId, Volume, VolumeHealth, VolumeId,
};

/// Volumes and snapshots, made and looked at. Each call is idempotent, as the library's are.
///
/// [`Local`] does it on this node's own disks.
pub trait Control: Send + Sync + 'static {
    /// What volumes of some class can do.
    fn abilities(&self) -> Abilities;

    /// The class of that name, or the default one, and what its volumes can do.
    fn class(&self, name: Option<&ClassName>) -> Result<(ClassName, Abilities), Error>;

    /// Makes a volume, or finds it made.
    fn create(&self, new: CreateVolume) -> impl Future<Output = Result<Volume, Error>> + Send;

    /// Removes a volume, if it is there.
    fn delete(&self, id: VolumeId) -> impl Future<Output = Result<(), Error>> + Send;

    /// Makes a volume larger.
    fn grow(&self, id: VolumeId, size: SizeRange) -> impl Future<Output = Result<Volume, Error>> + Send;

    /// Changes what a volume may read and write in a second.
    fn set_limits(&self, id: VolumeId, limits: Limits) -> impl Future<Output = Result<Volume, Error>> + Send;

    /// One volume.
    fn volume(&self, id: VolumeId) -> impl Future<Output = Result<Volume, Error>> + Send;

    /// All volumes, by id.
    fn volumes(&self) -> impl Future<Output = Result<Vec<Volume>, Error>> + Send;

    /// What is wrong with a volume.
    fn health(&self, id: VolumeId) -> impl Future<Output = Result<VolumeHealth, Error>> + Send;

    /// The volumes with which something is wrong, by id.
    fn ill_volumes(&self) -> impl Future<Output = Result<Vec<VolumeHealth>, Error>> + Send;

    /// Cuts a snapshot, or finds it cut.
    fn create_snapshot(&self, new: CreateSnapshot) -> impl Future<Output = Result<Snapshot, Error>> + Send;

    /// Removes a snapshot, if it is there.
    fn delete_snapshot(&self, id: SnapshotId) -> impl Future<Output = Result<(), Error>> + Send;

    /// One snapshot.
    fn snapshot(&self, id: SnapshotId) -> impl Future<Output = Result<Snapshot, Error>> + Send;

    /// All snapshots, by id.
    fn snapshots(&self) -> impl Future<Output = Result<Vec<Snapshot>, Error>> + Send;

    /// What a snapshot holds, from a place on.
    fn allocated(&self, id: SnapshotId, from: Bytes) -> impl Future<Output = Result<Blocks, Error>> + Send;

    /// Where a snapshot differs from another one, from a place on.
    fn delta(
        &self,
        base: SnapshotId,
        target: SnapshotId,
        from: Bytes,
    ) -> impl Future<Output = Result<Blocks, Error>> + Send;

    /// Waits for the end of a snapshot's copy, and tells whether there was one to wait for.
    fn copied(&self, id: SnapshotId) -> impl Future<Output = bool> + Send;

    /// Room in a class.
    fn capacity(&self, class: Option<ClassName>) -> impl Future<Output = Result<Capacity, Error>> + Send;
}

/// The disks of this node.
#[derive(Clone, Debug)]
pub struct Local {
    node: Node,
}

impl Local {
    /// On that node.
    #[must_use]
    pub fn new(node: Node) -> Self {
        Self { node }
    }

    /// Runs a blocking call of the library to its end, whether or not its caller still waits.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Node) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let node = self.node.clone();
        let ended = tokio::task::spawn_blocking(move || call(&node)).await;
        ended.unwrap_or_else(|error| {
            Err(Error::new(Kind::Internal, "end a call")
                .with_answer("its thread panicked")
                .with_source(error))
        })
    }
}

impl Control for Local {
    fn abilities(&self) -> Abilities {
        self.node.classes().iter().map(DeviceClass::abilities).fold(Abilities::default(), Abilities::or)
    }

    fn class(&self, name: Option<&ClassName>) -> Result<(ClassName, Abilities), Error> {
        self.node.class(name).map(|class| (class.name.clone(), class.abilities()))
    }

    async fn create(&self, new: CreateVolume) -> Result<Volume, Error> {
        self.run(move |node| node.create(&new)).await
    }

    async fn delete(&self, id: VolumeId) -> Result<(), Error> {
        self.run(move |node| node.delete(&id)).await
    }

    async fn grow(&self, id: VolumeId, size: SizeRange) -> Result<Volume, Error> {
        self.run(move |node| node.grow(&id, size)).await
    }

    async fn set_limits(&self, id: VolumeId, limits: Limits) -> Result<Volume, Error> {
        self.run(move |node| node.set_limits(&id, limits)).await
    }

    async fn volume(&self, id: VolumeId) -> Result<Volume, Error> {
        self.run(move |node| node.volume(&id)).await
    }

    async fn volumes(&self) -> Result<Vec<Volume>, Error> {
        self.run(Node::volumes).await
    }

    async fn health(&self, id: VolumeId) -> Result<VolumeHealth, Error> {
        self.run(move |node| node.health(&id)).await
    }

    async fn ill_volumes(&self) -> Result<Vec<VolumeHealth>, Error> {
        self.run(Node::ill_volumes).await
    }

    async fn create_snapshot(&self, new: CreateSnapshot) -> Result<Snapshot, Error> {
        self.run(move |node| node.create_snapshot(&new)).await
    }

    async fn delete_snapshot(&self, id: SnapshotId) -> Result<(), Error> {
        self.run(move |node| node.delete_snapshot(&id)).await
    }

    async fn snapshot(&self, id: SnapshotId) -> Result<Snapshot, Error> {
        self.run(move |node| node.snapshot(&id)).await
    }

    async fn snapshots(&self) -> Result<Vec<Snapshot>, Error> {
        self.run(Node::snapshots).await
    }

    async fn allocated(&self, id: SnapshotId, from: Bytes) -> Result<Blocks, Error> {
        self.run(move |node| node.allocated(&id, from)).await
    }

    async fn delta(&self, base: SnapshotId, target: SnapshotId, from: Bytes) -> Result<Blocks, Error> {
        self.run(move |node| node.delta(&base, &target, from)).await
    }

    async fn copied(&self, id: SnapshotId) -> bool {
        self.node.copied(&id).await
    }

    async fn capacity(&self, class: Option<ClassName>) -> Result<Capacity, Error> {
        self.run(move |node| node.capacity(class.as_ref())).await
    }
}
