//! Gateway, hosts and sessions as real processes: strangers meet, and nothing that happens to one process is the end of a session.

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
