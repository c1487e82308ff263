//! Session copies on a peer: making one of its confirmed state, and bringing one to a relay that has lost the session.

use alloc::vec::Vec;

use sametick_sim::{Game, StateHash, Tick, schema_hash_of, to_canonical};
use sametick_wire::Channel;

use crate::copy::SessionCopy;
use crate::facts::Facts;
use crate::message::{About, Claim, MAX_STATE, Piece, SaveHead, ToRelay};
use crate::peer::Peer;
use crate::peer::giving::MAX_PIECE;
use crate::session::Save;

/// A join without a free seat is answered after the peers that did not come back have left: in the tick after it.
const MOST_DEFERRED: u32 = 1;

/// The result of bringing a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brought {
    /// The session goes on from the copy.
    Taken {
        /// The tick of the copy.
        tick: Tick,
    },
    /// The relay or another peer has the session: its ticks are used instead.
    NotNeeded {
        /// The tick of the copy.
        ours: Tick,
        /// The last tick of the session.
        theirs: Tick,
        /// Whether it is the session of the copy, and not another one with the same name.
        is_same: bool,
    },
}

/// The state of a peer about copies.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// The copy to bring, until the relay lets the peer in.
    bringing: Option<SessionCopy>,
    /// The state of the copy that the session goes on from: it need not be transferred.
    state: Option<(Tick, StateHash, Vec<u8>)>,
    brought: Option<Brought>,
    /// The session's facts from the welcome, and its setup.
    about: Option<(About, Vec<u8>)>,
}

impl Copies {
    /// The welcome has arrived.
    fn note(&mut self, about: About, setup: &[u8], claim: &Claim, closed: Tick, save: Option<&SaveHead>) {
        if let Some(SessionCopy { started_unix_ms, save: ours, .. }) = self.bringing.take() {
            let is_taken = |head: &&SaveHead| (head.tick, head.hash) == (ours.tick, ours.hash);
            // A peer that brings the copy later finds the same save, and a session that has gone on since.
            let is_fresh = claim.from == ours.tick && closed.ticks_since(ours.tick) <= MOST_DEFERRED;
            let is_taken = is_fresh && save.filter(is_taken).is_some();
            let (tick, is_same) = (ours.tick, about.started_unix_ms == started_unix_ms);
            self.brought = Some(match is_taken {
                true => Brought::Taken { tick },
                false => Brought::NotNeeded { ours: tick, theirs: closed, is_same },
            });
            self.state = is_taken.then_some((tick, ours.hash, ours.state));
        }
        self.about = Some((about, setup.to_vec()));
    }

    /// The state of an announced save, if it is here.
    pub fn take_state(&mut self, head: &SaveHead) -> Option<Vec<u8>> {
        let (tick, hash, state) = self.state.take()?;
        ((tick, hash, state.len()) == (head.tick, head.hash, head.bytes as usize)).then_some(state)
    }
}

impl<G: Game> Peer<G> {
    /// Brings this copy with the next [`Peer::rejoin`], until the relay lets the peer in: if the relay has lost the
    /// session, it goes on from the copy, with the copy's setup. Call [`SessionCopy::check`] first.
    pub fn bring(&mut self, copy: SessionCopy) {
        let Facts { setup, seed, seats, listed, .. } = &copy.facts;
        self.join.setup.clone_from(setup);
        (self.join.seed, self.join.seats, self.join.listed) = (*seed, *seats, *listed);
        self.join.bring = Some(copy.to_bring());
        self.copies.bringing = Some(copy);
    }

    /// The result of bringing the copy; none if there was none, or the peer is not let in yet.
    pub fn brought(&self) -> Option<Brought> {
        self.copies.brought
    }

    /// A copy of the confirmed session under this name, never of predicted state. None before the first tick, and while
    /// the seats taken after the confirmed tick are not known.
    pub fn copy(&self, session: &str) -> Option<SessionCopy> {
        let (about, setup) = self.copies.about.as_ref()?;
        let play = self.play.as_ref()?;
        let (tick, state) = play.confirmed();
        if tick == Tick::ZERO || play.resumable() != tick {
            return None;
        }
        let state = to_canonical(state).ok().filter(|state| state.len() <= MAX_STATE)?;
        let (hash, table) = (StateHash::of_bytes(&state), play.table().clone());
        let facts = Facts {
            name: session.into(),
            game: G::NAME.into(),
            build: G::BUILD,
            commit: about.commit.clone(),
            schema: schema_hash_of::<G>(),
            setup: setup.clone(),
            seed: about.seed,
            rate: G::RATE,
            seats: about.seats,
            listed: about.listed,
        };
        let save = Save { tick, hash, state, table };
        Some(SessionCopy { facts, started_unix_ms: about.started_unix_ms, save })
    }

    pub(super) fn note_session(
        &mut self,
        about: About,
        setup: &[u8],
        (claim, closed): (&Claim, Tick),
        save: Option<&SaveHead>,
    ) {
        self.join.bring = None;
        self.copies.note(about, setup, claim, closed, save);
    }

    /// Sends a part of the copy that the relay asks for.
    pub(super) fn give_brought(&mut self, tick: Tick, offset: u32, bytes: u32) {
        let save = self.copies.bringing.as_ref().map(|copy| &copy.save).filter(|save| save.tick == tick);
        let rest = save.and_then(|save| save.state.get(offset as usize..)).filter(|rest| !rest.is_empty());
        match rest {
            Some(rest) => {
                let most = rest.len().min(bytes as usize).min(MAX_PIECE);
                let piece = Piece { tick, offset, bytes: rest[..most].to_vec() };
                self.tell(Channel::Chunks, &ToRelay::Piece(piece));
            }
            None => self.tell(Channel::Control, &ToRelay::Offer { tick, bytes: None }),
        }
    }
}
