//! The client side of a room: decodes updates, interpolates what is shown, and predicts the player's own state.
//!
//! The driver calls [`View::poll_output`] after each [`View::handle`], until it returns [`Output::WakeAt`]. To draw, it
//! calls [`View::look`], then [`View::shown`] and [`View::own`].

mod aside;
mod prediction;
mod received;
mod timeline;
mod tracks;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::replica::{Entity, Hosted, Row, Scene, ViewId};
use sametick_sim::{Seat, Tick, Time, from_canonical, to_canonical};
use sametick_wire::claims::Claim;
use sametick_wire::identity::Token;
use sametick_wire::inputs::{Opaque, put_inputs};
use sametick_wire::outbox::Outbox;
use sametick_wire::pacer::{Arrived, MAX_BATCH, PACE_EVERY, Pacer, Path};
pub use sametick_wire::side::{Input, Output};
use sametick_wire::{Channel, Malformed, control};

use crate::host::slack_us;
use crate::message::{
    Characters, Head, Join, MAX_SETUP, RTT_UNIT_US, Report, Seated, ToHost, ToView, Welcome, read_events,
    read_update,
};
use crate::snapshot::Layout;
pub use prediction::Errors;
use prediction::Prediction;
use received::Received;
use timeline::Timeline;
use tracks::Tracks;

/// The most events that wait to be shown; beyond it the oldest is dropped.
const MAX_EVENTS: usize = 256;

/// If own ticks deviate more than this from their schedule, they jump instead of catching up one by one.
const MAX_OFF: u32 = 60;

/// The parameters of a join.
#[derive(Clone, Debug)]
pub struct JoinAs<G: Hosted> {
    /// The player's name.
    pub name: String,
    /// The git commit of this build.
    pub commit: String,
    /// The setup of a new room.
    pub setup: G::Setup,
    /// The seed in that setup.
    pub seed: u64,
    /// The number of seats of a new room.
    pub seats: u16,
    /// Whether to join as a spectator.
    pub watch: bool,
    /// Whether a new room is listed publicly.
    pub listed: bool,
}

/// The state of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has asked to join.
    Joining,
    /// The host has refused it, with this reason.
    Refused(String),
    /// It is let in, and no update has arrived yet.
    Waiting,
    /// It plays or spectates.
    Playing,
    /// No update has arrived for a while: the shown state stands still.
    Frozen,
}

/// Statistics for people.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// The bytes of the last update.
    pub update_bytes: usize,
    /// The bytes of all updates.
    pub bytes: u64,
    /// Updates that arrived and were decoded.
    pub updates: u64,
    /// Updates that never came, or came after their base was dropped.
    pub lost: u64,
    /// How much received time is not shown yet, in microseconds.
    pub buffer_us: i64,
    /// How far the shown moment is behind the quickest recent update, in microseconds.
    pub delay_us: i64,
    /// The total time that the shown state stood still because nothing had arrived.
    pub frozen_us: u64,
    /// How many ticks ahead of the newest update own inputs are.
    pub lead_ticks: u32,
    /// Own inputs that reached the host too late.
    pub omissions: u32,
    /// Prediction errors.
    pub errors: Errors,
    /// The number of known entities.
    pub entities: usize,
}

enum Stage {
    Joining,
    Refused(String),
    In(Welcome),
}

/// The client side of a room.
pub struct View<G: Hosted> {
    now: Time,
    join: Join,
    stage: Stage,
    claim: Option<Claim>,
    token: Option<Token>,
    /// The reason why its token was invalid.
    bad_token: Option<String>,
    characters: Characters,
    saved: Option<Tick>,
    pace_percent: u8,
    roster: Vec<Seated>,
    layout: Layout,
    received: Received,
    timeline: Timeline,
    tracks: Tracks,
    newest: Scene,
    prediction: Prediction<G>,
    pacer: Pacer,
    path: Path,
    /// The last tick that an input was made for, and the time of that.
    tick: Tick,
    acted_at: Time,
    wants_input: bool,
    want_path: bool,
    /// Inputs to be sent, the newest last.
    unsent: Vec<Opaque>,
    events: VecDeque<(Tick, G::Event)>,
    outbox: Outbox<Output>,
    stats: Stats,
}

