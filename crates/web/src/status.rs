//! The client's status, as pages get it.

use sametick_client::{Brought, Status};
use serde::Serialize;

use crate::screen::Place;

/// See [`Status`]; times are those of every call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PageStatus {
    state: &'static str,
    route: &'static str,
    attempt: u32,
    retry_at_us: Option<f64>,
    silent_since_us: Option<f64>,
    why: String,
    seat: Option<u16>,
    /// In percent, so that it does not change with every tick.
    progress: u8,
    ticks_per_second: u32,
    spectators: u16,
    pace: u8,
    restarts: u32,
    brought: Option<PageBrought>,
}

/// The result of an offered copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct PageBrought {
    taken: bool,
    /// The tick of the copy.
    ours: u32,
    /// The last tick of the session that the server has instead.
    theirs: u32,
    /// Whether that is the same session.
    is_same: bool,
}

impl PageBrought {
    fn new(brought: Brought) -> PageBrought {
        match brought {
            Brought::Taken { tick } => {
                PageBrought { taken: true, ours: tick.0, theirs: tick.0, is_same: true }
            }
            Brought::NotNeeded { ours, theirs, is_same } => {
                PageBrought { taken: false, ours: ours.0, theirs: theirs.0, is_same }
            }
        }
    }
}

/// What is shown with a status.
#[derive(Clone, Copy)]
pub struct Around {
    /// The latest route that was dialled.
    pub route: &'static str,
    /// The number of the latest dial attempt.
    pub attempt: u32,
    /// The part of the status that comes from the player's side.
    pub place: Place,
    /// The frame rate.
    pub ticks_per_second: u32,
    /// The number of restarts of the session.
    pub restarts: u32,
    /// The result of the offered copy, if there was one.
    pub brought: Option<Brought>,
}

impl PageStatus {
    /// The status for a page.
    pub fn new(status: Status, around: Around) -> PageStatus {
        let (mut retry_at_us, mut silent_since_us, mut why) = (None, None, String::new());
        let state = match status {
            Status::Connecting => "connecting",
            Status::Joining => "joining",
            Status::Waiting => "waiting",
            Status::CatchingUp => "catching-up",
            Status::Playing => "playing",
            Status::Watching => "watching",
            Status::Stalled { since } => {
                silent_since_us = Some(since.as_micros() as f64);
                "stalled"
            }
            Status::Lost { retry_at, why: said } => {
                (retry_at_us, why) = (Some(retry_at.as_micros() as f64), said);
                "lost"
            }
            Status::Refused(said) => {
                why = said;
                "refused"
            }
            Status::Left => "left",
        };
        let Around { route, attempt, place, ticks_per_second, restarts, brought } = around;
        let Place { seat, progress, spectators, pace } = place;
        let progress = (progress * 100.0) as u8;
        PageStatus {
            state,
            route,
            attempt,
            retry_at_us,
            silent_since_us,
            why,
            seat,
            progress,
            ticks_per_second,
            spectators,
            pace,
            restarts,
            brought: brought.map(PageBrought::new),
        }
    }
}
