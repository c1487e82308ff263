//! For those who do not draw: programs that take part, and want what is known as it is known.

use sametick_sim::replica::Hosted;
use sametick_sim::{Tick, Time};
use sametick_wire::claims::Claim;
use sametick_wire::pacer::Path;

use super::View;
use crate::snapshot::Known;

impl<G: Hosted> View<G> {
    /// What lets this view come back as who it is, once it is let in.
    pub fn claim(&self) -> Option<Claim> {
        self.claim
    }

    /// Comes back as who had this claim, over a link that has just opened.
    pub fn resume(&mut self, now: Time, path: Path, claim: Claim) {
        self.claim = Some(claim);
        self.rejoin(now, path);
    }

    /// The zones that the entities of a kind are in, in the order of [`newest`](View::newest).
    pub fn newest_zones(&self, kind: usize) -> impl Iterator<Item = u8> + '_ {
        let table = self.received.newest().and_then(|snapshot| snapshot.tables.get(kind));
        table.map_or(&[][..], Known::marks).iter().map(|mark| mark.zone)
    }

    /// What has happened, as soon as it is known and whatever is shown.
    pub fn next_event(&mut self) -> Option<(Tick, G::Event)> {
        self.events.pop_front()
    }
}
