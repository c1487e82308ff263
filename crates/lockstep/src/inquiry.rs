//! Desync inquiry (L6): the relay asks two peers with different states for hashes and states, finds the first bad tick
//! and the desynced peer, and resyncs it. The relay knows no game: only peers can interpret states.

use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::diff::Difference;
use sametick_sim::hash::Part;
use sametick_sim::{Seat, StateHash, Tick, Time};

use crate::message::{RECENT_TICKS, StateAt};
use crate::session::Member;

/// An answer is not waited for longer than this.
pub const PATIENCE_US: u64 = 5_000_000;

/// A peer whose state is in question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The peer.
    pub member: Member,
    /// The peer's seat, if it plays.
    pub seat: Option<Seat>,
    /// The player's name.
    pub name: String,
    /// The hashes of its states from this tick on.
    pub hashes: Option<(Tick, Vec<StateHash>)>,
    /// Its state at the first bad tick, or soon after.
    pub state: Option<StateAt>,
    /// Whether the peer is desynced.
    pub odd: bool,
}

impl Witness {
    /// A peer that has not been asked yet.
    pub fn new(member: Member, seat: Option<Seat>, name: String) -> Witness {
        Witness { member, seat, name, hashes: None, state: None, odd: false }
    }

    fn hash_at(&self, tick: Tick) -> Option<StateHash> {
        let (first, hashes) = self.hashes.as_ref()?;
        hashes.get(tick.0.checked_sub(first.0)? as usize).copied()
    }

    fn state_hash(&self) -> Option<StateHash> {
        self.state.as_ref().map(|state| StateHash::of_bytes(&state.bytes))
    }
}

/// How it was decided which peer is desynced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It was not decided.
    Open,
    /// The other players agree on a state.
    ByMajority,
    /// A replay of the log produces one of the states.
    ByReplay,
}

/// What an inquiry has found out about a desync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The tick whose check failed.
    pub check: Tick,
    /// The first tick whose states differ, as exactly as the answers show.
    pub tick: Tick,
    /// How it was decided which peer is desynced.
    pub decided: Decided,
    /// The two peers; if one of them is right, it comes first.
    pub witnesses: [Witness; 2],
    /// The state of that tick from a replay of the log, if there was one.
    pub replayed: Option<Vec<u8>>,
    /// The fields that differ, as the desynced peer reported when it was resynced. `ours` is its wrong value.
    pub fields: Vec<Difference>,
    /// Whether the desynced peer goes on with the agreed state.
    pub resynced: bool,
}

impl Report {
    /// The paths of the parts whose hashes differ.
    pub fn parts(&self) -> Vec<&str> {
        let [Some(ours), Some(theirs)] = [0, 1].map(|side| self.witnesses[side].state.as_ref()) else {
            return Vec::new();
        };
        let has = |parts: &[Part], part: &Part| parts.contains(part);
        let mut paths: Vec<&str> = Vec::new();
        for part in ours.parts.iter().filter(|part| !has(&theirs.parts, part)) {
            paths.push(&part.path);
        }
        for part in theirs.parts.iter().filter(|part| !has(&ours.parts, part)) {
            if !paths.contains(&part.path.as_str()) {
                paths.push(&part.path);
            }
        }
        paths
    }
}

/// What an inquiry asks the relay to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// Ask the peer for the hashes of these ticks.
    Hashes(Member, Tick, Tick),
    /// Ask the peer for the state after this tick.
    State(Member, Tick),
    /// It is decided that this peer's state is wrong, and from which tick on.
    Found(Member, Tick),
    /// Only a replay up to this tick can decide who is right.
    Judge(Tick),
    /// Send the peer this state of this tick.
    Resync(Member, Tick, Vec<u8>),
    /// The inquiry is over: nothing more can be found out.
    Done,
    /// Drop the inquiry: both peers have the same state.
    Dismiss,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Hashes,
    States,
    Judge,
    /// The number of peers that have not loaded the agreed state yet.
    Resync(u8),
}

/// A running inquiry.
#[derive(Clone, Debug)]
pub struct Inquiry {
    report: Report,
    stage: Stage,
    /// The last tick on which the two are known to agree.
    agreed: Tick,
    deadline: Time,
}

impl Inquiry {
    /// Two peers differ at a check. If a majority decided, the peer that is right comes first.
    pub fn new(
        now: Time,
        check: Tick,
        agreed: Tick,
        witnesses: [Witness; 2],
        decided: Decided,
        want: &mut Vec<Want>,
    ) -> Inquiry {
        let report = Report {
            check,
            tick: check,
            decided,
            witnesses,
            replayed: None,
            fields: Vec::new(),
            resynced: false,
        };
        let mut inquiry =
            Inquiry { report, stage: Stage::Hashes, agreed, deadline: now.plus_micros(PATIENCE_US) };
        inquiry.report.witnesses[1].odd = decided == Decided::ByMajority;
        for witness in &inquiry.report.witnesses {
            want.push(Want::Hashes(witness.member, agreed.next(), check));
        }
        inquiry
    }

    /// What has been found out so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Ends the inquiry.
    pub fn into_report(self) -> Report {
        self.report
    }

    /// Whether the inquiry is about this peer.
    pub fn is_about(&self, member: Member) -> bool {
        self.report.witnesses.iter().any(|witness| witness.member == member)
    }

    /// Whether this peer's state is in doubt, so that its answers to checks do not count.
    pub fn suspects(&self, member: Member) -> bool {
        let odd = |witness: &Witness| witness.odd || self.report.decided == Decided::Open;
        self.report.witnesses.iter().any(|witness| witness.member == member && odd(witness))
    }

    fn witness(&mut self, member: Member) -> Option<&mut Witness> {
        self.report.witnesses.iter_mut().find(|witness| witness.member == member)
    }

