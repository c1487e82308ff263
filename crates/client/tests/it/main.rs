//! Clients, a relay or a host, carriers and bad networks in virtual time.

mod comebacks;
mod copies;
mod hosted;
mod messages;
mod relayed;
mod rooms;
mod world;
