//! The thin shell that adapts [`volumes`] to CSI gRPC services and to Kubernetes objects.
//!
//! The crate holds its place in the workspace but for [`proto`]: what CSI 1.13 looks like on the wire.

#![forbid(unsafe_code)]

pub mod proto;

use {devices as _, rustix as _, tokio as _, tokio_stream as _, volumes as _};
