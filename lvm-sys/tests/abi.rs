//! Compares our own headers, and what was made from them, with the headers of the installed libraries: the C
//! compiler itself says whether each declaration is the same and each constant has the same value.

#![allow(clippy::unwrap_used, reason = "tests only: a panic is their way to fail")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names that `bindings.rs` declares after these words.
fn names<'a>(bindings: &'a str, words: &str) -> Vec<&'a str> {
    let declared = bindings.lines().filter_map(|line| line.trim_start().strip_prefix(words));
    let name = |rest: &'a str| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    };
    declared.map(name).collect()
}

fn constants(bindings: &str) -> Vec<(&str, &str)> {
    let lines = bindings.lines().filter_map(|line| line.strip_prefix("pub const "));
    lines
        .filter_map(|line| {
            let (name, rest) = line.split_once(": i32 = ")?;
            Some((name, rest.trim_end_matches(';')))
        })
        .collect()
}

/// A C file in which our declarations, under other names, meet the system's.
fn assertions(headers: &Path, bindings: &str) -> String {
    let functions = names(bindings, "pub fn ");
    let types = names(bindings, "pub type ");
    let renamed: Vec<&str> = functions.iter().chain(&types).copied().collect();
    let constants = constants(bindings);
    assert!(functions.len() > 20 && constants.len() > 20, "bindings.rs has changed its form");
    let mut text = String::from("#include <stdint.h>\n");
    for name in &renamed {
        let _ = writeln!(text, "#define {name} ours_{name}");
    }
    let _ = writeln!(text, "#include \"{}\"", headers.join("all.h").display());
    for name in &renamed {
        let _ = writeln!(text, "#undef {name}");
    }
    for (name, _) in &constants {
        let _ = writeln!(text, "#undef {name}");
    }
    text.push_str("#include <lvm2cmd.h>\n#include <libdevmapper.h>\n");
    for name in &functions {
        let _ = writeln!(
            text,
            "_Static_assert(__builtin_types_compatible_p(__typeof__(&{name}), __typeof__(&ours_{name})), \"{name}\");"
        );
    }
    for name in &types {
        let _ =
            writeln!(text, "_Static_assert(__builtin_types_compatible_p({name}, ours_{name}), \"{name}\");");
    }
    for (name, value) in &constants {
        let _ = writeln!(text, "_Static_assert({name} == {value}, \"{name}\");");
    }
    text
}

/// What the compiler says about the file; empty if it takes it.
fn compile(text: &str, name: &str) -> String {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&file, text).unwrap();
    let output = Command::new("cc").args(["-std=gnu11", "-fsyntax-only"]).arg(&file).output().unwrap();
    if output.status.success() { String::new() } else { String::from_utf8_lossy(&output.stderr).into_owned() }
}

fn skip() -> bool {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("SKIPPED: no C compiler");
        return true;
    }
    if !compile("#include <lvm2cmd.h>\n#include <libdevmapper.h>\n", "installed.c").is_empty() {
        println!("SKIPPED: the headers of liblvm2cmd and libdevmapper are not installed");
        return true;
    }
    false
}

fn input() -> (PathBuf, String) {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bindings = fs::read_to_string(package.join("src/bindings.rs")).unwrap();
    (package.join("../vendor-headers"), bindings)
}

#[test]
fn our_headers_declare_what_the_installed_ones_do() {
    if skip() {
        return;
    }
    let (headers, bindings) = input();
    let said = compile(&assertions(&headers, &bindings), "abi.c");
    assert!(said.is_empty(), "{said}");
}

/// The check itself can fail: a wrong type, a wrong number of arguments and a wrong value are each found.
#[test]
fn a_wrong_declaration_is_found() {
    if skip() {
        return;
    }
    let (headers, bindings) = input();
    let wrong = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("wrong");
    fs::create_dir_all(&wrong).unwrap();
    let original = |name: &str| fs::read_to_string(headers.join(name)).unwrap();
    let changes = [
        (
            "libdevmapper.h",
            "dm_task_set_sector(struct dm_task *dmt, uint64_t",
            "dm_task_set_sector(struct dm_task *dmt, uint32_t",
        ),
        (
            "libdevmapper.h",
            "int dm_udev_complete(uint32_t cookie)",
            "int dm_udev_complete(uint32_t cookie, int x)",
        ),
        ("lvm2cmd.h", "int lvm2_run(void *handle, const char *", "void lvm2_run(void *handle, const char *"),
        ("lvm2cmd.h", "int dm_errno, const char *message", "long dm_errno, const char *message"),
    ];
    for (changed, from, to) in changes {
        for name in ["all.h", "lvm2cmd.h", "libdevmapper.h"] {
            let text = original(name);
            assert!(name != changed || text.contains(from), "{from}");
            let text = if name == changed { text.replace(from, to) } else { text };
            fs::write(wrong.join(name), text).unwrap();
        }
        let said = compile(&assertions(&wrong, &bindings), "wrong.c");
        assert!(said.contains("static assertion failed"), "{to} is not found: {said}");
    }
    let value = bindings.replace("DM_DEVICE_CLEAR: i32 = 14", "DM_DEVICE_CLEAR: i32 = 13");
    assert_ne!(value, bindings);
    assert!(compile(&assertions(&headers, &value), "value.c").contains("DM_DEVICE_CLEAR"));
}
