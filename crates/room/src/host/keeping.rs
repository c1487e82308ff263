//! What outlives the room: what is to be kept of it, and what is brought back into it.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use sametick_sim::replica::{Hosted, MAX_KEPT, Parts, parts_in};
use sametick_sim::{Seat, Tick, Time, Whose};
use sametick_wire::Member;
use sametick_wire::claims::Holds;
use sametick_wire::identity::PlayerId;

use super::{Host, Output};

/// So much is brought into one tick; what is more comes in the next ones.
const MAX_BROUGHT: usize = 32 << 10;

/// How often it is said at least who sits where, also of players of whom nothing has changed or nothing is kept: by this the driver
/// knows after a crash for whom a seat waits, and since when.
pub const SEATS_SAID_EVERY_US: u64 = 5_000_000;

/// What is known of somebody before they join: from whoever drives the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownPlayer<'a> {
    /// Who they are.
    pub player: PlayerId,
    /// Where they sat, if that is to be theirs again.
    pub seat: Option<Seat>,
    /// That seat and no other, whoever sits there; with none they only look, whatever they ask for. Over an earlier link they do not
    /// take part any more.
    pub is_firm: bool,
    /// What was kept of them here; empty if nothing.
    pub kept: &'a [u8],
    /// What was kept of their character, as it is brought into the game; empty if nothing.
    pub character: &'a [u8],
}

/// Something that is to be kept. The bytes are in the buffer that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keepable {
    /// Of a player.
    Player {
        /// Who.
        player: PlayerId,
        /// Where they sit.
        seat: Seat,
        /// What they were like after this tick.
        tick: Tick,
    },
    /// Of a player's character.
    Character {
        /// Whose.
        player: PlayerId,
    },
    /// A part of the place.
    Part(u32),
    /// A part of the place is gone; there are no bytes.
    Gone(u32),
}

/// Somebody who is about to join.
struct Guest {
    player: PlayerId,
    seat: Option<Seat>,
    is_firm: bool,
    kept: Vec<u8>,
    character: Vec<u8>,
}

/// What was last said of a seat.
#[derive(Clone, Default)]
struct Last {
    /// When it was last said who sits there.
    said_at: Option<Time>,
    player: Vec<u8>,
    character: Vec<u8>,
}

#[derive(Default)]
pub(super) struct Keeping {
    guests: BTreeMap<Member, Guest>,
    pub holds: Holds,
    /// What was to be kept of those who sat somewhere before the host was, for whoever is given their seat within this time.
    pub absent: Vec<(Seat, Time, Vec<u8>)>,
    brought: VecDeque<(Whose, Vec<u8>)>,
    last: Vec<Last>,
    parts: Parts,
    before: Parts,
    scratch: Vec<u8>,
}

impl Keeping {
    pub fn new(seats: usize) -> Keeping {
        Keeping { last: alloc::vec![Last::default(); seats], ..Keeping::default() }
    }

    pub fn expect(&mut self, member: Member, known: &KnownPlayer<'_>) {
        let KnownPlayer { player, seat, is_firm, kept, character } = *known;
        let guest = Guest { player, seat, is_firm, kept: kept.to_vec(), character: character.to_vec() };
        self.guests.insert(member, guest);
    }

    pub fn bring(&mut self, whose: Whose, bytes: &[u8]) {
        if whose == Whose::Place {
            self.remember(bytes);
        }
        self.brought.push_back((whose, bytes.to_vec()));
    }

    /// What is kept of the place: what does not stand any more when it is first looked for has gone since.
    pub fn remember(&mut self, parts: &[u8]) {
        parts_in(parts).for_each(|(number, part)| self.parts.put(number, part));
    }

    /// Whoever is about to join, and where they sat.
    pub fn expected(&self, member: Member) -> Option<(PlayerId, Option<Seat>)> {
        self.guests.get(&member).map(|guest| (guest.player, guest.seat))
    }

    /// The same for whoever has no say in where they sit.
    pub fn assigned(&self, member: Member) -> Option<(PlayerId, Option<Seat>)> {
        self.guests.get(&member).filter(|guest| guest.is_firm).map(|guest| (guest.player, guest.seat))
    }

    /// Somebody has sat down as if for the first time; what is known of them comes with them. What the room has kept itself is newer
    /// than anything else.
    pub fn seat(&mut self, member: Member, seat: Seat, held: Option<Vec<u8>>) {
        self.holds.clear(seat);
        self.vacate(seat);
        let guest = self.guests.remove(&member);
        let (kept, character) = guest.map_or_else(Default::default, |guest| (guest.kept, guest.character));
        let kept = held.filter(|held| !held.is_empty()).unwrap_or(kept);
        for (whose, bytes) in [(Whose::Player(seat), kept), (Whose::Character(seat), character)] {
            if !bytes.is_empty() {
                self.brought.push_back((whose, bytes));
            }
        }
    }

