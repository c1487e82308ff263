//! The log: bytes, round trips, damage, sizes, disks.

mod sessions;
mod sizes;
mod trips;
