//! Saved state that outlives the room: what has to be saved, and what is loaded into the game.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use sametick_sim::replica::{Hosted, MAX_KEPT, Parts, parts_in};
use sametick_sim::{Owner, Seat, Tick, Time};
use sametick_wire::Member;
use sametick_wire::claims::Holds;
use sametick_wire::identity::PlayerId;

use super::{Host, Output};

/// The most bytes of saved state loaded in one tick; the rest follows in the next ticks.
const MAX_BROUGHT: usize = 32 << 10;

/// How often at least each seated player is reported, also players with nothing to save or no changes: after a crash
/// the driver knows from this for whom a seat is reserved, and since when.
pub const SEATS_SAID_EVERY_US: u64 = 5_000_000;

/// The identity of a player who has not joined yet, and the player's saved state: given by the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownPlayer<'a> {
    /// The player.
    pub player: PlayerId,
    /// The assigned seat if `is_firm`; otherwise the player's previous seat, if the player is to have it again.
    pub seat: Option<Seat>,
    /// Whether the seat is assigned, overriding `Join`: another player on it has to leave, and without a seat the
    /// player is a spectator. The player's earlier link is closed.
    pub is_firm: bool,
    /// The player's saved state in this room; empty if none.
    pub kept: &'a [u8],
    /// The saved state of the player's character, as loaded into the game; empty if none.
    pub character: &'a [u8],
}

/// Something to be saved. The bytes are in the buffer passed to [`Host::poll_output`](super::Host::poll_output).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keepable {
    /// The state of a player.
    Player {
        /// The player.
        player: PlayerId,
        /// The player's seat.
        seat: Seat,
        /// The tick of the state.
        tick: Tick,
    },
    /// The state of a player's character.
    Character {
        /// The player.
        player: PlayerId,
    },
    /// A part of the place.
    Part(u32),
    /// A part of the place is gone; without bytes.
    Gone(u32),
}

/// A known player who is about to join.
struct Guest {
    player: PlayerId,
    seat: Option<Seat>,
    is_firm: bool,
    kept: Vec<u8>,
    character: Vec<u8>,
}

/// What was last saved for a seat.
#[derive(Clone, Default)]
struct Last {
    /// When the seated player was last reported.
    said_at: Option<Time>,
    player: Vec<u8>,
    character: Vec<u8>,
}

#[derive(Default)]
pub(super) struct Keeping {
    guests: BTreeMap<Member, Guest>,
    pub holds: Holds,
    /// The state of the absent players of before the restart, for the player who is assigned the seat within this time.
    pub absent: Vec<(Seat, Time, Vec<u8>)>,
    brought: VecDeque<(Owner, Vec<u8>)>,
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

    pub fn bring(&mut self, owner: Owner, bytes: &[u8]) {
        if owner == Owner::Place {
            self.remember(bytes);
        }
        self.brought.push_back((owner, bytes.to_vec()));
    }

    /// Remembers the saved parts of the place: parts that are missing at the first comparison are gone.
    pub fn remember(&mut self, parts: &[u8]) {
        parts_in(parts).for_each(|(number, part)| self.parts.put(number, part));
    }

    /// The player who is about to join over this link, and that player's previous seat.
    pub fn expected(&self, member: Member) -> Option<(PlayerId, Option<Seat>)> {
        self.guests.get(&member).map(|guest| (guest.player, guest.seat))
    }

    /// The player and seat that the driver assigned to this link.
    pub fn assigned(&self, member: Member) -> Option<(PlayerId, Option<Seat>)> {
        self.guests.get(&member).filter(|guest| guest.is_firm).map(|guest| (guest.player, guest.seat))
    }

    /// A player has taken a seat without being handed over; the saved state is loaded. State held by the room itself is
    /// newer than any other.
    pub fn seat(&mut self, member: Member, seat: Seat, held: Option<Vec<u8>>) {
        self.holds.clear(seat);
        self.vacate(seat);
        let guest = self.guests.remove(&member);
        let (kept, character) = guest.map_or_else(Default::default, |guest| (guest.kept, guest.character));
        let kept = held.filter(|held| !held.is_empty()).unwrap_or(kept);
        for (owner, bytes) in [(Owner::Player(seat), kept), (Owner::Character(seat), character)] {
            if !bytes.is_empty() {
                self.brought.push_back((owner, bytes));
            }
        }
    }

    /// The state of the seated player that has not been loaded into the game yet.
    pub fn waiting_for(&self, seat: Seat) -> Option<Vec<u8>> {
        let its = self.brought.iter().find(|(owner, _)| *owner == Owner::Player(seat));
        its.map(|(_, bytes)| bytes.clone())
    }

    fn is_bringing(&self, seat: Seat) -> bool {
        self.brought.iter().any(|(owner, _)| owner.seat() == Some(seat))
    }

    /// The seat was left: state not yet loaded for it is dropped.
    pub fn vacate(&mut self, seat: Seat) {
        self.brought.retain(|(owner, _)| owner.seat() != Some(seat));
        if let Some(last) = self.last.get_mut(seat.index()) {
            *last = Last::default();
        }
    }

    pub fn forget_guest(&mut self, member: Member) {
        self.guests.remove(&member);
    }
}

impl<G: Hosted> Host<G> {
    /// Remembers the state of the absent players of before the restart.
    pub(super) fn keep_absent(&mut self, taken: &[Seat]) {
        let until = self.now.plus_micros(self.config.hold_us);
        let kept = taken.iter().map(|seat| (*seat, until, self.kept_of(*seat))).collect();
        self.keeping.absent = kept;
    }

    /// Gathers the saved state that is loaded in the next tick.
    pub(super) fn gather_brought(&mut self) {
        let mut taken = 0;
        while let Some((owner, bytes)) =
            self.keeping.brought.pop_front_if(|(_, bytes)| taken == 0 || taken + bytes.len() <= MAX_BROUGHT)
        {
            taken += bytes.len();
            self.inputs.bring(owner, bytes);
        }
    }

    /// Once a second, outputs all changed state that is to be saved.
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

    /// Outputs a member's changed state, then `Kept`.
    pub(super) fn keep_member(&mut self, member: Member) {
        if let Some(seat) = self.who.get(&member).and_then(|who| who.seat) {
            self.keep_seat(seat);
            self.outbox.push_bare(Output::Kept(self.tick));
        }
    }

    /// Outputs the changed state of a seated player, if the player is known.
    pub(super) fn keep_seat(&mut self, seat: Seat) -> bool {
        let seat_slot =
            self.seat_slots.get(seat.index()).and_then(Option::as_ref).filter(|seat_slot| !seat_slot.joined);
        let who = seat_slot.and_then(|seat_slot| self.who.get(&seat_slot.member));
        let Some(player) = who.and_then(|who| who.player) else { return false };
        if self.keeping.is_bringing(seat) {
            // The saved state is not loaded into the game yet: the game's state of the player must not replace it.
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

    /// The current state to save for a seat.
    pub(super) fn kept_of(&self, seat: Seat) -> Vec<u8> {
        let mut kept = Vec::new();
        self.state.keep(seat, &mut kept);
        kept
    }
}

/// Outputs a state to be saved if it has changed, or if `again` is set. Returns whether it was output.
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
