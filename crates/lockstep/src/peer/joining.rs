//! Join and rejoin of a peer.

use sametick_sim::{Game, Seat, Tick, TickRate, Time, from_canonical};
use sametick_wire::{Channel, Malformed};

use crate::message::{Claim, Resume, ToPeer, ToRelay};
use crate::peer::{MAX_PREDICTED, Peer, Status};
use crate::play::Play;
use crate::rows::MAX_SEATS;
use sametick_wire::outbox::Outbox;
use sametick_wire::pacer::{Pacer, Path};

/// The longest pause of a session when a peer is let in.
const MAX_PAUSE_US: u64 = 5_000_000;

impl Status {
    /// Whether the relay has let the peer in. Until then the state from an earlier link is not used.
    pub fn takes_part(&self) -> bool {
        !matches!(self, Status::Joining | Status::Refused(_))
    }
}

impl<G: Game> Peer<G> {
    /// Resumes with this claim at the next [`Peer::rejoin`].
    pub fn take_claim(&mut self, claim: Claim) {
        self.claim = Some(claim);
    }

    /// Joins again over another link: resumes its seat from its confirmed tick, if the session still runs on that
    /// relay. The state on screen stands still until the relay answers.
    pub fn rejoin(&mut self, now: Time, path: Path) {
        self.now = self.now.max(now);
        self.outbox = Outbox::default();
        self.status = Status::Joining;
        self.pacer = Pacer::new(G::RATE, self.now, path);
        self.meter.restart(path);
        self.early.clear();
        self.asked_at = None;
        self.earlier_omissions = self.stats.omissions;
        self.unsent.1 = 0;
        self.want_path = false;
        self.join.seat = self.seat();
        self.backlog.clear();
        self.fault = None;
        // A peer that was still waiting for a save has no state.
        let have = self.play.as_ref().map_or(Tick::ZERO, Play::resumable);
        self.join.resume = self.claim.map(|claim| Resume { claim, have });
        self.ask_to_join();
    }

    pub(super) fn ask_to_join(&mut self) {
        let join = ToRelay::Join(self.join.clone());
        self.tell(Channel::Control, &join);
    }

    /// Handles a welcome: with a save, or with the ticks that the peer lacks.
    pub(super) fn on_welcome(&mut self, welcome: ToPeer) -> Result<(), Malformed> {
        let ToPeer::Welcome { seat, closed, first, age_us, setup, rate, claim, save, about } = welcome else {
            return Err(Malformed::Forbidden("the first message of a relay is Welcome or Refused"));
        };
        if u32::from(rate) != G::RATE.per_second() || seat.is_some_and(|seat| seat.index() >= MAX_SEATS) {
            return Err(Malformed::Forbidden("a welcome has the game's rate and a seat below 32"));
        }
        self.note_session(about, &setup, (&claim, closed), save.as_ref());
        // A state of another session cannot be used, and must not be taken for this one's at the next resume. The same
        // holds if the session was resumed since and the peer is not even rewound.
        let is_void =
            |before: Claim| before.run != claim.run || save.is_some() && before.restarts != claim.restarts;
        if self.claim.replace(claim).is_some_and(is_void) {
            self.play = None;
        }
        if let Some(head) = save.filter(|head| head.tick < first && head.tick <= closed) {
            return self.begin_loading(seat, closed, head);
        }
        let is_pausing = closed.0.checked_add(1) == Some(first.0) && age_us < 0;
        let play = self.play.as_ref().filter(|play| is_pausing && play.is_on(seat) && closed > Tick::ZERO);
        let own = play.map(|play| play.own_after(closed)).unwrap_or_default();
        self.take_seat(seat, closed, first, &setup)?;
        if self.confirmed().is_some_and(|(tick, _)| tick == closed) {
            self.hand_in_again(own);
        }
        self.begin(closed, age_us)
    }

