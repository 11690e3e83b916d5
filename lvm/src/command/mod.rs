//! Command lines, made from typed options only.
