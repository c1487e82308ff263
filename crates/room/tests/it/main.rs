//! Integration tests of rooms.

mod assigned;
mod calm;
mod crowded;
mod field;
mod latency;
mod played;
mod protocol;
mod readers;
mod replayed;
mod resumed;
mod seeds;
mod steady;
mod swarm;
mod world;