    /// Takes the seat and begins at the first tick, or goes on from the confirmed tick if the missing ones follow.
    fn take_seat(
        &mut self,
        seat: Option<Seat>,
        closed: Tick,
        first: Tick,
        setup: &[u8],
    ) -> Result<(), Malformed> {
        (self.loading, self.loaded, self.awaits_first) = (None, (0, 0), false);
        match &mut self.play {
            // A peer without a confirmed tick cannot know whether the session is still the same.
            Some(play) if first > Tick(1) && first == play.confirmed().0.next() => play.rejoin(seat, closed),
            // The session was resumed from an earlier tick.
            Some(play) if first > Tick(1) && first <= play.confirmed().0 => {
                if play.go_back(first - 1) {
                    play.rejoin(seat, closed);
                    self.stats.rewinds += 1;
                } else {
                    self.begin_anew(seat, closed, setup)?;
                    self.awaits_first = true;
                    self.tell(Channel::Control, &ToRelay::Resend { from: Tick(1) });
                }
            }
            _ if first == Tick(1) => self.begin_anew(seat, closed, setup)?,
            _ => return Err(Malformed::Forbidden("ticks begin where the peer's end, or at the first")),
        }
        Ok(())
    }

    /// Begins at the session's beginning.
    fn begin_anew(&mut self, seat: Option<Seat>, closed: Tick, setup: &[u8]) -> Result<(), Malformed> {
        let setup =
            from_canonical(setup).map_err(|_| Malformed::Forbidden("a setup is of the game's type"))?;
        self.play = Some(Play::new(seat, &setup, closed));
        self.noted = Tick::ZERO;
        Ok(())
    }

    /// Begins to play: at once if no closed ticks have to be caught up with.
    fn begin(&mut self, closed: Tick, age_us: i64) -> Result<(), Malformed> {
        self.status = Status::CatchingUp;
        self.asked_at = Some(self.now);
        if closed == Tick::ZERO {
            self.launch_first(age_us);
        } else if self.confirmed().is_some_and(|(tick, _)| tick == closed) {
            self.launch_again(closed, age_us);
        }
        self.use_early()
    }

    /// Begins own ticks as far ahead of the relay as inputs need to be in time. `present` is the relay's tick when it
    /// sent the message with that tick.
    pub(super) fn launch(&mut self, present: Tick) {
        let Some(play) = self.play.as_mut().filter(|play| play.seat().is_some()) else { return };
        let start = present + self.pacer.lead_ticks();
        play.run_ahead(start);
        self.pacer.launch(self.now, play.shown().0);
    }

    /// Begins own ticks in a session that is not ahead of the peer: if it pauses, no sooner than needed.
    fn launch_again(&mut self, closed: Tick, age_us: i64) {
        let shown = self.shown().map_or(closed, |(tick, _)| tick);
        let ahead_us = G::RATE.due_micros(shown).saturating_sub(G::RATE.due_micros(closed));
        let early_us = (ahead_us as i64).saturating_sub(age_us).saturating_sub(self.pacer.lead_us() as i64);
        match u64::try_from(early_us) {
            Ok(early_us) if age_us < 0 => {
                self.pacer.launch(self.now.plus_micros(early_us.min(MAX_PAUSE_US)), shown);
            }
            _ => self.launch(closed + ticks_in(age_us, G::RATE)),
        }
    }

    /// Begins own ticks in a session that is about to begin, or has just begun.
    fn launch_first(&mut self, age_us: i64) {
        let early_us = -age_us - self.pacer.lead_us() as i64;
        match u64::try_from(early_us) {
            Ok(early_us) => self.pacer.launch(self.now.plus_micros(early_us), Tick::ZERO),
            Err(_) => self.launch(Tick(ticks_in(age_us, G::RATE))),
        }
    }
}

/// The whole ticks in an age, at most as many as may be predicted.
fn ticks_in(age_us: i64, rate: TickRate) -> u32 {
    (age_us.max(0) as u64 / rate.tick_micros().max(1)).min(u64::from(MAX_PREDICTED)) as u32
}