impl<G: Hosted> View<G> {
    /// A view that asks to join over a link that has just opened.
    ///
    /// # Panics
    /// If the setup is longer than allowed.
    pub fn new(now: Time, join: &JoinAs<G>, path: Path) -> View<G> {
        let setup = to_canonical(&join.setup).expect("a setup serialises");
        assert!(setup.len() <= MAX_SETUP, "a setup has at most {MAX_SETUP} bytes");
        let layout = Layout::of::<G>();
        let mut view = View {
            now,
            join: Join {
                game: G::NAME.into(),
                commit: join.commit.clone(),
                name: join.name.clone(),
                setup,
                seed: join.seed,
                seats: join.seats,
                watch: join.watch,
                listed: join.listed,
                resume: None,
                token: None,
                must_resume: false,
            },
            stage: Stage::Joining,
            claim: None,
            token: None,
            bad_token: None,
            characters: Characters::default(),
            saved: None,
            pace_percent: 100,
            roster: Vec::new(),
            received: Received::new(&layout, G::RATE.per_second().div_ceil(G::UPDATES.per_second())),
            timeline: Timeline::new(G::RATE, G::DELAY_MS),
            tracks: Tracks::new(&layout, G::RATE, G::UPDATES),
            newest: Scene::new(G::KINDS),
            prediction: Prediction::new(),
            pacer: Pacer::new(G::RATE, now, path),
            path,
            tick: Tick::ZERO,
            acted_at: now,
            wants_input: false,
            want_path: false,
            unsent: Vec::new(),
            events: VecDeque::new(),
            outbox: Outbox::default(),
            stats: Stats::default(),
            layout,
        };
        view.ask();
        view
    }

    /// Rejoins over a link that has just opened, with the claim and token it has.
    pub fn rejoin(&mut self, now: Time, path: Path) {
        self.now = self.now.max(now);
        self.path = path;
        self.stage = Stage::Joining;
        self.received.forget();
        self.unsent.clear();
        self.outbox = Outbox::default();
        self.wants_input = false;
        self.ask();
    }

    fn ask(&mut self) {
        (self.join.resume, self.join.token) = (self.claim, self.token);
        let join = ToHost::Join(self.join.clone());
        self.outbox.push(Output::Send(Channel::Control), |out| control::put(out, &join));
    }

    /// The state of the view.
    pub fn status(&self) -> Status {
        match &self.stage {
            Stage::Joining => Status::Joining,
            Stage::Refused(why) => Status::Refused(why.clone()),
            Stage::In(_) if self.received.newest().is_none() => Status::Waiting,
            Stage::In(_) if self.timeline.buffer_us() <= 0 => Status::Frozen,
            Stage::In(_) => Status::Playing,
        }
    }

    /// The player's seat, once let in.
    pub fn seat(&self) -> Option<Seat> {
        match &self.stage {
            Stage::In(welcome) => welcome.seat,
            _ => None,
        }
    }

    /// The view's id, once let in.
    pub fn view_id(&self) -> Option<ViewId> {
        match &self.stage {
            Stage::In(welcome) => Some(ViewId(welcome.view)),
            _ => None,
        }
    }

    /// The last tick that an input was made for.
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// The newest received scene: for drawing ghosts, and for programs that do not draw.
    pub fn newest(&self) -> &Scene {
        &self.newest
    }

    /// The tick of the newest update.
    pub fn newest_tick(&self) -> Tick {
        self.timeline.newest()
    }

    /// The newest received values of the predicted state.
    pub fn newest_own(&self) -> Option<G::Own> {
        let table = self.received.newest()?.tables.last()?;
        (!table.marks().is_empty()).then(|| G::Own::take(table.slots(0))).flatten()
    }

    /// The predicted state after the last tick, without blending.
    pub fn predicted(&self) -> Option<&(Tick, G::Own)> {
        self.prediction.last()
    }

    /// Advances the shown moment to now.
    pub fn look(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.timeline.look(self.now);
        if let Some(shown_us) = self.timeline.shown_us() {
            self.tracks.look(shown_us);
        }
    }

