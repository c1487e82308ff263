//! Integration tests of arena.

mod bots;
mod bytes;
mod commands;
mod contest;
mod determinism;
mod field;
mod first_minute;
mod kept;
mod page;
mod prediction;
mod properties;
mod rounds;
mod rules;
mod seen;
