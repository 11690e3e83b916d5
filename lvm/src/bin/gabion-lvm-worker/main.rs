//! The process that holds liblvm2cmd.

fn main() {}
