//! Two peers have different states: when did that begin, who is wrong, and in what? The relay asks both, and when it knows,
//! gives the odd one the good state (L6). The relay knows no game: what the bytes mean is for the peers to say.

use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::diff::Difference;
use sametick_sim::hash::Part;
use sametick_sim::{Seat, StateHash, Tick, Time};

use crate::message::{RECENT_TICKS, StateAt};
use crate::session::Member;

/// Who does not answer for this long is not waited for.
pub const PATIENCE_US: u64 = 5_000_000;

/// Somebody whose state is in question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The peer.
    pub member: Member,
    /// Where it sits, if it plays.
    pub seat: Option<Seat>,
    /// What the player is called.
    pub name: String,
    /// The hashes of its states from this tick on.
    pub hashes: Option<(Tick, Vec<StateHash>)>,
    /// Its state at the first bad tick, or soon after.
    pub state: Option<StateAt>,
    /// Whether its state was found to be wrong.
    pub odd: bool,
}

impl Witness {
    /// Somebody who has not been asked yet.
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

/// How it was decided who is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It was not.
    Open,
    /// The others agree.
    ByMajority,
    /// A replay of the log has one of the states.
    ByReplay,
}

/// What is known about a desync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The tick whose check failed.
    pub check: Tick,
    /// The first tick whose states differ, as exactly as the answers tell.
    pub tick: Tick,
    /// How it was decided who is wrong.
    pub decided: Decided,
    /// Those two; where one of them is right, that one first.
    pub witnesses: [Witness; 2],
    /// The state of that tick as a replay has it, if there was one.
    pub replayed: Option<Vec<u8>>,
    /// What differed, as the odd one said when it was given the good state. `ours` is what the odd one had.
    pub fields: Vec<Difference>,
    /// Whether the odd one goes on with the good state.
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

/// What an inquiry wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// Ask for the hashes of these ticks.
    Hashes(Member, Tick, Tick),
    /// Ask for the state after this tick.
    State(Member, Tick),
    /// It is clear whose state is wrong, and since when.
    Found(Member, Tick),
    /// Only a replay up to this tick can tell who is right.
    Judge(Tick),
    /// Give somebody the state after this tick.
    Resync(Member, Tick, Vec<u8>),
    /// Nothing more will be known.
    Done,
    /// There is nothing to know: they have the same state.
    Dismiss,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Hashes,
    States,
    Judge,
    /// So many have not taken the good state yet.
    Resync(u8),
}

/// An inquiry that is going on.
#[derive(Clone, Debug)]
pub struct Inquiry {
    report: Report,
    stage: Stage,
    /// The last tick on which they agreed, as far as is known.
    agreed: Tick,
    deadline: Time,
}

impl Inquiry {
    /// Two peers differ at a check. If the others decided, the one who is right comes first.
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

    /// What is known so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Ends it.
    pub fn into_report(self) -> Report {
        self.report
    }

    /// Whether it is about this peer.
    pub fn is_about(&self, member: Member) -> bool {
        self.report.witnesses.iter().any(|witness| witness.member == member)
    }

    /// Whether this peer's state is in doubt, so that what it says of it does not count.
    pub fn suspects(&self, member: Member) -> bool {
        let odd = |witness: &Witness| witness.odd || self.report.decided == Decided::Open;
        self.report.witnesses.iter().any(|witness| witness.member == member && odd(witness))
    }

    fn witness(&mut self, member: Member) -> Option<&mut Witness> {
        self.report.witnesses.iter_mut().find(|witness| witness.member == member)
    }

    /// The hashes that were asked for.
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

    /// A state that was asked for.
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
            // It is so long ago that each gave the oldest it had. States of two ticks cannot be compared: ask for one that
            // both have for a while yet.
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

    /// What a replay of the log has after the tick that was to be judged.
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

    /// Somebody has taken the good state.
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

    /// Nobody can replay the log.
    pub fn on_no_verdict(&mut self, want: &mut Vec<Want>) {
        if self.stage == Stage::Judge {
            want.push(Want::Done);
        }
    }

    /// Somebody has answered: the next answer has its own time.
    pub fn heard(&mut self, now: Time) {
        self.deadline = now.plus_micros(PATIENCE_US);
    }

    /// Time has passed: `Done` if nothing more will be known.
    pub fn on_time(&self, now: Time, want: &mut Vec<Want>) {
        // A replay of a long log takes its time, and nobody's answer is missing meanwhile.
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
    fn whoever_was_mended_meanwhile_is_not_called_wrong() {
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