    /// Handles hashes that were asked for.
    pub fn on_hashes(&mut self, member: Member, first: Tick, hashes: Vec<StateHash>, want: &mut Vec<Want>) {
        if self.stage != Stage::Hashes {
            return;
        }
        if let Some(witness) = self.witness(member) {
            witness.hashes = Some((first, hashes));
        }
        if self.report.witnesses.iter().all(|witness| witness.hashes.is_some()) {
            self.report.tick = self.first_bad_tick();
            self.stage = Stage::States;
            let tick = self.report.tick;
            want.extend(self.report.witnesses.iter().map(|witness| Want::State(witness.member, tick)));
        }
    }

    fn first_bad_tick(&self) -> Tick {
        let [one, other] = &self.report.witnesses;
        let differs = |tick: &Tick| match (one.hash_at(*tick), other.hash_at(*tick)) {
            (Some(one), Some(other)) => one != other,
            _ => false,
        };
        let ticks = (self.agreed.0 + 1..=self.report.check.0).map(Tick);
        { ticks }.find(differs).unwrap_or(self.report.check)
    }

    /// Handles a state that was asked for.
    pub fn on_state(&mut self, member: Member, state: StateAt, want: &mut Vec<Want>) {
        if self.stage != Stage::States {
            return;
        }
        if let Some(witness) = self.witness(member) {
            witness.state = Some(state);
        }
        let [Some(good), Some(odd)] = [0, 1].map(|side| self.report.witnesses[side].state.as_ref()) else {
            return;
        };
        if good.tick != odd.tick {
            // The tick is so old that each peer gave the oldest state it had. States of two ticks cannot be compared:
            // ask for a tick that both keep for a while yet.
            let tick = good.tick.max(odd.tick) + RECENT_TICKS / 2;
            for witness in &mut self.report.witnesses {
                witness.state = None;
                want.push(Want::State(witness.member, tick));
            }
            return;
        }
        if good.bytes == odd.bytes {
            want.push(Want::Dismiss);
            return;
        }
        match self.report.decided {
            Decided::ByMajority => {
                let (tick, bytes) = (good.tick, good.bytes.clone());
                self.resync(tick, &bytes, want);
            }
            _ => {
                self.stage = Stage::Judge;
                want.push(Want::Judge(good.tick.max(odd.tick)));
            }
        }
    }

    /// Handles the state of the judged tick from a replay of the log.
    pub fn on_verdict(&mut self, tick: Tick, bytes: Vec<u8>, want: &mut Vec<Want>) {
        if self.stage != Stage::Judge {
            return;
        }
        let good = StateHash::of_bytes(&bytes);
        for witness in &mut self.report.witnesses {
            witness.odd = witness.state_hash() != Some(good);
        }
        if self.report.witnesses[0].odd && !self.report.witnesses[1].odd {
            self.report.witnesses.swap(0, 1);
        }
        self.report.decided = Decided::ByReplay;
        self.resync(tick, &bytes, want);
        self.report.replayed = Some(bytes);
    }

    fn resync(&mut self, tick: Tick, bytes: &[u8], want: &mut Vec<Want>) {
        let bad = self.report.tick;
        let mut odd = 0;
        for witness in self.report.witnesses.iter().filter(|witness| witness.odd) {
            odd += 1;
            want.push(Want::Found(witness.member, bad));
            want.push(Want::Resync(witness.member, tick, bytes.to_vec()));
        }
        self.stage = Stage::Resync(odd);
        if odd == 0 {
            want.push(Want::Dismiss);
        }
    }

    /// A peer has loaded the agreed state.
    pub fn on_resynced(&mut self, member: Member, fields: Vec<Difference>, want: &mut Vec<Want>) {
        let Stage::Resync(left) = &mut self.stage else { return };
        if !self.report.witnesses.iter().any(|witness| witness.member == member && witness.odd) {
            return;
        }
        *left = left.saturating_sub(1);
        if self.report.fields.is_empty() {
            self.report.fields = fields;
        }
        if *left == 0 {
            self.report.resynced = true;
            want.push(Want::Done);
        }
    }

    /// The log cannot be replayed.
    pub fn on_no_verdict(&mut self, want: &mut Vec<Want>) {
        if self.stage == Stage::Judge {
            want.push(Want::Done);
        }
    }

    /// A peer has answered: restarts the time-out.
    pub fn heard(&mut self, now: Time) {
        self.deadline = now.plus_micros(PATIENCE_US);
    }

    /// Handles the time: asks for `Done` when the time-out has passed.
    pub fn on_time(&self, now: Time, want: &mut Vec<Want>) {
        // A replay of a long log takes its time, and no peer's answer is missing meanwhile.
        if now >= self.deadline && self.stage != Stage::Judge {
            want.push(Want::Done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_peer_resynced_meanwhile_is_not_called_wrong() {
        let witness = |member| Witness::new(Member(member), Some(Seat(member as u16)), String::new());
        let mut want = vec![];
        let (check, agreed) = (Tick(60), Tick(30));
        let witnesses = [witness(0), witness(1)];
        let mut inquiry = Inquiry::new(Time::ZERO, check, agreed, witnesses, Decided::ByMajority, &mut want);
        for member in [0, 1].map(Member) {
            inquiry.on_hashes(member, Tick(31), vec![StateHash(5); 30], &mut want);
        }
        for member in [0, 1].map(Member) {
            let state = StateAt { tick: check, parts: vec![], bytes: vec![1, 2] };
            inquiry.on_state(member, state, &mut want);
        }
        assert_eq!(want.last(), Some(&Want::Dismiss));
        assert!(!want.iter().any(|want| matches!(want, Want::Found(..) | Want::Resync(..))));
    }
}
