//! The typed operations on PVs, groups, volumes, pools and snapshots.
