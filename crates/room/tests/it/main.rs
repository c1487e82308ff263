//! Rooms, by what they promise.

mod calm;
mod field;
mod seeds;
mod steady;
mod world;
