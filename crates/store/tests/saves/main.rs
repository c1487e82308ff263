//! Saves and cold logs: bytes, damage, races for one key, every kind of store, retention.

mod bytes;
mod cold;
mod damage;
mod folders;
mod kit;
mod races;
mod retention;
mod s3;
#[allow(dead_code, reason = "the tests of the log use more of it")]
#[path = "../it/sessions.rs"]
mod sessions;
#[allow(dead_code, reason = "the tests of the server use more of it")]
mod stand;
mod stores;
