//! An authoritative room: the host steps the game and decides, a view shows what concerns its player and predicts the rest.
#![no_std]

extern crate alloc;

pub mod delta;
pub mod host;
mod learnt;
pub mod message;
pub mod models;
mod odds;
pub mod pair;
mod row;
pub mod snapshot;
mod spin;
mod track;
pub mod view;

pub use host::{Host, HostConfig};
pub use view::View;
