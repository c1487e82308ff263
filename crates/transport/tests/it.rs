//! Real sockets: every transport, the door, and the limits. One test binary.

#[path = "it/echo.rs"]
mod echo;
#[path = "it/limits.rs"]
mod limits;
#[path = "it/silence.rs"]
mod silence;
#[path = "it/talk.rs"]
mod talk;
