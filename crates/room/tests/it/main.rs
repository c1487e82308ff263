//! Rooms, by what they promise.

mod calm;
mod field;
mod protocol;
mod resumed;
mod seeds;
mod steady;
mod world;
