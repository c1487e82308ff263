//! Test harness: rooms and their players in one place, in virtual time, without sockets or a clock.

use std::collections::BTreeMap;

use sametick::games::Games;
use sametick::rooms::{Input, Keeping, Mark, Output, RoomId, Rooms, ToLocal};
use sametick_lockstep::relay::SessionKey;
use sametick_room::view::{self, JoinAs, Status, View};
use sametick_sim::record::{Leaving, Record, TickInputs};
use sametick_sim::replica::{Hosted, Scene};
use sametick_sim::{StateHash, Tick, Time};
use sametick_store::players::{Sqlite, Storage, Token, Write};
use sametick_wire::pacer::Path;
use sametick_wire::{Channel, Member};

/// Chooses a player's input from its own state, the scene and the tick.
pub type Pilot<G> = fn(Option<&<G as Hosted>::Own>, &Scene, Tick) -> <G as sametick_sim::Game>::Input;

/// A player of a room.
pub struct Player<G: Hosted> {
    pub view: View<G>,
    pub closed: Option<&'static str>,
    wake_at: Option<Time>,
}

/// Rooms, and all their players.
pub struct Hall<G: Hosted> {
    pub now: Time,
    pub rooms: Rooms,
    pub players: BTreeMap<Member, Player<G>>,
    /// The records of each room's log, and the rooms that have ended.
    pub logs: BTreeMap<RoomId, Vec<Record>>,
    pub ended: Vec<RoomId>,
    /// Rooms whose game has panicked.
    pub crashed: Vec<RoomId>,
    pilot: Pilot<G>,
    rooms_at: Option<Time>,
    next: u64,
    /// The database of players, and the writes that are pending.
    pub players_kept: Option<Sqlite>,
    unwritten: Vec<Write>,
    /// While this is set nothing is written, as if the database did not work.
    pub is_stuck: bool,
    marks: Vec<Mark>,
}

impl<G: Hosted> Hall<G> {
    pub fn new(games: Games, pilot: Pilot<G>) -> Hall<G> {
        Hall {
            now: Time::from_micros(1),
            rooms: Rooms::new(games),
            players: BTreeMap::new(),
            logs: BTreeMap::new(),
            ended: Vec::new(),
            crashed: Vec::new(),
            pilot,
            rooms_at: None,
            next: 0,
            players_kept: None,
            unwritten: Vec::new(),
            is_stuck: false,
            marks: Vec::new(),
        }
    }

    /// The same with a database of players.
    pub fn keeping(games: Games, pilot: Pilot<G>, keeping: Keeping, players: Sqlite) -> Hall<G> {
        let mut hall = Hall::new(games.clone(), pilot);
        hall.rooms = Rooms::keeping(games, keeping);
        hall.players_kept = Some(players);
        hall
    }

    /// Opens a link of a player with a token, and joins.
    pub fn join_as(&mut self, code: &str, join: &JoinAs<G>, token: Token) -> Member {
        let member = self.open(code);
        let mut view = View::new(self.now, join, Path::default());
        view.come_as(token);
        self.seat(member, view)
    }

    /// A link is lost: no more packets arrive.
    pub fn lose(&mut self, member: Member) -> View<G> {
        let view = self.players.remove(&member).unwrap().view;
        self.rooms.handle(self.now, Input::Closed(member, Leaving::TimedOut));
        self.settle();
        view
    }

    fn write(&mut self) {
        let Some(storage) = self.players_kept.as_mut().filter(|_| !self.is_stuck) else { return };
        storage.write(&self.unwritten).unwrap();
        self.unwritten.clear();
        let now = self.now;
        std::mem::take(&mut self.marks).into_iter().for_each(|mark| self.rooms.saved(now, mark));
    }

    pub fn key(code: &str) -> SessionKey {
        SessionKey { build: G::BUILD, name: code.into() }
    }

    /// Opens a link and joins.
    pub fn join(&mut self, code: &str, join: &JoinAs<G>) -> Member {
        let member = self.open(code);
        self.seat(member, View::new(self.now, join, Path::default()))
    }

    /// Opens a link on which nothing was sent.
    pub fn open(&mut self, code: &str) -> Member {
        let member = Member(self.next);
        self.next += 1;
        self.rooms.enter(member, Self::key(code));
        member
    }

    /// Joins without a link.
    pub fn join_local(&mut self, code: &str, join: &JoinAs<G>) -> Member {
        let member = self.rooms.join_local(Self::key(code));
        self.seat(member, View::new(self.now, join, Path::default()))
    }

    pub fn seat(&mut self, member: Member, view: View<G>) -> Member {
        self.players.insert(member, Player { view, closed: None, wake_at: None });
        self.settle();
        member
    }

    /// A link breaks; the player keeps its view.
    pub fn cut(&mut self, member: Member) -> View<G> {
        let view = self.players.remove(&member).unwrap().view;
        self.rooms.handle(self.now, Input::Closed(member, Leaving::Left));
        self.settle();
        view
    }

    pub fn say(&mut self, member: Member, channel: Channel, bytes: &[u8]) {
        self.rooms.handle(self.now, Input::Message(member, channel, bytes));
        self.settle();
    }

