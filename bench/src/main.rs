//! Benchmarks that need what the product does not: `cargo run --release --manifest-path bench/Cargo.toml -- deltas`.
#![allow(clippy::disallowed_methods, reason = "reads what to measure")]

mod bridge;
mod clock;
mod deltas;
mod physics;
mod references;
mod scenes;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("deltas") => {
            deltas::run();
            bridge::run();
        }
        _ => eprintln!("what to measure: deltas"),
    }
}
