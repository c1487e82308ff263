//! A deterministic simulator: a relay, its peers, the networks between them and a faulty disk in one process, from one
//! seed, with checkers that know the truth. See docs/simulator.md.

pub mod cable;
pub mod client;
pub mod clock;
pub mod crash_disk;
pub mod faults;
pub mod games;
pub mod journal;
pub mod outcome;
pub mod plan;
pub mod referee;
pub mod report;
pub mod run;
pub mod world;
