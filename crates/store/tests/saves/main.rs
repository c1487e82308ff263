//! Saves: bytes, damage, races for one place.

mod bytes;
mod folders;
mod kit;
mod races;
mod s3;
mod shelves;
mod stand;
