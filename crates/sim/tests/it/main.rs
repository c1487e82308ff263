//! Integration tests of the simulation crate.

mod allocations;
mod canonical;
mod entity;
mod game;
mod hashes;
mod inputs;
mod maths;
mod rich;
mod rng;
mod schemas;
mod sync;
mod time;
mod unserialised;
