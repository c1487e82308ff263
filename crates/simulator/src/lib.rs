//! The product in one process from one seed: a relay, its peers, the networks between them, a disk that fails, and
//! checkers that know what really happened. See docs/simulator.md.

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
