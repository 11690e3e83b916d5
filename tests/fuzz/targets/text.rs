//! The metadata text: as a tree, and as a group. What is read must hold together.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lvm::metadata::{Defect, Section, Vg};
use lvm::ops::Layout;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let read = Vg::from_text(&text);
    // What LVM usually writes is decoded without the grammar, and must be read alike. (Their defects may be others.)
    let by_grammar = Vg::from_text_by_grammar(&text);
    match (&read, &by_grammar) {
        (Ok(read), Ok(by_grammar)) => assert!(read == by_grammar, "{read:?}\n{by_grammar:?}"),
        (read, by_grammar) => assert_eq!(read.is_ok(), by_grammar.is_ok(), "{read:?} {by_grammar:?}"),
    }
    if let Err(Defect::Syntax { .. }) = read {
        // Both use one parser of trees, and it has refused this text: to hear that twice finds nothing.
        return;
    }
    let tree = text.parse::<Section>();
    // Volumes are decoded on the way, so a text can be refused for one before its end is seen.
    let Ok(vg) = read else { return };
    assert!(tree.is_ok(), "what has no tree was taken for a group: {vg:?}");
    let usage = vg.usage();
    assert!(usage.free() <= vg.total_extents());
    let _ = usage.largest(&vg, Layout::Raid1 { copies: 2 });
    for lv in &vg.lvs {
        let _ = (vg.is_visible(lv), vg.is_partial(lv), vg.pvs_below(lv), vg.dm_uuid(lv, None));
        for part in lv.parts() {
            assert!(vg.lv(part.as_str()).is_some(), "{part} does not exist");
        }
    }
});
