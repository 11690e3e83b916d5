//! Device-mapper by its own ioctls, for reading: tables, status, dependencies, events.
