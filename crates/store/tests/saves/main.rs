//! Saves: bytes, damage, races for one place.

mod bytes;
mod kit;
mod races;
