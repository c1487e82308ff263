//! Accessors for programs that do not draw: claims, tokens, the roster, and events as soon as they arrive.

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
    /// The claim with which this view can resume, once it is let in.
    pub fn claim(&self) -> Option<Claim> {
        self.claim
    }

    /// The player's identity token, once the server has sent it: to be stored for the next time.
    pub fn token(&self) -> Option<Token> {
        self.token
    }

    /// Uses this token from the next link on.
    pub fn take_token(&mut self, token: Token) {
        self.token = Some(token);
    }

    /// Joins with this token, over a link that has just opened.
    pub fn come_as(&mut self, token: Token) {
        self.take_token(token);
        self.rejoin(self.now, self.path);
    }

    /// The reason why the token was invalid, if it was: the view has then joined as a new player.
    pub fn bad_token(&self) -> Option<&str> {
        self.bad_token.as_deref()
    }

    /// The characters of this player.
    pub fn characters(&self) -> &Characters {
        &self.characters
    }

    /// Switches to another character.
    pub fn choose_character(&mut self, name: &str) {
        let message = ToHost::Character(name.into());
        self.outbox.push(Output::Send(Channel::Control), |out| control::put(out, &message));
    }

    /// The tick as of which all saved state is durable.
    pub fn saved(&self) -> Option<Tick> {
        self.saved
    }

    /// Resumes as the view that was given this claim, with the next [`View::rejoin`].
    pub fn take_claim(&mut self, claim: Claim) {
        self.claim = Some(claim);
    }

    /// The seated players.
    pub fn roster(&self) -> &[Seated] {
        &self.roster
    }

    /// The host's welcome.
    pub fn welcome(&self) -> Option<&Welcome> {
        match &self.stage {
            Stage::In(welcome) => Some(welcome),
            _ => None,
        }
    }

    /// The speed of the room in percent: below 100 if its server is overloaded.
    pub fn pace_percent(&self) -> u8 {
        self.pace_percent
    }

    /// From now on asks to be refused if neither claim nor token identifies a known player, instead of joining as a new
    /// one.
    pub fn require_resume(&mut self) {
        self.join.must_resume = true;
    }

    /// Resumes with this claim, over a link that has just opened.
    pub fn resume(&mut self, now: Time, path: Path, claim: Claim) {
        self.take_claim(claim);
        self.rejoin(now, path);
    }

    /// The zones that the entities of a kind are in, in the order of [`newest`](View::newest).
    pub fn newest_zones(&self, kind: usize) -> impl Iterator<Item = u8> + '_ {
        let table = self.received.newest().and_then(|snapshot| snapshot.tables.get(kind));
        table.map_or(&[][..], KnownEntities::marks).iter().map(|mark| mark.zone)
    }

    /// The next event as soon as it has arrived, independent of the shown moment.
    pub fn next_event(&mut self) -> Option<(Tick, G::Event)> {
        self.events.pop_front()
    }
}
