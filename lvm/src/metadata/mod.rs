//! LVM metadata, read straight from the block devices.
