//! Which blocks a snapshot holds, and which changed between two, as streams.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use devices::Bytes;
use tokio::task::JoinHandle;
use tokio_stream::Stream;
use tonic::{Request, Response, Status};
use volumes::{Blocks, Error, SnapshotId};

use crate::check::{id, max_results, offset};
use crate::ending::Ending;
use crate::proto::snapshot_metadata_server::SnapshotMetadata;
use crate::proto::{
    BlockMetadata, BlockMetadataType, GetMetadataAllocatedRequest, GetMetadataAllocatedResponse,
    GetMetadataDeltaRequest, GetMetadataDeltaResponse,
};
use crate::status::{answer, of};
use crate::{Alpha, Control};

/// The most ranges of one message, which then has 100 KiB at most.
const MOST: usize = 4096;

/// The service.
#[derive(Debug)]
pub(crate) struct MetadataService<C> {
    pub(crate) control: Arc<C>,
    pub(crate) alpha: Alpha,
    pub(crate) ending: Ending,
}

impl<C: Control> MetadataService<C> {
    fn offered(&self) -> Result<(), Status> {
        if self.alpha == Alpha::Offered && self.control.abilities().changed_blocks {
            return Ok(());
        }
        Err(Status::unimplemented(
            "no class of this driver tells the blocks of snapshots, or alpha is not offered",
        ))
    }

    async fn allocated(&self, asked: GetMetadataAllocatedRequest) -> Result<Ranges<Allocated>, Status> {
        self.offered()?;
        let snapshot = id::<SnapshotId>("snapshot_id", &asked.snapshot_id)?;
        let (from, most) =
            (offset("starting_offset", asked.starting_offset)?, max_results(asked.max_results)?);
        let snapshot = snapshot.ok_or_else(|| missing("snapshot_id"))?;
        let blocks = self.control.allocated(snapshot, from).await.map_err(|error| of(&error))?;
        Ok(Ranges::new(blocks, most, &self.ending))
    }

    async fn delta(&self, asked: GetMetadataDeltaRequest) -> Result<Ranges<Delta>, Status> {
        self.offered()?;
        let base = id::<SnapshotId>("base_snapshot_id", &asked.base_snapshot_id)?;
        let target = id::<SnapshotId>("target_snapshot_id", &asked.target_snapshot_id)?;
        let (from, most) =
            (offset("starting_offset", asked.starting_offset)?, max_results(asked.max_results)?);
        let base = base.ok_or_else(|| missing("base_snapshot_id"))?;
        let target = target.ok_or_else(|| missing("target_snapshot_id"))?;
        let blocks = self.control.delta(base, target, from).await.map_err(|error| of(&error))?;
        Ok(Ranges::new(blocks, most, &self.ending))
    }
}

fn missing(field: &str) -> Status {
    Status::not_found(format!("{field}: there is no such snapshot"))
}

#[tonic::async_trait]
impl<C: Control> SnapshotMetadata for MetadataService<C> {
    type GetMetadataAllocatedStream = Ranges<Allocated>;
    type GetMetadataDeltaStream = Ranges<Delta>;

    async fn get_metadata_allocated(
        &self,
        request: Request<GetMetadataAllocatedRequest>,
    ) -> Result<Response<Self::GetMetadataAllocatedStream>, Status> {
        answer("GetMetadataAllocated", self.allocated(request.into_inner()).await)
    }

    async fn get_metadata_delta(
        &self,
        request: Request<GetMetadataDeltaRequest>,
    ) -> Result<Response<Self::GetMetadataDeltaStream>, Status> {
        answer("GetMetadataDelta", self.delta(request.into_inner()).await)
    }
}

/// The message of a stream.
pub(crate) trait Message: Unpin + Send + 'static {
    type Response: Send + 'static;

    fn of(volume_capacity_bytes: i64, block_metadata: Vec<BlockMetadata>) -> Self::Response;
}

/// Of what is allocated.
#[derive(Debug)]
pub(crate) enum Allocated {}

impl Message for Allocated {
    type Response = GetMetadataAllocatedResponse;

    fn of(volume_capacity_bytes: i64, block_metadata: Vec<BlockMetadata>) -> Self::Response {
        let block_metadata_type = BlockMetadataType::VariableLength.into();
        GetMetadataAllocatedResponse { block_metadata_type, volume_capacity_bytes, block_metadata }
    }
}

