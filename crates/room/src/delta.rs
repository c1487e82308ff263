//! From one snapshot to the next.
