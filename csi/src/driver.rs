//! The driver: all services on one socket.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use volumes::{Error, Kind, Node};

use crate::calls::Calls;
use crate::controller::ControllerService;
use crate::ending::{self, Ending};
use crate::group::GroupService;
use crate::identity::IdentityService;
use crate::metadata::MetadataService;
use crate::node::NodeService;
use crate::proto::controller_server::ControllerServer;
use crate::proto::group_controller_server::GroupControllerServer;
use crate::proto::identity_server::IdentityServer;
use crate::proto::node_server::NodeServer;
use crate::proto::snapshot_metadata_server::SnapshotMetadataServer;
use crate::{Local, Place, Socket};

/// The most calls that work at once; more of them wait.
const THREADS: usize = 64;
/// The most calls that one connection may have open.
const STREAMS: u32 = 256;
/// How long calls that are under way may take when the driver is told to end. Kubernetes kills it after 30 seconds.
const PATIENCE: Duration = Duration::from_secs(20);
/// And how long what they left to LVM.
const LVM_PATIENCE: Duration = Duration::from_secs(5);

/// Whether capabilities that the specification calls alpha are offered: callers that are older than the capability
/// may take it for an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alpha {
    /// They are not.
    #[default]
    Withheld,
    /// `GET_VOLUME`, `GET_SNAPSHOT`, the blocks of snapshots, the health of volumes and storage, `SNAPSHOT_ACCESSIBILITY_CONSTRAINTS` and the least size
    /// of a volume are.
    Offered,
}

/// A CSI driver for the volumes of one node.
///
/// ```no_run
/// use csi::{Driver, Place, Socket};
/// use volumes::{Node, Settings};
///
/// let socket = Socket::bind(&"unix:///run/gabion/csi.sock".parse()?)?;
/// let (node, _) = Node::open(Settings::new("my-host".parse()?, Vec::new()))?;
/// Driver::new(node, Place::new("my-host")?).run(&socket)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Driver {
    node: Node,
    place: Place,
    alpha: Alpha,
}

impl Driver {
    /// Its controller services work on this node's own disks.
    #[must_use]
    pub fn new(node: Node, place: Place) -> Self {
        Self { node, place, alpha: Alpha::default() }
    }

    /// With alpha capabilities, or without.
    #[must_use]
    pub fn alpha(mut self, alpha: Alpha) -> Self {
        self.alpha = alpha;
        self
    }

    /// Serves until the process gets SIGTERM or SIGINT, and ends what is under way.
    ///
    /// # Errors
    ///
    /// [`Kind::Internal`] when the socket cannot be listened on; [`Kind::Unavailable`] when something was still under way
    /// when patience ended: it goes on in LVM, or is finished or undone by the next start.
    pub fn run(self, socket: &Socket) -> Result<(), Error> {
        let tried = || format!("serve on {}", socket.path().display());
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(THREADS)
            .thread_keep_alive(Duration::from_secs(2))
            .build()
            .map_err(|cause| Error::system(tried(), cause))?;
        let node = self.node.clone();
        let served = runtime.block_on(async {
            let told = || Error::new(Kind::Internal, tried());
            let mut terminate = signal(SignalKind::terminate()).map_err(|cause| told().with_source(cause))?;
            let mut interrupt = signal(SignalKind::interrupt()).map_err(|cause| told().with_source(cause))?;
            let stop = async move {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            };
            self.serve(socket, stop).await
        });
        // Calls whose callers went away are still under way in their threads.
        runtime.shutdown_timeout(PATIENCE);
        let drained = node.drain(LVM_PATIENCE);
        served?;
        match drained {
            true => Ok(()),
            false => {
                Err(Error::new(Kind::Unavailable, "end all operations").with_answer("LVM still works on one"))
            }
        }
    }

    /// Serves until `stop` is ready, then takes no more calls and waits for those that are under way.
    ///
    /// # Errors
    ///
    /// As [`Driver::run`].
    pub async fn serve(self, socket: &Socket, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let tried = format!("serve on {}", socket.path().display());
        let listener = socket.listener().and_then(UnixListener::from_std);
        let incoming =
            UnixListenerStream::new(listener.map_err(|cause| Error::system(tried.clone(), cause))?);
        let (end, ending) = ending::serving();
        let told = ending.clone();
        let calls = Calls::none();
        let services = self.services(ending, &calls);
        let serving = services.serve_with_incoming_shutdown(incoming, async move { told.begun().await });
        let ended = async {
            stop.await;
            end.begin();
            tokio::time::timeout(PATIENCE, calls.ended()).await
        };
        tokio::select! {
            served = serving => served.map_err(|cause| Error::new(Kind::Internal, tried).with_source(cause)),
            ended = ended => ended.map_err(|_| Error::new(Kind::Unavailable, "end all calls")
                .with_answer(format!("some were still under way after {} s", PATIENCE.as_secs()))),
        }
    }

