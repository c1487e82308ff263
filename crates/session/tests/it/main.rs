//! Sessions, by what they promise.

mod lobby;
mod placing;
mod playing;
mod random;
mod returns;
mod stage;
mod strangers;
mod world;
