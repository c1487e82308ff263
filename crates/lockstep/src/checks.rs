//! Desync check: compares the state hashes that peers send every thirtieth tick (L6).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sametick_sim::{StateHash, Tick};

use crate::message::CHECK_EVERY;
use crate::planted::{self, Bug};
use crate::session::Member;

/// Checks that are open or remembered at once: eight seconds at 60 Hz. A peer further behind is not compared.
pub const MAX_CHECKS: usize = 16;

/// A check with answers missing after this many ticks is decided by the answers that came.
pub const PATIENCE_TICKS: u32 = 240;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// More than half of the players have this state.
    Agreed {
        /// The tick of the state.
        tick: Tick,
        /// Its hash.
        hash: StateHash,
    },
    /// One peer's state differs from the agreed one: the peer is desynced.
    Odd {
        /// The tick of the state.
        tick: Tick,
        /// The desynced peer.
        member: Member,
        /// The hash of its state.
        hash: StateHash,
        /// The agreed hash.
        agreed: StateHash,
    },
    /// The players differ, and no state has more than half of them.
    Split {
        /// The tick of the state.
        tick: Tick,
        /// Two peers with different states.
        members: [Member; 2],
    },
}

#[derive(Clone, Copy, Debug)]
struct Vote {
    member: Member,
    counts: bool,
    hash: StateHash,
}

#[derive(Clone, Debug, Default)]
struct Check {
    tick: Tick,
    /// The answers, and for each whether it came from a player.
    votes: Vec<Vote>,
    decided: Option<StateHash>,
    split: bool,
}

/// The checks of one session.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    open: VecDeque<Check>,
    spare: Vec<Check>,
    agreed: Tick,
}

impl Checks {
    /// The last tick with an agreed state.
    pub fn agreed(&self) -> Tick {
        self.agreed
    }

    /// The last remembered tick before `tick` for which two peers sent the same hash.
    pub fn last_common(&self, members: [Member; 2], tick: Tick) -> Option<Tick> {
        let said = |check: &Check, member: Member| {
            check.votes.iter().find(|vote| vote.member == member).map(|vote| vote.hash)
        };
        let common = |check: &&Check| {
            let [one, other] = members.map(|member| said(check, member));
            check.tick < tick && one.is_some() && one == other
        };
        self.open.iter().rev().find(common).map(|check| check.tick)
    }

    /// A player who answered the check of this tick with this hash.
    pub fn member_with(&self, tick: Tick, hash: StateHash) -> Option<Member> {
        let check = self.open.iter().find(|check| check.tick == tick)?;
        let same = check.votes.iter().find(|vote| vote.counts && vote.hash == hash);
        same.map(|vote| vote.member)
    }

    /// The agreed hash of a tick.
    pub fn decided(&self, tick: Tick) -> Option<StateHash> {
        self.open.iter().find(|check| check.tick == tick)?.decided
    }

    /// The peers that answered the check of this tick with the agreed hash.
    pub fn holders(&self, tick: Tick) -> Vec<Member> {
        let check = self.open.iter().find(|check| check.tick == tick && check.decided.is_some());
        let votes = check.into_iter().flat_map(|check| check.votes.iter().map(move |vote| (check, vote)));
        let mut holders: Vec<Member> = votes
            .filter(|(check, vote)| Some(vote.hash) == check.decided)
            .map(|(_, vote)| vote.member)
            .collect();
        holders.sort_unstable();
        holders
    }

    /// Handles a peer's hash. `voters` is the number of players; only their answers decide. Findings go to `found`.
    pub fn answer(
        &mut self,
        member: Member,
        is_voter: bool,
        (tick, hash): (Tick, StateHash),
        voters: usize,
        found: &mut Vec<Finding>,
    ) {
        let mixed_up = planted::has(Bug::ChecksMixedUp) && member.0 % 2 == 1;
        let tick = if mixed_up { tick - CHECK_EVERY } else { tick };
        let Some(check) = self.check(tick) else { return };
        match check.votes.iter_mut().find(|vote| vote.member == member) {
            Some(vote) => vote.hash = hash,
            None => check.votes.push(Vote { member, counts: is_voter, hash }),
        }
        match check.decided {
            Some(agreed) if hash != agreed => found.push(Finding::Odd { tick, member, hash, agreed }),
            Some(_) => {}
            None => check.decide(voters, found),
        }
        self.note_agreed();
    }

