//! Prints the Rust declarations of the header given as the first argument, formatted by the rustfmt
//! configuration given as the second.

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(header), Some(rustfmt)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: generate-bindings HEADER RUSTFMT_CONFIGURATION");
        return ExitCode::from(2);
    };
    // Edition 2024 is what the crates here are written in; 85 is the first compiler that has it.
    let Ok(target) = bindgen::RustTarget::stable(85, 0) else {
        eprintln!("this bindgen does not know Rust 1.85");
        return ExitCode::FAILURE;
    };
    let bindings = bindgen::Builder::default()
        .header(header.to_string_lossy())
        .allowlist_file(".*/(lvm2cmd|libdevmapper)\\.h")
        .default_macro_constant_type(bindgen::MacroTypeVariation::Signed)
        .disable_header_comment()
        .raw_line("// Made from vendor-headers by `cargo xtask bindings`; do not edit.")
        .layout_tests(false)
        .derive_copy(false)
        .merge_extern_blocks(true)
        .use_core()
        .rust_target(target)
        .rust_edition(bindgen::RustEdition::Edition2024)
        .rustfmt_configuration_file(Some(PathBuf::from(rustfmt)))
        .generate();
    match bindings {
        Ok(bindings) => {
            print!("{bindings}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}: {error}", header.to_string_lossy());
            ExitCode::FAILURE
        }
    }
}
