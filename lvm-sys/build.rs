//! Links liblvm2cmd and libdevmapper. Neither ships a version check worth running at build time: the worker asks
//! the library for its version when it starts.
//!
//! `LVM2_LIB_DIR` names the directory of both libraries where the linker does not find them by itself, and
//! `LVM2_NO_LINK` leaves the linking out (documentation builds on machines without LVM).

fn main() {
    println!("cargo::rerun-if-env-changed=LVM2_LIB_DIR");
    println!("cargo::rerun-if-env-changed=LVM2_NO_LINK");
    if std::env::var_os("LVM2_NO_LINK").is_some() || std::env::var_os("DOCS_RS").is_some() {
        return;
    }
    if let Some(directory) = std::env::var_os("LVM2_LIB_DIR") {
        println!("cargo::rustc-link-search=native={}", directory.to_string_lossy());
    }
    println!("cargo::rustc-link-lib=dylib=lvm2cmd");
    println!("cargo::rustc-link-lib=dylib=devmapper");
}
