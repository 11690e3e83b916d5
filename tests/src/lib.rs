//! What the suites stand on: fresh disks, a private LVM, and LVM's own word to compare with.

pub mod disk;
pub mod leaves;
pub mod oracle;
pub mod sandbox;
pub mod tool;
pub mod workers;

pub use disk::{Disk, skip_unless_dm, skip_unless_loop};
pub use sandbox::Sandbox;
pub use tool::skip_unless_installed;
pub use workers::Workers;
