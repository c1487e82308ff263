//! Rooms, by what they promise.

mod calm;
mod field;
mod protocol;
mod seeds;
mod steady;
mod world;
