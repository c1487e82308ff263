//! For those who do not draw: programs that take part, and want what is known as it is known.

use sametick_sim::replica::Hosted;
use sametick_sim::{Tick, Time};
use sametick_wire::claims::Claim;
use sametick_wire::identity::Token;
use sametick_wire::pacer::Path;
use sametick_wire::{Channel, control};

use super::{Output, Stage, View};
use crate::message::{Characters, Seated, ToHost, Welcome};
use crate::snapshot::KnownEntities;

impl<G: Hosted> View<G> {
    /// What lets this view come back as who it is, once it is let in.
    pub fn claim(&self) -> Option<Claim> {
        self.claim
    }

    /// What shows who this player is, once the server has said so: to be kept for the next time.
    pub fn token(&self) -> Option<Token> {
        self.token
    }

    /// Is known by this token from the next link on.
    pub fn take_token(&mut self, token: Token) {
        self.token = Some(token);
    }

    /// Comes as whoever has this token, over a link that has just opened.
    pub fn come_as(&mut self, token: Token) {
        self.take_token(token);
        self.rejoin(self.now, self.path);
    }

    /// What was wrong with the token it came with, if something was: it is somebody new then.
    pub fn bad_token(&self) -> Option<&str> {
        self.bad_token.as_deref()
    }

    /// The characters of this player.
    pub fn characters(&self) -> &Characters {
        &self.characters
    }

    /// Plays on as another character.
    pub fn choose_character(&mut self, name: &str) {
        let message = ToHost::Character(name.into());
        self.outbox.push(Output::Send(Channel::Control), |out| control::put(out, &message));
    }

    /// The tick after which everything that is kept is safe.
    pub fn saved(&self) -> Option<Tick> {
        self.saved
    }

    /// Comes back as the view that was given this claim, with the next [`View::rejoin`].
    pub fn take_claim(&mut self, claim: Claim) {
        self.claim = Some(claim);
    }

    /// Who is there.
    pub fn roster(&self) -> &[Seated] {
        &self.roster
    }

    /// What the host has said when it let the view in.
    pub fn welcome(&self) -> Option<&Welcome> {
        match &self.stage {
            Stage::In(welcome) => Some(welcome),
            _ => None,
        }
    }

    /// At what speed the room runs, of a hundred: less if its server has no more time for it.
    pub fn pace_percent(&self) -> u8 {
        self.pace_percent
    }

    /// From now on asks to be refused where neither claim nor token brings anybody back, in place of joining as a new player.
    pub fn require_resume(&mut self) {
        self.join.must_resume = true;
    }

    /// Comes back as who had this claim, over a link that has just opened.
    pub fn resume(&mut self, now: Time, path: Path, claim: Claim) {
        self.take_claim(claim);
        self.rejoin(now, path);
    }

    /// The zones that the entities of a kind are in, in the order of [`newest`](View::newest).
    pub fn newest_zones(&self, kind: usize) -> impl Iterator<Item = u8> + '_ {
        let table = self.received.newest().and_then(|snapshot| snapshot.tables.get(kind));
        table.map_or(&[][..], KnownEntities::marks).iter().map(|mark| mark.zone)
    }

    /// What has happened, as soon as it is known and whatever is shown.
    pub fn next_event(&mut self) -> Option<(Tick, G::Event)> {
        self.events.pop_front()
    }
}
