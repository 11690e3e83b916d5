//! The messages in which the kernel and udevd tell of devices.
//!
//! The kernel's are `action@devpath`, then `KEY=value` strings, each ended by a zero byte (`lib/kobject_uevent.c`). udevd
//! passes them on, after its rules have run, behind a binary heading that begins with `libudev` (systemd's
//! `device-monitor.c`).

/// What udevd's messages begin with.
const UDEV_PREFIX: &[u8] = b"libudev\0";
/// The number that follows, in network order.
const UDEV_MAGIC: u32 = 0xfeed_cafe;

/// A message about a block device. It is a hint to look at the device, and no more: what is true is in sysfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hint {
    /// The kernel's name of the device.
    pub(super) name: String,
    /// The name that it had until now, where it was renamed.
    pub(super) old_name: Option<String>,
}

impl Hint {
    /// `None` for a message about another kind of device, or that is not understood.
    pub(super) fn parse(message: &[u8]) -> Option<Self> {
        let properties = if message.starts_with(UDEV_PREFIX) {
            udev_properties(message)?
        } else {
            let heading = message.iter().position(|byte| *byte == 0)?;
            message.get(heading + 1..)?
        };
        let get = |key: &[u8]| {
            let mut strings = properties.split(|byte| *byte == 0);
            strings.find_map(|text| text.strip_prefix(key)?.strip_prefix(b"="))
        };
        if get(b"SUBSYSTEM") != Some(b"block") {
            return None;
        }
        Some(Self { name: last_part(get(b"DEVPATH")?)?, old_name: get(b"DEVPATH_OLD").and_then(last_part) })
    }
}

fn last_part(path: &[u8]) -> Option<String> {
    let name = path.rsplit(|byte| *byte == b'/').next()?;
    let name = std::str::from_utf8(name).ok()?;
    let is_name = !name.is_empty() && name != "." && name != "..";
    is_name.then(|| name.to_owned())
}

/// Heading: prefix, magic, then sizes and offsets of 32 bits: of the heading, where the properties begin, their length.
fn udev_properties(message: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| message.get(at..at + 4)?.try_into().ok();
    if u32::from_be_bytes(word(8)?) != UDEV_MAGIC {
        return None;
    }
    let from = usize::try_from(u32::from_ne_bytes(word(16)?)).ok()?;
    let length = usize::try_from(u32::from_ne_bytes(word(20)?)).ok()?;
    message.get(from..)?.get(..length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PROPERTIES: &[u8] =
        b"ACTION=add\0DEVPATH=/devices/virtual/block/loop3\0SUBSYSTEM=block\0DEVNAME=loop3\0SEQNUM=9\0";

    fn kernel(properties: &[u8]) -> Vec<u8> {
        [b"add@/devices/virtual/block/loop3\0", properties].concat()
    }

    fn udevd(properties: &[u8]) -> Vec<u8> {
        let length = u32::try_from(properties.len()).unwrap();
        let mut message = UDEV_PREFIX.to_vec();
        message.extend(UDEV_MAGIC.to_be_bytes());
        for word in [40, 40, length, 0, 0, 0, 0] {
            message.extend(u32::to_ne_bytes(word));
        }
        message.extend(properties);
        message
    }

    #[test]
    fn both_kinds_of_message_name_the_device() {
        let hint = Hint { name: "loop3".to_owned(), old_name: None };
        assert_eq!(Hint::parse(&kernel(PROPERTIES)), Some(hint.clone()));
        assert_eq!(Hint::parse(&udevd(PROPERTIES)), Some(hint));
    }

    #[test]
    fn other_devices_and_rubbish_are_passed_over() {
        let net = b"ACTION=add\0DEVPATH=/devices/virtual/net/lo\0SUBSYSTEM=net\0";
        for message in [&kernel(net)[..], &udevd(net), b"", b"libudev\0", b"x", b"add@/x\0SUBSYSTEM=block\0"]
        {
            assert_eq!(Hint::parse(message), None);
        }
    }

    proptest! {
        #[test]
        fn no_message_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0usize..200) {
            let _ = Hint::parse(&bytes);
            let mut message = udevd(PROPERTIES);
            for (to, from) in message.iter_mut().skip(cut).zip(&bytes) {
                *to = *from;
            }
            let _ = Hint::parse(&message);
            message.truncate(cut);
            let _ = Hint::parse(&message);
        }
    }
}
