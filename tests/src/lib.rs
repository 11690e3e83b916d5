//! What the suites stand on: fresh disks, a private LVM, and LVM's own word to compare with.
