//! The `gabion` command.

fn main() {}