    /// The entities of a type as they are shown: id, zone, and values interpolated between updates.
    pub fn shown<E: Entity>(&self) -> impl Iterator<Item = (u32, u8, E)> + '_ {
        self.tracks.shown::<E>()
    }

    /// The predicted state as it is shown.
    pub fn own(&self) -> Option<G::Own> {
        self.prediction.shown(self.now)
    }

    /// The next event, once the shown moment has reached its tick.
    pub fn poll_event(&mut self) -> Option<(Tick, G::Event)> {
        let shown_us = self.timeline.shown_us()?;
        let due = |(tick, _): &mut (Tick, G::Event)| G::RATE.due_micros(*tick) as i64 <= shown_us;
        self.events.pop_front_if(due)
    }

    /// Statistics for people.
    pub fn stats(&self) -> Stats {
        Stats {
            buffer_us: self.timeline.buffer_us(),
            delay_us: self.timeline.delay_us(),
            frozen_us: self.timeline.frozen_us(),
            lead_ticks: self.tick.ticks_since(self.timeline.newest()),
            errors: self.prediction.errors(),
            lost: self.received.lost(),
            ..self.stats
        }
    }

    /// Handles an input. An error means that the host violates the protocol.
    pub fn handle(&mut self, now: Time, input: Input<'_, G::Input>) -> Result<(), Malformed> {
        self.now = self.now.max(now);
        match input {
            Input::Message(Channel::Control, bytes) => self.on_control(control::from_bytes(bytes)?),
            Input::Message(Channel::State, bytes) => self.on_update(bytes)?,
            Input::Message(..) => {
                return Err(Malformed::Forbidden("rooms speak on the channels for control and state"));
            }
            Input::Local(input) => self.act(input),
            Input::Path(path) => {
                self.path = path;
                self.pacer.on_path(path);
            }
            Input::Timeout => {}
        }
        Ok(())
    }

    /// The next output.
    pub fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output {
        if let Some(output) = self.outbox.pop(buf) {
            return output;
        }
        if core::mem::take(&mut self.want_path) {
            return Output::WantPath;
        }
        let plays = self.seat().is_some() && self.received.newest().is_some();
        if !plays || self.wants_input {
            return Output::Wait;
        }
        if self.pacer.next_at() > self.now {
            return Output::WakeAt(self.pacer.next_at());
        }
        self.catch_up();
        self.wants_input = true;
        Output::WantInput(self.tick.next())
    }

    /// Skips ticks whose inputs would arrive too late anyway.
    fn catch_up(&mut self) {
        let overdue = self.pacer.overdue_ticks(self.now).saturating_sub(self.pacer.useful_ticks());
        for _ in 0..overdue.min(MAX_OFF) {
            self.tick = self.tick.next();
            self.pacer.advance(self.tick);
        }
        let newest = self.timeline.newest();
        let off = self.tick.0.abs_diff(newest.0);
        if self.tick < newest || off > MAX_OFF + self.pacer.lead_ticks() {
            self.launch(newest);
        }
    }

    /// Starts own ticks as far ahead of the host's as needed.
    fn launch(&mut self, present: Tick) {
        self.tick = present + self.pacer.lead_ticks();
        self.pacer.launch(self.now, self.tick);
        self.prediction.forget();
        self.unsent.clear();
    }

    fn on_control(&mut self, message: ToView) {
        match message {
            ToView::Welcome(welcome) => {
                if self.claim.replace(welcome.claim).is_some_and(|claim| claim.run != welcome.claim.run) {
                    // Another room of the same name: its ticks start again.
                    self.begin_anew();
                }
                self.stage = Stage::In(welcome);
                self.pacer = Pacer::new(G::RATE, self.now, self.path);
                let age = (u64::from(welcome.age_us) / G::RATE.tick_micros()).min(1) as u32;
                self.launch(welcome.tick + age);
            }
            ToView::Refused { bad_token: true, why } if self.token.is_some() => {
                // That player cannot be resumed: the view joins as a new one.
                (self.token, self.claim, self.bad_token) = (None, None, Some(why));
                self.ask();
            }
            ToView::Refused { why, .. } => self.stage = Stage::Refused(why),
            ToView::Token(token) => self.token = Some(token),
            ToView::Characters(characters) => self.characters = characters,
            ToView::Saved(tick) => self.saved = Some(tick),
            ToView::Pace(percent) => self.pace_percent = percent,
            ToView::Roster { seated } => self.roster = seated,
            ToView::Came(seated) => {
                self.roster.retain(|other| other.seat != seated.seat);
                self.roster.push(seated);
                self.roster.sort_by_key(|seated| seated.seat);
            }
            ToView::View(view) => {
                if let Stage::In(welcome) = &mut self.stage {
                    welcome.view = view;
                }
            }
            ToView::Went(seat) => self.roster.retain(|seated| seated.seat != seat),
            ToView::Event { tick, bytes } => self.on_event(tick, &bytes),
        }
    }

    fn begin_anew(&mut self) {
        self.timeline = Timeline::new(G::RATE, G::DELAY_MS);
        self.tracks = Tracks::new(&self.layout, G::RATE, G::UPDATES);
        self.events.clear();
        self.newest.clear();
        (self.saved, self.pace_percent) = (None, 100);
    }

    /// Ignores events that cannot be decoded: this build could not show them.
    fn on_event(&mut self, tick: Tick, bytes: &[u8]) {
        let Ok(event) = from_canonical(bytes) else { return };
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
        }
        let at = self.events.partition_point(|(other, _)| *other <= tick);
        self.events.insert(at, (tick, event));
    }

    fn on_update(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        // It was sent before the welcome.
        let Stage::In(welcome) = &self.stage else { return Ok(()) };
        let near = self.timeline.newest().max(welcome.tick);
        let update = read_update(bytes, near)?;
        let head = update.head;
        let understood = self.received.take(&head, update.delta)?;
        if understood {
            self.stats.update_bytes = bytes.len();
            self.stats.bytes += bytes.len() as u64;
            self.stats.updates += 1;
            self.timeline.on_update(self.now, head.tick);
            self.take_in(&head);
            let mut events = Vec::new();
            read_events(update.events, |ago, event| events.push((ago, event.to_vec())))?;
            for (ago, event) in events {
                self.on_event(Tick(head.tick.0.saturating_sub(ago.into())), &event);
            }
        }
        if let Some(pace) = update.pace {
            self.stats.omissions = pace.omissions;
            let least_slack_us = pace.slack.map(slack_us);
            self.pacer.on_report(&Arrived { tick: head.tick, least_slack_us, omissions: pace.omissions });
        }
        self.report();
        Ok(())
    }

    /// Applies a new update to what is shown and predicted.
    fn take_in(&mut self, head: &Head) {
        let Some(snapshot) = self.received.newest() else { return };
        self.stats.entities = snapshot.len();
        self.tracks.on_update(snapshot, head.partial);
        self.newest.clear();
        for (kind, known) in snapshot.tables.iter().enumerate().take(G::KINDS.len()) {
            let table = self.newest.table_mut(kind);
            for (index, mark) in known.marks().iter().enumerate() {
                let row = Row { id: mark.id, owner: None, place: None };
                table.push(row).copy_from_slice(known.slots(index));
            }
        }
        if let Some(own) = self.newest_own() {
            self.prediction.correct(self.now, head.tick, &own, &self.newest);
        }
    }

    fn report(&mut self) {
        let report = Report {
            newest: self.received.newest().map(|newest| newest.tick.0 as u16),
            mask: self.received.mask(),
            clock_us: self.now.as_micros() as u32,
            tick: self.tick,
            ago_us: u16::try_from(self.now.micros_since(self.acted_at)).unwrap_or(u16::MAX),
            rtt: u16::try_from(self.path.rtt_us / RTT_UNIT_US).unwrap_or(u16::MAX),
        };
        self.outbox.push(Output::Send(Channel::State), |out| report.put(out));
    }

    fn act(&mut self, input: G::Input) {
        if !core::mem::take(&mut self.wants_input) {
            return;
        }
        self.tick = self.tick.next();
        self.acted_at = self.now;
        self.pacer.advance(self.tick);
        self.want_path |= self.tick.0.is_multiple_of(PACE_EVERY);
        self.unsent.push(Opaque::of(&input));
        if self.unsent.len() >= (self.pacer.batch().min(MAX_BATCH)) as usize {
            let first = self.tick - (self.unsent.len() as u32 - 1);
            let unsent = &self.unsent;
            self.outbox.push(Output::Send(Channel::Input), |out| put_inputs(out, first, unsent.iter()));
            self.unsent.clear();
        }
        self.prediction.act(self.now, self.tick, input, &self.newest);
    }
}
