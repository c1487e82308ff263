//! Tests of gateway, hosts and sessions as real processes: players meet, and a session survives the end of any one
//! process.

#[path = "lobby/abuse.rs"]
mod abuse;
#[path = "lobby/crash.rs"]
mod crash;
#[path = "lobby/crowd.rs"]
mod crowd;
#[path = "lobby/elsewhere.rs"]
mod elsewhere;
#[path = "lobby/ends.rs"]
mod ends;
#[path = "lobby/meeting.rs"]
mod meeting;
#[path = "lobby/modes.rs"]
mod modes;
#[path = "lobby/table.rs"]
mod table;
