//! What the suites stand on: fresh disks, a private LVM, and LVM's own word to compare with.

pub mod agent;
pub mod ask;
pub mod caching;
pub mod crawl;
pub mod csi_client;
pub mod csi_sanity;
pub mod disk;
pub mod expect;
pub mod faulty;
pub mod filesystem;
pub mod fixture;
pub mod fleet;
pub mod handle;
pub mod killer;
pub mod lab;
pub mod leaves;
pub mod life;
pub mod node;
pub mod oracle;
pub mod power_cut;
pub mod projects;
pub mod sandbox;
pub mod sweep;
pub mod tool;
pub mod udevd;
pub mod workers;

pub use disk::{Disk, skip_unless_dm, skip_unless_loop, virtual_disks};
pub use expect::{eventually, kind};
pub use faulty::Faulty;
pub use filesystem::Mounted;
pub use handle::{Handle, device_paths};
pub use lab::Lab;
pub use sandbox::Sandbox;
pub use tool::skip_unless_installed;
pub use udevd::WithoutUdevd;
pub use workers::Workers;
