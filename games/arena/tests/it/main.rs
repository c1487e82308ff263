//! Tests of arena, by what they are about.

mod bytes;
mod commands;
mod determinism;
mod field;
mod rules;
