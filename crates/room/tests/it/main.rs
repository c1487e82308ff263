//! Rooms, by what they promise.

mod assigned;
mod calm;
mod field;
mod played;
mod protocol;
mod resumed;
mod seeds;
mod steady;
mod world;
