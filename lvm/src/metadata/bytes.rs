//! Fixed-width fields of the on-disk structures, all of them little-endian.

use super::Defect;

/// The `N` bytes at `at`; `what` names the structure that ends too early otherwise.
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize, what: &'static str) -> Result<[u8; N], Defect> {
    let field = at.checked_add(N).and_then(|end| bytes.get(at..end));
    field.and_then(|field| field.try_into().ok()).ok_or(Defect::Short(what))
}

pub(super) fn u32_at(bytes: &[u8], at: usize, what: &'static str) -> Result<u32, Defect> {
    array(bytes, at, what).map(u32::from_le_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize, what: &'static str) -> Result<u64, Defect> {
    array(bytes, at, what).map(u64::from_le_bytes)
}
