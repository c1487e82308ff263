//! Integration tests: a bounded set of worlds, and regressions.

mod players;
mod regressions;
mod returns;
mod rooms;
mod seeds;