    /// A tick was closed: checks that have been open for too long are decided by the answers that came.
    pub fn on_tick(&mut self, closed: Tick, found: &mut Vec<Finding>) {
        for check in &mut self.open {
            let is_old = closed.ticks_since(check.tick) >= PATIENCE_TICKS;
            if is_old && check.decided.is_none() && !check.split && !check.votes.is_empty() {
                let voters = check.players();
                check.decide(voters, found);
            }
        }
        self.note_agreed();
    }

    /// A player has left: its answers are dropped.
    pub fn forget(&mut self, member: Member) {
        self.open.iter_mut().for_each(|check| check.votes.retain(|vote| vote.member != member));
    }

    fn note_agreed(&mut self) {
        let decided = self.open.iter().filter(|check| check.decided.is_some());
        self.agreed = decided.map(|check| check.tick).fold(self.agreed, Tick::max);
    }

    /// The check of a tick; none if it is no longer remembered.
    fn check(&mut self, tick: Tick) -> Option<&mut Check> {
        let newest = self.open.back().map_or(tick, |check| check.tick).max(tick);
        if newest.ticks_since(tick) >= MAX_CHECKS as u32 * CHECK_EVERY {
            return None;
        }
        let at = self.open.partition_point(|check| check.tick < tick);
        if self.open.get(at).is_none_or(|check| check.tick != tick) {
            let mut check = self.spare.pop().unwrap_or_default();
            check.votes.clear();
            self.open.insert(at, Check { tick, votes: check.votes, decided: None, split: false });
        }
        if self.open.len() > MAX_CHECKS {
            self.spare.extend(self.open.pop_front());
        }
        self.open.iter_mut().find(|check| check.tick == tick)
    }
}

impl Check {
    /// How many players have answered.
    fn players(&self) -> usize {
        self.votes.iter().filter(|vote| vote.counts).count()
    }

    fn votes_for(&self, hash: StateHash) -> usize {
        self.votes.iter().filter(|vote| vote.counts && vote.hash == hash).count()
    }

