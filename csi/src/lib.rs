//! The thin shell that adapts [`volumes`] to CSI gRPC services and to Kubernetes objects.
//!
//! The crate holds its place in the workspace: it translates, and knows nothing of storage itself.

#![forbid(unsafe_code)]

use volumes as _;
