//! Rejoining clients: what they keep of a lost link, and the relay's duties to them.

use sametick_lockstep::message::{self, SaveHead, ToPeer};
use sametick_lockstep::session::{Member, SessionId};
use sametick_sim::{Seat, Tick};

use super::World;
use super::client_side::mend;
use crate::cable::{Cable, Resumed};
use crate::client::{Client, Online};
use crate::games::Playable;
use crate::outcome::Checker;
use crate::referee::Tampering;

impl<G: Playable> World<G> {
    /// Takes the state that a client still has when it connects as `member`. A wrong state is dropped unless it would
    /// be detected.
    pub(super) fn take_kept(&mut self, index: usize, member: Member) -> Option<Online<G>> {
        let online = self.clients[index].kept.take()?;
        let Some((tick, (session, _))) = online.tampered.zip(online.welcome) else { return Some(online) };
        let is_hidden = self.relay_stalled || self.clients.iter().any(Client::is_silenced);
        if is_hidden || self.players_but(index) == 0 {
            self.forget(&online);
            return None;
        }
        let (at, seat) = (self.now, online.peer.seat());
        if let Some(referee) = self.referee(session).filter(|referee| !referee.ended) {
            referee.tampered.push(Tampering { member, seat, tick, at, mended_at: None });
            self.note(|| format!("client {index} takes a state along that is wrong since tick {tick}"));
        }
        Some(online)
    }

    /// Drops a peer for good.
    pub(super) fn forget(&mut self, online: &Online<G>) {
        let stats = online.peer.stats();
        self.figures.resimulated += stats.resimulated;
        self.figures.rewound += u64::from(stats.rewinds);
        self.figures.sent_again += stats.sent_again;
    }

    /// A member that is gone takes its wrong state along; it may still be reported for a while.
    pub(super) fn close_tamperings(&mut self, member: Member) {
        mend(&mut self.referees, member, self.now);
    }

    /// Whether the client of this cable has opened another one since, to resume over it.
    pub(super) fn has_come_back(&self, member: Member) -> bool {
        let mut cables = self.cables.iter().flatten();
        let client = cables.clone().find(|cable| cable.member == member).map(|cable| cable.client);
        let is_later = |cable: &Cable| Some(cable.client) == client && cable.member > member;
        cables.any(|cable| is_later(cable) && cable.resumed.is_some())
    }

    /// The names of players are the numbers of clients here.
    pub(super) fn on_joined(&mut self, id: SessionId, seat: Seat, name: &str) {
        let Ok(client) = name.parse() else { return };
        let result = self.referee(id).map(|referee| referee.on_joined(client, seat));
        self.judge(result.unwrap_or(Ok(())));
    }

    /// Checks that only absent players are recorded as left.
    pub(super) fn on_left(&mut self, id: SessionId, seat: Seat) {
        let Some(member) = self.referee(id).and_then(|referee| referee.member_on(seat)) else { return };
        let mut cables = self.cables.iter().flatten();
        if cables.any(|cable| cable.member == member && cable.there.is_some() && !cable.thrown_out) {
            self.fail(Checker::Back, format!("{member:?} is said to have left seat {seat}, and is there"));
        }
    }

    /// Handles the relay's answer to a join.
    pub(super) fn on_answer(&mut self, member: Member, message: &[u8]) {
        let cable = self.cables.iter_mut().flatten().find(|cable| cable.member == member);
        let Some((cable, id)) = cable.and_then(|cable| cable.session.map(|id| (cable, id))) else { return };
        let resumed = cable.resumed.filter(|resumed| resumed.session == id);
        match message::from_bytes(message) {
            Ok(ToPeer::Welcome { seat, first, save, .. }) => {
                cable.place = seat.map(|seat| (id, seat));
                cable.first = Some(first);
                let client = cable.client;
                self.check_beginning(id, client, resumed, first, save.as_ref());
                self.on_welcome(id, (client, member), resumed.filter(|_| save.is_none()), resumed, seat);
            }
            Ok(ToPeer::Refused { why }) => {
                let own = resumed.and_then(|it| self.referee(id)?.seat_of(it.member, member));
                if let Some(seat) = own {
                    self.fail(
                        Checker::Back,
                        format!("{member:?} is turned down, but has seat {seat}: {why}"),
                    );
                }
            }
            other => self.fail(Checker::Links, format!("{member:?} is answered {other:?}")),
        }
    }

    /// Checks that a joining client is sent what it lacks: the ticks after its state, or a save if those are gone or it
    /// has no state.
    fn check_beginning(
        &mut self,
        id: SessionId,
        client: usize,
        resumed: Option<Resumed>,
        first: Tick,
        save: Option<&SaveHead>,
    ) {
        let have = resumed.map_or(Tick::ZERO, |resumed| resumed.have);
        let earlier = resumed.filter(|it| self.referee(id).is_some_and(|referee| it.member < referee.first));
        let Some(session) = self.relay.session(id) else { return };
        let is_kept = have > Tick::ZERO && have.next() >= session.history().first();
        let begins = save.map_or(have, |save| save.tick);
        // The state of a client from before a restart may be void.
        let is_right = match earlier {
            Some(_) => first <= begins.next(),
            None => first == begins.next() && !(save.is_some() && is_kept),
        };
        if !is_right {
            let what = format!("client {client} has tick {have}, and is sent {first} first, after {save:?}");
            self.fail(Checker::Back, what);
        }
        if let Some(save) = save {
            self.figures.late_joins += 1;
            let tick = save.tick;
            self.note(|| format!("client {client} begins with the save after tick {tick}"));
        }
    }

    fn on_welcome(
        &mut self,
        id: SessionId,
        who: (usize, Member),
        kept: Option<Resumed>,
        resumed: Option<Resumed>,
        seat: Option<Seat>,
    ) {
        let have = resumed.map_or(Tick::ZERO, |resumed| resumed.have);
        let before = resumed.map(|resumed| resumed.member);
        let result = self.referee(id).map_or(Ok(false), |referee| referee.on_welcome(who, before, seat));
        if let (Some(_), Ok(taken_over)) = (kept, &result) {
            let how = if *taken_over { "and was never away" } else { "with what it has" };
            self.note(|| format!("client {} is back as {:?} {how}, at tick {have}", who.0, who.1));
            self.figures.back += 1;
            self.figures.takeovers += u64::from(*taken_over);
            self.figures.spared += u64::from(have.0);
        }
        self.judge(result.map(|_| ()));
    }
}
