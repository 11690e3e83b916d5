//! Everything in this program that Rust cannot check.

#![allow(unsafe_code)]

pub(crate) mod cookie;
pub(crate) mod devmapper;
pub(crate) mod lvm;
pub(crate) mod process;
