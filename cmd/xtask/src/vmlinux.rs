//! The plain kernel inside of a compressed one: an emulated processor needs seconds to decompress what the host
//! decompresses in a moment.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::tool::put;

/// Writes the plain kernel of `image`, if the kernel can be started without its own decompressor (`CONFIG_PVH`) and is
/// compressed in a known way; says whether it did.
///
/// # Errors
/// When a file cannot be read or written, or the kernel cannot be decompressed.
pub fn extract(image: &Path, config: &Path, to: &Path) -> Result<bool> {
    let config = fs::read_to_string(config).with_context(|| format!("reading {}", config.display()))?;
    if !config.lines().any(|line| line == "CONFIG_PVH=y") {
        return Ok(false);
    }
    let kernel = fs::read(image).with_context(|| format!("reading {}", image.display()))?;
    let Some((program, compressed)) = payload(&kernel).and_then(decompressor) else { return Ok(false) };
    let plain = decompress(program, compressed)?;
    if !plain.starts_with(b"\x7fELF") {
        bail!("{} holds something that is no kernel", image.display());
    }
    put(to, &plain)?;
    Ok(true)
}

/// The compressed kernel behind the real-mode part (kernel: Documentation/arch/x86/boot.rst, fields `setup_sects`,
/// `payload_offset` and `payload_length`).
fn payload(kernel: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| -> Option<usize> {
        usize::try_from(u32::from_le_bytes(*kernel.get(at..)?.first_chunk()?)).ok()
    };
    if kernel.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let real_mode = (usize::from(*kernel.get(0x1f1)?).max(4) + 1) * 512;
    let start = real_mode.checked_add(word(0x248)?)?;
    kernel.get(start..start.checked_add(word(0x24c)?)?)
}

/// The program that understands the payload. Behind all but gzip's the kernel's build appends four bytes of size.
fn decompressor(payload: &[u8]) -> Option<(&'static str, &[u8])> {
    let without_size = payload.split_last_chunk::<4>()?.0;
    match payload {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(("xz", without_size)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(("zstd", without_size)),
        [0x1f, 0x8b, ..] => Some(("gzip", payload)),
        _ => None,
    }
}

fn decompress(program: &str, compressed: &[u8]) -> Result<Vec<u8>> {
    let mut child = Command::new(program)
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {program}"))?;
    let mut stdin = child.stdin.take().with_context(|| format!("{program} has no input"))?;
    let output = std::thread::scope(|scope| {
        let writing = scope.spawn(move || stdin.write_all(compressed));
        let output = child.wait_with_output();
        // A program that stops reading says itself why; its status is looked at below.
        let _ = writing.join();
        output
    });
    let output = output.with_context(|| format!("reading from {program}"))?;
    if !output.status.success() {
        bail!("{program} cannot decompress the kernel: {}", output.status);
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(payload: &[u8]) -> Vec<u8> {
        let mut kernel = vec![0; 5 * 512 + 16];
        kernel[0x1f1] = 4;
        kernel[0x202..0x206].copy_from_slice(b"HdrS");
        kernel[0x248..0x24c].copy_from_slice(&16_u32.to_le_bytes());
        kernel[0x24c..0x250].copy_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
        kernel.extend_from_slice(payload);
        kernel.extend_from_slice(b"tail");
        kernel
    }

    #[test]
    fn the_payload_is_found_by_the_header() {
        assert_eq!(payload(&image(b"content")).unwrap(), b"content");
        assert!(payload(b"short").is_none());
        assert!(payload(&vec![0; 4096]).is_none());
    }

    #[test]
    fn the_appended_size_is_no_part_of_a_stream_except_in_gzip() {
        assert_eq!(decompressor(b"\xfd7zXZ\x00dataSIZE").unwrap(), ("xz", b"\xfd7zXZ\x00data".as_slice()));
        assert_eq!(decompressor(b"\x1f\x8bdata").unwrap(), ("gzip", b"\x1f\x8bdata".as_slice()));
        assert!(decompressor(b"unknown").is_none());
    }

    #[test]
    fn a_kernel_that_is_no_elf_file_after_all_is_refused() {
        let directory = std::env::temp_dir().join(format!("rig-vmlinux-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = |name: &str| directory.join(name);
        let output = Command::new("sh").args(["-c", "printf content | gzip -c"]).output().unwrap();
        fs::write(path("vmlinuz"), image(&output.stdout)).unwrap();
        fs::write(path("config"), "CONFIG_PVH=y\n").unwrap();
        let refused = extract(&path("vmlinuz"), &path("config"), &path("vmlinux"));
        fs::write(path("config"), "CONFIG_PVH=n\n").unwrap();
        let left_alone = extract(&path("vmlinuz"), &path("config"), &path("vmlinux"));
        fs::remove_dir_all(&directory).unwrap();
        assert!(refused.unwrap_err().to_string().contains("no kernel"));
        assert!(!left_alone.unwrap());
    }
}
