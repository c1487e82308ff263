//! Tests of arena, by what they are about.

mod bots;
mod bytes;
mod commands;
mod contest;
mod determinism;
mod field;
mod foresight;
mod kept;
mod page;
mod properties;
mod rules;
mod seen;
