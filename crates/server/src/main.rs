//! The `sametick` command.

fn main() {}
