//! The log: bytes, round trips, damage, sizes, disks, comparison.

mod beginning;
mod bytes;
mod damage;
mod differences;
mod disks;
mod sessions;
mod sizes;
mod steady;
mod trips;
