//! Integration tests of pong.

mod bots;
mod bytes;
mod contest;
mod determinism;
mod entering;
mod flight;
mod properties;
mod rules;
mod seats;
mod table;
mod views;
