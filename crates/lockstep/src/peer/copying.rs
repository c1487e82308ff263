//! Copies of a session: what a peer has of it for its player to keep, and a copy that it brings to a relay that has nothing of it.

use alloc::vec::Vec;

use sametick_sim::{Game, StateHash, Tick, schema_hash_of, to_canonical};
use sametick_wire::Channel;

use crate::copy::SessionCopy;
use crate::facts::Facts;
use crate::message::{About, Claim, MAX_STATE, Piece, SaveHead, ToRelay};
use crate::peer::Peer;
use crate::peer::giving::MAX_PIECE;
use crate::session::Save;

/// Who finds no seat in a session that goes on is let in when those have left who did not come back: in the tick after it.
const MOST_DEFERRED: u32 = 1;

/// What became of a copy that was brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brought {
    /// The session goes on from it.
    Taken {
        /// After this tick.
        tick: Tick,
    },
    /// The relay or another peer has the session: what they have counts.
    NotNeeded {
        /// The tick of the copy.
        ours: Tick,
        /// The last tick of the session.
        theirs: Tick,
        /// Whether it is the session that the copy is of, and not another one of its name.
        is_same: bool,
    },
}

/// What a peer knows for copies.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// What it brings, until the relay lets it in.
    bringing: Option<SessionCopy>,
    /// The state of the copy that the session goes on from: it need not come over the network.
    state: Option<(Tick, StateHash, Vec<u8>)>,
    brought: Option<Brought>,
    /// What the relay has said of the session, and what the session was begun with.
    about: Option<(About, Vec<u8>)>,
}

impl Copies {
    /// The session is known.
    fn note(&mut self, about: About, setup: &[u8], claim: &Claim, closed: Tick, save: Option<&SaveHead>) {
        if let Some(SessionCopy { started_unix_ms, save: ours, .. }) = self.bringing.take() {
            let is_taken = |head: &&SaveHead| (head.tick, head.hash) == (ours.tick, ours.hash);
            // Somebody who brings it later finds the same save, and a session that has gone on since.
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

    /// The state that a save is announced of, if it is here.
    pub fn take_state(&mut self, head: &SaveHead) -> Option<Vec<u8>> {
        let (tick, hash, state) = self.state.take()?;
        ((tick, hash, state.len()) == (head.tick, head.hash, head.bytes as usize)).then_some(state)
    }
}

impl<G: Game> Peer<G> {
    /// Brings this copy with the next [`Peer::rejoin`], until the relay lets it in: if the relay has nothing of the session, the session
    /// goes on from it, with its setup. See [`SessionCopy::check`] first.
    pub fn bring(&mut self, copy: SessionCopy) {
        let Facts { setup, seed, seats, listed, .. } = &copy.facts;
        self.join.setup.clone_from(setup);
        (self.join.seed, self.join.seats, self.join.listed) = (*seed, *seats, *listed);
        self.join.bring = Some(copy.to_bring());
        self.copies.bringing = Some(copy);
    }

    /// What became of the copy that it brought; none if it brought none, or is not let in yet.
    pub fn brought(&self) -> Option<Brought> {
        self.copies.brought
    }

    /// A copy of the session of this name as it is confirmed here: never what is only predicted. None before the first tick, and for the
    /// moment in which it is not known who sat where.
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

    /// The relay wants a part of the copy that it brings.
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
