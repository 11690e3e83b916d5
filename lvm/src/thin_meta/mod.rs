//! The metadata of a thin pool, read from its metadata volume.