    /// What has not come into the game yet of whoever sits there.
    pub fn waiting_for(&self, seat: Seat) -> Option<Vec<u8>> {
        let its = self.brought.iter().find(|(whose, _)| *whose == Whose::Player(seat));
        its.map(|(_, bytes)| bytes.clone())
    }

    fn is_bringing(&self, seat: Seat) -> bool {
        self.brought.iter().any(|(whose, _)| whose.seat() == Some(seat))
    }

    /// Nobody is there any more for whom something was brought.
    pub fn vacate(&mut self, seat: Seat) {
        self.brought.retain(|(whose, _)| whose.seat() != Some(seat));
        if let Some(last) = self.last.get_mut(seat.index()) {
            *last = Last::default();
        }
    }

    pub fn forget_guest(&mut self, member: Member) {
        self.guests.remove(&member);
    }
}

impl<G: Hosted> Host<G> {
    /// Remembers what is to be kept of those who sat there before the host was.
    pub(super) fn keep_absent(&mut self, taken: &[Seat]) {
        let until = self.now.plus_micros(self.config.hold_us);
        let kept = taken.iter().map(|seat| (*seat, until, self.kept_of(*seat))).collect();
        self.keeping.absent = kept;
    }

    /// What comes into the next tick from outside.
    pub(super) fn gather_brought(&mut self) {
        let mut taken = 0;
        while let Some((whose, bytes)) =
            self.keeping.brought.pop_front_if(|(_, bytes)| taken == 0 || taken + bytes.len() <= MAX_BROUGHT)
        {
            taken += bytes.len();
            self.inputs.bring(whose, bytes);
        }
    }

    /// Once a second, says what has changed of everything that is kept.
    pub(super) fn keep(&mut self) {
        if !self.tick.0.is_multiple_of(G::RATE.per_second()) {
            return;
        }
        let mut any = false;
        for seat_slot in 0..self.seat_slots.len() {
            any |= self.keep_seat(Seat(seat_slot as u16));
        }
        let Keeping { parts, before, .. } = &mut self.keeping;
        core::mem::swap(parts, before);
        parts.clear();
        self.state.keep_parts(parts);
        parts.changes_since(before, |number, part| {
            any = true;
            match part {
                Some(part) => {
                    self.outbox.push(Output::Keep(Keepable::Part(number)), |out| out.extend_from_slice(part));
                }
                None => self.outbox.push_bare(Output::Keep(Keepable::Gone(number))),
            }
        });
        if any {
            self.outbox.push_bare(Output::Kept(self.tick));
        }
    }

    /// Says what has changed of somebody, and that this is all.
    pub(super) fn keep_member(&mut self, member: Member) {
        if let Some(seat) = self.who.get(&member).and_then(|who| who.seat) {
            self.keep_seat(seat);
            self.outbox.push_bare(Output::Kept(self.tick));
        }
    }

    /// Says what has changed of whoever sits there, if it is known who that is.
    pub(super) fn keep_seat(&mut self, seat: Seat) -> bool {
        let seat_slot =
            self.seat_slots.get(seat.index()).and_then(Option::as_ref).filter(|seat_slot| !seat_slot.joined);
        let who = seat_slot.and_then(|seat_slot| self.who.get(&seat_slot.member));
        let Some(player) = who.and_then(|who| who.player) else { return false };
        if self.keeping.is_bringing(seat) {
            // The game does not know yet what was kept: its own idea of the player must not replace that.
            return false;
        }
        let (now, tick) = (self.now, self.tick);
        let Keeping { last, scratch, .. } = &mut self.keeping;
        let Some(last) = last.get_mut(seat.index()) else { return false };
        scratch.clear();
        self.state.keep(seat, scratch);
        let is_recent = last.said_at.is_some_and(|at| now.micros_since(at) < SEATS_SAID_EVERY_US);
        let is_said = put(
            &mut self.outbox,
            Keepable::Player { player, seat, tick },
            scratch,
            &mut last.player,
            !is_recent,
        );
        if is_said {
            last.said_at = Some(now);
        }
        scratch.clear();
        self.state.keep_character(seat, scratch);
        put(&mut self.outbox, Keepable::Character { player }, scratch, &mut last.character, false) || is_said
    }

    /// What is kept of whoever sits there, as it is now.
    pub(super) fn kept_of(&self, seat: Seat) -> Vec<u8> {
        let mut kept = Vec::new();
        self.state.keep(seat, &mut kept);
        kept
    }
}

/// Says what is to be kept if it has changed, or if it is to be said `again` in any case. Returns whether it was said.
fn put(
    outbox: &mut super::Outbox<Output>,
    what: Keepable,
    bytes: &[u8],
    last: &mut Vec<u8>,
    again: bool,
) -> bool {
    assert!(bytes.len() <= MAX_KEPT, "at most {MAX_KEPT} bytes are kept of a player");
    if bytes == last && !again {
        return false;
    }
    last.clear();
    last.extend_from_slice(bytes);
    outbox.push(Output::Keep(what), |out| out.extend_from_slice(bytes));
    true
}
