//! A bounded set of worlds, and the worlds in which something was once wrong.

mod players;
mod regressions;
mod returns;
mod rooms;
mod seeds;
