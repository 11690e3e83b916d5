//! CSI 1.13 on the wire, made from csi/proto/csi.proto.
//!
//! What carries secrets has a `Debug` that only counts them:
//!
//! ```
//! use csi::proto::DeleteVolumeRequest;
//!
//! let request = DeleteVolumeRequest {
//!     volume_id: "db".into(),
//!     secrets: [("key".into(), "hunter2".into())].into(),
//! };
//! let shown = format!("{request:?}");
//! assert!(shown.contains("db") && !shown.contains("hunter2"));
//! ```

#![allow(
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    rustdoc::all,
    clippy::all,
    clippy::too_many_lines,
    clippy::cast_possible_truncation,
    clippy::needless_pass_by_value
)]

// As its generator lays it out.
#[rustfmt::skip]
mod generated;

pub use generated::*;