    pub fn status(&self, member: Member) -> Status {
        self.players[&member].view.status()
    }

    pub fn run(&mut self, ms: u64) {
        let end = self.now.plus_micros(ms * 1_000);
        loop {
            let wakes = self.players.values().filter_map(|player| player.wake_at);
            match wakes.chain(self.rooms_at).min().filter(|at| *at <= end) {
                Some(at) => self.now = self.now.max(at),
                None => break,
            }
            self.rooms.handle(self.now, Input::Timeout);
            for player in self.players.values_mut().filter(|player| player.wake_at <= Some(self.now)) {
                player.view.handle(self.now, view::Input::Timeout).unwrap();
            }
            self.settle();
        }
        self.now = end;
        self.write();
        self.settle();
    }

    /// Exchanges messages until nothing is left to do.
    fn settle(&mut self) {
        while self.drain_rooms() | self.drain_views() {}
    }

    fn drain_rooms(&mut self) -> bool {
        let (mut buf, mut moved) = (Vec::new(), false);
        self.rooms_at = loop {
            match self.rooms.poll_output(&mut buf) {
                Output::Send(member, channel) => self.hear(member, channel, &buf),
                Output::Close(member, why) => self.close(member, why),
                Output::Begun(id) => {
                    self.logs.insert(id, Vec::new());
                }
                Output::Record(id, record) => self.logs.get_mut(&id).unwrap().push(record),
                Output::Stepped(id, tick) => {
                    let inputs: TickInputs = self.rooms.room(id).unwrap().inputs().clone();
                    assert_eq!(inputs.tick(), tick);
                    self.logs.get_mut(&id).unwrap().push(Record::Inputs(inputs));
                }
                Output::Ended(id) => self.ended.push(id),
                Output::Crashed(id) => self.crashed.push(id),
                Output::Outcome(..) => unreachable!("nobody has come on assignment"),
                Output::Find(_) | Output::Resumed(..) | Output::SaveRoom(_) => {
                    unreachable!("nobody looks for rooms here")
                }
                Output::Ask(member, question) => {
                    self.write();
                    let storage = self.players_kept.as_mut().unwrap();
                    self.rooms.found(self.now, member, storage.look_up(&question).ok());
                }
                Output::Save(write) => self.unwritten.push(write),
                Output::Flush(mark) => {
                    self.marks.push(mark);
                    self.write();
                }
                Output::WakeAt(at) => break Some(at),
                Output::Wait => break None,
            }
            moved = true;
        };
        while let Some(output) = self.rooms.poll_local(&mut buf) {
            match output {
                ToLocal::Message(member, channel) => self.hear(member, channel, &buf),
                ToLocal::Closed(member, why) => self.close(member, why),
            }
            moved = true;
        }
        moved
    }

    fn hear(&mut self, member: Member, channel: Channel, bytes: &[u8]) {
        if let Some(player) = self.players.get_mut(&member) {
            player.view.handle(self.now, view::Input::Message(channel, bytes)).unwrap();
        }
    }

    fn close(&mut self, member: Member, why: &'static str) {
        if let Some(player) = self.players.get_mut(&member) {
            (player.closed, player.wake_at) = (Some(why), None);
        }
        self.rooms.handle(self.now, Input::Closed(member, Leaving::Kicked));
    }

    fn drain_views(&mut self) -> bool {
        let (mut buf, mut moved) = (Vec::new(), false);
        for (member, player) in self.players.iter_mut().filter(|(_, player)| player.closed.is_none()) {
            player.wake_at = loop {
                match player.view.poll_output(&mut buf) {
                    view::Output::Send(channel) => {
                        self.rooms.handle(self.now, Input::Message(*member, channel, &buf));
                        moved = true;
                    }
                    view::Output::WantInput(tick) => {
                        let own = player.view.predicted().map(|(_, own)| own);
                        let input = (self.pilot)(own, player.view.newest(), tick);
                        player.view.handle(self.now, view::Input::Local(input)).unwrap();
                    }
                    view::Output::WantPath => {
                        player.view.handle(self.now, view::Input::Path(Path::default())).unwrap();
                    }
                    view::Output::WakeAt(at) => break Some(at),
                    view::Output::Wait => break None,
                }
            };
        }
        moved
    }

    /// Replays the log of a room and compares every check. Returns how many there were.
    pub fn replay(&self, id: RoomId, setup: &G::Setup) -> usize {
        let (mut state, mut inputs, mut tick, mut checks) =
            (G::new(setup), sametick_sim::Inputs::new(), Tick::ZERO, 0);
        for record in &self.logs[&id] {
            match record {
                Record::Inputs(rows) => {
                    tick = tick.next();
                    assert_eq!(rows.tick(), tick, "every tick is written down");
                    rows.decode(&mut inputs);
                    state.step(&inputs);
                }
                Record::Check { tick: of, hash } => {
                    assert_eq!((*of, *hash), (tick, StateHash::of(&state)));
                    checks += 1;
                }
                _ => {}
            }
        }
        checks
    }
}
