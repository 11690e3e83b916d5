//! The part of `lvcreate` that says how a volume is laid out over PVs.

use devices::Bytes;

use super::Words;
use crate::ops::{Integrity, Layout};

/// Adds the layout's options.
pub(super) fn layout(words: Words, layout: Layout, integrity: Integrity) -> Words {
    let words = match layout {
        Layout::Linear => words.option("--type", "linear"),
        Layout::Striped { stripes, stripe_size } => {
            striped(words.option("--type", "striped"), stripes, stripe_size)
        }
        Layout::Raid1 { copies } => words.option("--type", "raid1").option("--mirrors", copies - 1),
        Layout::Raid4 { stripes, stripe_size } => {
            striped(words.option("--type", "raid4"), stripes, stripe_size)
        }
        Layout::Raid5 { stripes, stripe_size } => {
            striped(words.option("--type", "raid5"), stripes, stripe_size)
        }
        Layout::Raid6 { stripes, stripe_size } => {
            striped(words.option("--type", "raid6"), stripes, stripe_size)
        }
        Layout::Raid10 { copies, stripes, stripe_size } => {
            striped(words.option("--type", "raid10").option("--mirrors", copies - 1), stripes, stripe_size)
        }
    };
    match integrity {
        Integrity::None => words,
        Integrity::Bitmap => words.option("--raidintegrity", "y").option("--raidintegritymode", "bitmap"),
        Integrity::Journal => words.option("--raidintegrity", "y").option("--raidintegritymode", "journal"),
    }
}

fn striped(words: Words, stripes: u32, stripe_size: Bytes) -> Words {
    // Checked to be a power of two of at least 4 KiB before a command is made.
    let sectors = devices::Sectors::new(stripe_size.get() / devices::Sectors::SIZE);
    words.option("--stripes", stripes).sectors("--stripesize", sectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(of: Layout, integrity: Integrity) -> String {
        layout(Words::cautious("lvcreate"), of, integrity).into_argv("t").unwrap().join(" ")
    }

    #[test]
    fn every_layout_has_its_options() {
        let stripe_size = Bytes::kib(64);
        for (layout, options) in [
            (Layout::Linear, "--type linear"),
            (Layout::Raid1 { copies: 2 }, "--type raid1 --mirrors 1"),
            (Layout::Raid4 { stripes: 2, stripe_size }, "--type raid4 --stripes 2 --stripesize 128s"),
            (Layout::Raid5 { stripes: 2, stripe_size }, "--type raid5 --stripes 2 --stripesize 128s"),
            (Layout::Raid6 { stripes: 3, stripe_size }, "--type raid6 --stripes 3 --stripesize 128s"),
            (
                Layout::Raid10 { copies: 2, stripes: 2, stripe_size },
                "--type raid10 --mirrors 1 --stripes 2 --stripesize 128s",
            ),
        ] {
            assert_eq!(line(layout, Integrity::None), format!("lvcreate {options}"));
        }
    }

    #[test]
    fn integrity_says_its_mode() {
        assert_eq!(
            line(Layout::Raid1 { copies: 3 }, Integrity::Bitmap),
            "lvcreate --type raid1 --mirrors 2 --raidintegrity y --raidintegritymode bitmap"
        );
        assert!(
            line(Layout::Raid1 { copies: 2 }, Integrity::Journal).ends_with("--raidintegritymode journal")
        );
    }
}
