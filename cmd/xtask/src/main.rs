//! The developer's commands.

fn main() {}