    fn decide(&mut self, voters: usize, found: &mut Vec<Finding>) {
        let tick = self.tick;
        let players = self.votes.iter().filter(|vote| vote.counts);
        let Some(most) = players.max_by_key(|vote| self.votes_for(vote.hash)).copied() else { return };
        let agreed = most.hash;
        let mut others = self.votes.iter().filter(|vote| vote.hash != agreed);
        if 2 * self.votes_for(agreed) > voters {
            self.decided = Some(agreed);
            found.push(Finding::Agreed { tick, hash: agreed });
            found.extend(others.map(|&Vote { member, hash, .. }| Finding::Odd {
                tick,
                member,
                hash,
                agreed,
            }));
        } else if self.players() >= voters && !self.split {
            self.split = true;
            let other = others.find(|vote| vote.counts);
            found.extend(other.map(|other| Finding::Split { tick, members: [most.member, other.member] }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn answers(voters: usize, answers: &[(u64, u64)]) -> Vec<Finding> {
        let (mut checks, mut found) = (Checks::default(), vec![]);
        for (member, hash) in answers {
            checks.answer(Member(*member), true, (Tick(30), StateHash(*hash)), voters, &mut found);
        }
        found
    }

    #[test]
    fn a_majority_decides_at_once_and_later_ones_are_desynced() {
        let (tick, agreed) = (Tick(30), StateHash(7));
        let odd = Finding::Odd { tick, member: Member(3), hash: StateHash(8), agreed };
        let found = answers(4, &[(1, 7), (3, 8), (2, 7), (4, 7)]);
        assert_eq!(found, [Finding::Agreed { tick, hash: agreed }, odd]);
        let found = answers(4, &[(1, 7), (2, 7), (4, 7), (3, 8)]);
        assert_eq!(found, [Finding::Agreed { tick, hash: agreed }, odd]);
    }

    #[test]
    fn without_a_majority_nothing_is_decided() {
        assert_eq!(answers(2, &[(1, 7)]), []);
        let split = |members| Finding::Split { tick: Tick(30), members };
        let found = answers(2, &[(1, 7), (2, 8)]);
        assert!(found == [split([Member(1), Member(2)])] || found == [split([Member(2), Member(1)])]);
        let found = answers(4, &[(1, 7), (2, 8), (3, 7), (4, 8)]);
        assert!(matches!(found[..], [Finding::Split { members: [a, b], .. }] if a.0 % 2 != b.0 % 2));
    }

    #[test]
    fn a_single_player_is_a_majority() {
        assert_eq!(answers(1, &[(1, 7)]), [Finding::Agreed { tick: Tick(30), hash: StateHash(7) }]);
    }

    #[test]
    fn missing_answers_time_out() {
        let (mut checks, mut found) = (Checks::default(), vec![]);
        checks.answer(Member(1), true, (Tick(30), StateHash(7)), 2, &mut found);
        checks.on_tick(Tick(30 + PATIENCE_TICKS - 1), &mut found);
        assert_eq!(found, []);
        checks.on_tick(Tick(30 + PATIENCE_TICKS), &mut found);
        assert_eq!(found, [Finding::Agreed { tick: Tick(30), hash: StateHash(7) }]);
        assert_eq!(checks.agreed(), Tick(30));
    }

    #[test]
    fn a_spectator_does_not_vote_but_is_compared() {
        let (mut checks, mut found) = (Checks::default(), vec![]);
        let at = |hash| (Tick(30), StateHash(hash));
        checks.answer(Member(9), false, at(1), 1, &mut found);
        checks.answer(Member(1), true, at(7), 1, &mut found);
        assert!(matches!(found[..], [Finding::Agreed { .. }, Finding::Odd { member: Member(9), .. }]));
        checks.answer(Member(8), false, at(2), 1, &mut found);
        assert!(matches!(found[2..], [Finding::Odd { member: Member(8), .. }]));
    }

    #[test]
    fn a_corrected_answer_can_end_a_split() {
        let (mut checks, mut found) = (Checks::default(), vec![]);
        for (member, hash) in [(1, 7), (2, 8), (2, 7)] {
            checks.answer(Member(member), true, (Tick(30), StateHash(hash)), 2, &mut found);
        }
        assert_eq!(found.last(), Some(&Finding::Agreed { tick: Tick(30), hash: StateHash(7) }));
    }

    #[test]
    fn the_last_common_hash_of_two_peers_is_remembered() {
        let (mut checks, mut found) = (Checks::default(), vec![]);
        for (tick, member, hash) in [(30, 1, 7), (30, 2, 7), (60, 1, 8), (60, 3, 8), (90, 1, 9), (90, 2, 4)] {
            checks.answer(Member(member), true, (Tick(tick), StateHash(hash)), 3, &mut found);
        }
        let last = |one, other, before| checks.last_common([Member(one), Member(other)], Tick(before));
        assert_eq!(last(1, 2, 90), Some(Tick(30)), "at 60 the second said nothing");
        assert_eq!(last(1, 3, 90), Some(Tick(60)));
        assert_eq!((last(2, 3, 90), last(1, 2, 30)), (None, None));
    }

    #[test]
    fn memory_is_bounded() {
        let (mut checks, mut found) = (Checks::default(), vec![]);
        for tick in (30..30_000).step_by(30) {
            checks.answer(Member(1), true, (Tick(tick), StateHash(1)), 2, &mut found);
        }
        assert_eq!(checks.open.len(), MAX_CHECKS);
        checks.answer(Member(1), true, (Tick(30), StateHash(1)), 2, &mut found);
        assert_eq!(checks.open.len(), MAX_CHECKS, "too old to be looked at");
    }
}
