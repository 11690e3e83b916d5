//! The worker processes that hold liblvm2cmd.