/// Of what changed.
#[derive(Debug)]
pub(crate) enum Delta {}

impl Message for Delta {
    type Response = GetMetadataDeltaResponse;

    fn of(volume_capacity_bytes: i64, block_metadata: Vec<BlockMetadata>) -> Self::Response {
        let block_metadata_type = BlockMetadataType::VariableLength.into();
        GetMetadataDeltaResponse { block_metadata_type, volume_capacity_bytes, block_metadata }
    }
}

/// How long a thread reads for one message, about: it does not go on for long when its caller went away.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a thread read: the ranges of one message, and where it goes on, if it does.
type Read = Result<(Vec<Range<Bytes>>, Option<Blocks>), Error>;

/// A stream of ranges. A thread reads those of one message when its caller has taken the one before; meanwhile it has none.
pub(crate) struct Ranges<M> {
    state: State,
    most: usize,
    size: i64,
    ends: Pin<Box<dyn Future<Output = ()> + Send>>,
    message: std::marker::PhantomData<M>,
}

enum State {
    /// With whether a message was sent: one without ranges tells the size at least.
    Idle(Box<Blocks>, Sent),
    Reading(JoinHandle<Read>, Sent),
    Ended,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    Nothing,
    Something,
}

impl<M> std::fmt::Debug for Ranges<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ranges").field("size", &self.size).finish_non_exhaustive()
    }
}

impl<M> Ranges<M> {
    fn new(blocks: Blocks, most: usize, ending: &Ending) -> Self {
        let size = i64::try_from(blocks.size().get()).unwrap_or(i64::MAX);
        let ending = ending.clone();
        Self {
            state: State::Idle(Box::new(blocks), Sent::Nothing),
            most: most.min(MOST),
            size,
            ends: Box::pin(async move { ending.begun().await }),
            message: std::marker::PhantomData,
        }
    }
}

impl<M: Message> Stream for Ranges<M> {
    type Item = Result<M::Response, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let is_ended = matches!(self.state, State::Ended);
            if !is_ended && self.ends.as_mut().poll(context).is_ready() {
                self.state = State::Ended;
                return Poll::Ready(Some(Err(Status::unavailable(
                    "the driver ends; go on with another one",
                ))));
            }
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Ended => return Poll::Ready(None),
                State::Idle(blocks, sent) => {
                    let most = self.most;
                    let reading = tokio::task::spawn_blocking(move || read(*blocks, most));
                    self.state = State::Reading(reading, sent);
                }
                State::Reading(mut reading, sent) => {
                    let Poll::Ready(read) = Pin::new(&mut reading).poll(context) else {
                        self.state = State::Reading(reading, sent);
                        return Poll::Pending;
                    };
                    let ranges = match read {
                        Ok(Ok((ranges, rest))) => {
                            if let Some(blocks) = rest {
                                self.state = State::Idle(Box::new(blocks), Sent::Something);
                            }
                            ranges
                        }
                        Ok(Err(error)) => return Poll::Ready(Some(Err(told(&error)))),
                        Err(_) => return Poll::Ready(Some(Err(Status::internal("a thread panicked")))),
                    };
                    if ranges.is_empty() && sent == Sent::Something {
                        return Poll::Ready(None);
                    }
                    let ranges = ranges.into_iter().map(on_the_wire).collect();
                    return Poll::Ready(Some(Ok(M::of(self.size, ranges))));
                }
            }
        }
    }
}

/// The ranges of one message. What was read before an error is not told.
fn read(mut blocks: Blocks, most: usize) -> Read {
    let start = Instant::now();
    let mut ranges = Vec::new();
    while ranges.len() < most && (ranges.is_empty() || start.elapsed() < PATIENCE) {
        match blocks.next() {
            Some(range) => ranges.push(range?),
            None => return Ok((ranges, None)),
        }
    }
    Ok((ranges, Some(blocks)))
}

/// A refusal in the middle of a stream, told where its caller may drop it.
fn told(error: &Error) -> Status {
    answer::<()>("reading blocks", Err(of(error))).err().unwrap_or_else(|| of(error))
}

fn on_the_wire(range: Range<Bytes>) -> BlockMetadata {
    let bytes = |count: Bytes| i64::try_from(count.get()).unwrap_or(i64::MAX);
    BlockMetadata {
        byte_offset: bytes(range.start),
        size_bytes: bytes(range.end.saturating_sub(range.start)),
    }
}
