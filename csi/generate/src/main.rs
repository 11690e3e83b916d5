//! Prints the Rust types, servers and clients of the `.proto` file given as the argument.
//!
//! No protoc: protox parses the file. Messages that carry secrets get a `Debug` of their own, which tells how many
//! there are and nothing else.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use prost_types::{DescriptorProto, FileDescriptorProto};

/// The package of the file, and with it the name of what is generated.
const PACKAGE: &str = "csi.v1";

const HEAD: &str = "// Made from csi/proto/csi.proto by `cargo xtask bindings`; do not edit.\n";

/// The field whose values are never shown.
const SECRETS: &str = "secrets";

fn main() -> ExitCode {
    let Some(proto) = std::env::args_os().nth(1) else {
        eprintln!("usage: generate-csi FILE.proto");
        return ExitCode::from(2);
    };
    match generate(Path::new(&proto)) {
        Ok(code) => {
            print!("{code}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}: {error}", Path::new(&proto).display());
            ExitCode::FAILURE
        }
    }
}

fn generate(proto: &Path) -> Result<String, Box<dyn Error>> {
    let parsed = protox::compile([proto], [proto.parent().ok_or("a file lies in a directory")?])?;
    let file = parsed.file.iter().find(|file| file.package() == PACKAGE).ok_or("it has another package")?;
    let secret: Vec<&DescriptorProto> = file.message_type.iter().filter(|message| has_secrets(message)).collect();
    let out = std::env::temp_dir().join(format!("generate-csi-{}", std::process::id()));
    std::fs::create_dir(&out)?;
    let made = tonic_prost_build::configure()
        .build_transport(false)
        .btree_map(".")
        .client_mod_attribute(PACKAGE, "#[cfg(feature = \"client\")]")
        .skip_debug(secret.iter().map(|message| format!(".{PACKAGE}.{}", message.name())))
        .emit_rerun_if_changed(false)
        .out_dir(&out)
        .compile_fds(parsed.clone())
        .and_then(|()| std::fs::read_to_string(out.join(format!("{PACKAGE}.rs"))));
    std::fs::remove_dir_all(&out)?;
    let mut code = made?;
    secret.iter().try_for_each(|message| debug(message, file, &mut code))?;
    Ok(HEAD.to_owned() + &prettyplease::unparse(&syn::parse_file(&code)?))
}

fn has_secrets(message: &DescriptorProto) -> bool {
    message.field.iter().any(|field| field.name() == SECRETS)
}

/// A `Debug` that counts the secrets and shows every other field.
fn debug(message: &DescriptorProto, file: &FileDescriptorProto, code: &mut String) -> Result<(), Box<dyn Error>> {
    if message.oneof_decl.iter().len() > 0 || file.syntax() != "proto3" {
        return Err(format!("{} has what its Debug is not made for", message.name()).into());
    }
    writeln!(code, "impl ::core::fmt::Debug for {} {{", message.name())?;
    writeln!(code, "fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {{")?;
    write!(code, "f.debug_struct(\"{}\")", message.name())?;
    for field in &message.field {
        let name = field.name();
        match name {
            SECRETS => write!(code, ".field(\"{name}\", &format_args!(\"{{}} not shown\", self.{name}.len()))")?,
            _ => write!(code, ".field(\"{name}\", &self.{name})")?,
        }
    }
    writeln!(code, ".finish() }} }}")?;
    Ok(())
}
