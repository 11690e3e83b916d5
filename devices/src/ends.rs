//! Where on a device signatures lie.

use std::ops::Range;

use crate::Bytes;

/// How far from the start of a device signatures lie, as far as libblkid 2.41 knows them: the last copy of a LUKS2
/// header is at 4 MiB, VMFS is at 1 and at 2 MiB.
pub const SIGNATURE_HEAD: Bytes = Bytes::mib(5);

/// How far from its end: the copy of a GPT, md and firmware RAID, the labels of ZFS; farthest is Promise's, 3,087 sectors
/// from the end.
pub const SIGNATURE_TAIL: Bytes = Bytes::mib(2);

/// The parts of a device of this size in which signatures can lie: one for a small device, two without overlap for a
/// larger one. Empty for an empty device.
///
/// ```
/// use devices::{Bytes, signature_ends};
///
/// let ends = signature_ends(Bytes::gib(1));
/// assert_eq!(ends, [Bytes::ZERO..Bytes::mib(5), Bytes::mib(1022)..Bytes::gib(1)]);
/// assert_eq!(signature_ends(Bytes::mib(6)), [Bytes::ZERO..Bytes::mib(6)]);
/// ```
#[must_use]
pub fn signature_ends(size: Bytes) -> Vec<Range<Bytes>> {
    if size == Bytes::ZERO {
        return Vec::new();
    }
    match size.checked_sub(SIGNATURE_TAIL) {
        Some(tail) if tail > SIGNATURE_HEAD => vec![Bytes::ZERO..SIGNATURE_HEAD, tail..size],
        _ => vec![Bytes::ZERO..size],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_large_device_and_all_of_a_small_one() {
        let mib = Bytes::mib;
        assert_eq!(signature_ends(Bytes::ZERO), []);
        assert_eq!(signature_ends(Bytes::new(1)), [Bytes::ZERO..Bytes::new(1)]);
        assert_eq!(signature_ends(mib(7)), [Bytes::ZERO..mib(7)]);
        let odd = Bytes::new(mib(100).get() + 512);
        let tail = Bytes::new(mib(98).get() + 512);
        assert_eq!(signature_ends(odd), [Bytes::ZERO..mib(5), tail..odd]);
    }
}
