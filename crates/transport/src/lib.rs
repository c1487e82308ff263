//! Moves bytes.