    fn services(self, ending: Ending, calls: &Calls) -> tonic::transport::server::Router {
        let local = Local::new(self.node);
        let control = Arc::new(local.clone());
        let controller = ControllerService {
            control: Arc::clone(&control),
            place: self.place.clone(),
            alpha: self.alpha,
            ending: ending.clone(),
        };
        let metadata = MetadataService { control: Arc::clone(&control), alpha: self.alpha, ending };
        Server::builder()
            .max_concurrent_streams(STREAMS)
            .add_service(calls.count(IdentityServer::new(IdentityService { control, alpha: self.alpha })))
            .add_service(calls.count(ControllerServer::new(controller)))
            .add_service(calls.count(GroupControllerServer::new(GroupService)))
            .add_service(calls.count(SnapshotMetadataServer::new(metadata)))
            .add_service(calls.count(NodeServer::new(NodeService {
                local,
                place: self.place,
                alpha: self.alpha,
            })))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::path::Path;

    use super::*;
    use crate::tests::node_without_classes;

    /// What every client begins with (RFC 9113, 3.4), and empty settings.
    const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const RST_STREAM: u8 = 3;

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
    }

    /// `Identity/Probe`, its fields written out (RFC 7541, 6.2.2), with what a client takes for the name of the host.
    fn probe(stream: u8, authority: Option<&str>) -> Vec<u8> {
        let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        let method_and_scheme = vec![0x83, 0x86];
        let path = [vec![0x04], text("/csi.v1.Identity/Probe")].concat();
        let authority = authority.map(|name| [vec![0x01], text(name)].concat()).unwrap_or_default();
        let kind = [vec![0x0f, 0x10], text("application/grpc")].concat();
        let trailers = [vec![0x00], text("te"), text("trailers")].concat();
        let fields = [method_and_scheme, path, authority, kind, trailers].concat();
        [frame(HEADERS, 4, stream, &fields), frame(DATA, 1, stream, &[0; 5])].concat()
    }

    /// What comes back on a stream: the kind of the first frame that tells, and its payload.
    fn answer(mut from: &UnixStream, stream: u8) -> (u8, Vec<u8>) {
        loop {
            let mut head = [0; 9];
            from.read_exact(&mut head).unwrap();
            let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
            from.read_exact(&mut payload).unwrap();
            if head[8] == stream && [DATA, RST_STREAM].contains(&head[3]) {
                return (head[3], payload);
            }
        }
    }

    fn driver_at(directory: &Path) -> (Socket, Driver) {
        let path = directory.join("csi.sock");
        let socket = Socket::bind(&format!("unix://{}", path.display()).parse().unwrap()).unwrap();
        (socket, Driver::new(node_without_classes(directory), Place::new("here").unwrap()))
    }

    /// CSI-01: what callers of today send is answered; who sends the path of the socket is refused, and harms nobody.
    #[tokio::test]
    async fn every_name_of_the_host_is_taken_that_http_allows_and_no_other_one_ends_the_connection() {
        let directory = tempfile::tempdir().unwrap();
        let (socket, driver) = driver_at(directory.path());
        let path = socket.path().to_owned();
        let calls = tokio::task::spawn_blocking(move || {
            let mut caller = UnixStream::connect(path).unwrap();
            caller.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            caller.write_all(HELLO).unwrap();
            // `ready`, which is true, in a message of four bytes.
            let ready = (DATA, vec![0, 0, 0, 0, 4, 0x0a, 2, 8, 1]);
            let protocol_error = (RST_STREAM, vec![0, 0, 0, 1]);
            let callers = [
                (Some("localhost"), &ready),
                (None, &ready),
                (Some("/csi/csi.sock"), &protocol_error),
                (Some("%2Fcsi%2Fcsi.sock"), &protocol_error),
                (Some("localhost"), &ready),
            ];
            for (stream, (authority, told)) in (1..).step_by(2).zip(callers) {
                caller.write_all(&probe(stream, authority)).unwrap();
                assert_eq!(answer(&caller, stream), *told, "{authority:?}");
            }
        });
        driver.serve(&socket, async { calls.await.unwrap() }).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn who_keeps_his_connection_and_answers_nothing_holds_nobody_up() {
        let directory = tempfile::tempdir().unwrap();
        let (socket, driver) = driver_at(directory.path());
        let silent = UnixStream::connect(socket.path()).unwrap();
        (&silent).write_all(HELLO).unwrap();
        let told = tokio::time::sleep(Duration::from_secs(1));
        driver.serve(&socket, told).await.unwrap();
    }
}
