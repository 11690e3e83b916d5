//! What the developer's commands are made of: the disposable machine, and one module for each command.
//!
//! ```text
//!   vm  test  demo  bench        commands: one module each, dispatched by main
//!        │
//!     machine ── boot, run, unplug, cut the power      lock: one machine a host
//!    ┌───┼────────┐
//!   qemu qmp  virtual_disk       setup ─ kernel ─ initramfs, boot
//!   uml
//! ```

pub mod bench;
pub mod bindings;
pub mod boot;
pub mod built;
pub mod conformance;
pub mod demo;
pub mod go_tool;
pub mod initramfs;
pub mod kernel;
pub mod lock;
pub mod machine;
pub mod paths;
pub mod qemu;
pub mod qmp;
pub mod setup;
pub mod test;
pub mod tidy;
pub mod tool;
pub mod uml;
pub mod virtual_disk;
pub mod vm;
pub mod vmlinux;
pub mod workspace;
