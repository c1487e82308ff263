//! Clients, a relay, carriers and bad networks in virtual time.

mod comebacks;
mod world;
