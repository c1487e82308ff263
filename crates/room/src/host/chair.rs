//! Somebody on a seat: inputs that wait for their tick, and when they were made.

use alloc::collections::VecDeque;

use sametick_sim::record::Leaving;
use sametick_sim::replica::Hosted;
use sametick_sim::{Tick, TickRate, Time, from_canonical};
use sametick_wire::Member;
use sametick_wire::identity::PlayerId;
use sametick_wire::inputs::Opaque;

use crate::message::{PaceHead, RTT_UNIT_US, Report};

/// Whoever sat on a seat before the host was: no link has this number.
pub(super) const ABSENT: Member = Member(u64::MAX);

/// Inputs this far ahead of the present tick are not kept: more than two seconds at 30 Hz.
const MAX_AHEAD: u32 = 64;

/// An input is never taken to be older than this when its place among others is found, whatever its player's clock says.
const MAX_AGE_US: i64 = 250_000;

/// The shortest transit is forgotten after this long, twice over: clocks drift.
const REMEMBERED_US: u64 = 10_000_000;

/// A unit of slack in reports.
const SLACK_UNIT_US: i64 = 32;

/// What is known of a player's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    last: Option<Reading>,
    /// The least difference between our clock and theirs, over the present span of time and the one before.
    least_us: [Option<i64>; 2],
    span_began: Time,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    /// Their clock, with the bits that reports leave out.
    clock_us: i64,
    low: u32,
    tick: Tick,
    ago_us: i64,
    /// How long what they send takes to get here.
    transit_us: i64,
}

impl Clock {
    pub fn on_report(&mut self, now: Time, report: &Report) {
        let clock_us = match self.last {
            Some(last) => last.clock_us + i64::from(report.clock_us.wrapping_sub(last.low) as i32),
            None => i64::from(report.clock_us),
        };
        let (ago_us, transit_us) = (report.ago_us.into(), (u64::from(report.rtt) * RTT_UNIT_US / 2) as i64);
        self.last = Some(Reading { clock_us, low: report.clock_us, tick: report.tick, ago_us, transit_us });
        if now.micros_since(self.span_began) >= REMEMBERED_US {
            self.least_us = [None, self.least_us[0]];
            self.span_began = now;
        }
        let difference = now.as_micros() as i64 - clock_us;
        let least = self.least_us[0].get_or_insert(difference);
        *least = difference.min(*least);
    }

    /// When the input for a tick was made, by our clock as far as can be told; never in the future, nor long ago.
    pub fn made_us(&self, now: Time, rate: TickRate, tick: Tick) -> i64 {
        let now_us = now.as_micros() as i64;
        let least_us = self.least_us.iter().flatten().min();
        let (Some(last), Some(least_us)) = (self.last, least_us) else { return now_us };
        let later = (i64::from(tick.0) - i64::from(last.tick.0)) * rate.tick_micros() as i64;
        (last.clock_us + least_us - last.transit_us - last.ago_us + later).clamp(now_us - MAX_AGE_US, now_us)
    }
}

/// Somebody on a seat.
pub(crate) struct Chair {
    pub member: Member,
    /// Who that is, if it is known.
    pub player: Option<PlayerId>,
    /// Has just sat down: the next tick is the first.
    pub joined: bool,
    /// Is gone after the next tick.
    pub leaving: Option<Leaving>,
    queue: VecDeque<(Tick, Opaque)>,
    /// The newest tick that an input came for.
    newest: Tick,
    least_slack_us: Option<i64>,
    omissions: u32,
}

impl Chair {
    pub fn new(member: Member, player: Option<PlayerId>) -> Chair {
        Chair {
            member,
            player,
            joined: true,
            leaving: None,
            queue: VecDeque::new(),
            newest: Tick::ZERO,
            least_slack_us: None,
            omissions: 0,
        }
    }

    /// Of somebody who sat there before the host was, and has not come back.
    pub fn absent() -> Chair {
        Chair { joined: false, leaving: Some(Leaving::TimedOut), ..Chair::new(ABSENT, None) }
    }

    /// An input has arrived for a tick; `present` is the last that was stepped, `slack_us` how long before its time it is.
    pub fn push(&mut self, present: Tick, tick: Tick, input: Opaque, slack_us: i64) {
        if tick <= self.newest || tick.ticks_since(present) > MAX_AHEAD {
            return;
        }
        self.newest = tick;
        self.queue.push_back((tick, input));
        let least = self.least_slack_us.get_or_insert(slack_us);
        *least = slack_us.min(*least);
    }

    /// What the seat does in a tick, and the tick it was meant for. Inputs that came too late for theirs count now.
    pub fn take<G: Hosted>(&mut self, tick: Tick) -> Option<(Tick, G::Input)> {
        let mut taken: Option<(Tick, G::Input)> = None;
        while let Some((meant, input)) = self.queue.pop_front_if(|(meant, _)| *meant <= tick) {
            let Ok(input) = from_canonical::<G::Input>(input.as_bytes()) else { continue };
            let merged = match &taken {
                Some((_, earlier)) => G::merge(earlier, &input),
                None => input,
            };
            taken = Some((meant, merged));
        }
        if taken.is_none() && self.newest > Tick::ZERO && !self.joined {
            self.omissions += 1;
        }
        taken
    }

    /// How inputs have arrived since this was last asked for.
    pub fn pace(&mut self) -> PaceHead {
        let slack = self
            .least_slack_us
            .take()
            .map(|slack_us| (slack_us / SLACK_UNIT_US).clamp(i16::MIN.into(), i16::MAX.into()) as i16);
        PaceHead { slack, omissions: self.omissions }
    }

    /// Inputs that were missing so far.
    pub fn omissions(&self) -> u32 {
        self.omissions
    }
}

/// The slack of a report in microseconds.
pub(crate) fn slack_us(slack: i16) -> i32 {
    i32::from(slack) * SLACK_UNIT_US as i32
}
