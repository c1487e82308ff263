//! Sessions, by behaviour.

mod fleet;
mod lobby;
mod messages;
mod placing;
mod playing;
mod random;
mod returns;
mod stage;
mod strangers;
mod world;
