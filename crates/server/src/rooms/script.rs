//! A script as a player: translates between [envelopes](super::envelope) and a view of its own.
//!
//! The view joins the room as any client's does, without a network in between: a script sees exactly what a player on
//! its seat may see. After each [`AnyScript::handle`], the caller calls [`AnyScript::poll_output`] until it returns
//! [`Output::WakeAt`] or [`Output::Wait`].

use std::collections::{BTreeMap, VecDeque};

use sametick_room::host::{NOT_RESUMED, ROOM_IS_FULL};
use sametick_room::view::{self, JoinAs, Status, View};
use sametick_sim::replica::{Entity, Hosted};
use sametick_sim::{Seat, Tick, Time};
use sametick_wire::Channel;
use sametick_wire::claims::Claim;
use sametick_wire::hex::to_hex;
use sametick_wire::identity::Token;
use sametick_wire::pacer::Path;
use sametick_wire::rate_limit::{RateLimit, TokenBucket};

use super::command::command_of;
use super::envelope::{Code, Command, Encoding, Fault, Incoming, Outgoing, encode, parse};
use super::outgoing::{Ack, Cast, Happened, Known, Pace, Player, Pong, Rates, Saved, Snapshot, Welcome};
use super::showing::{Fields, Showing, Sight};

/// Rate limit of messages per second.
pub const MESSAGES_PER_SECOND: u32 = 120;
/// The burst after a pause: messages that a delay in the network holds back.
pub const MESSAGE_BURST: u32 = 60;

const MESSAGES: RateLimit = RateLimit::per_second(MESSAGES_PER_SECOND, MESSAGE_BURST);

/// The most queued inputs: two of arena's longest batches.
pub const MAX_QUEUED: usize = 120;

/// With more inputs queued than this, the end of a command and the beginning of the next share a tick: a script that
/// sends a short command in every tick would fall ever further behind.
const MAX_BEHIND: usize = 6;

/// The greatest age of a command for the order of commands, whatever the script's clock says.
const MAX_AGE_MS: f64 = 250.0;

/// The network path from the view to its host: there is none.
const PATH: Path = Path { rtt_us: 0, jitter_us: 0, sent: 0, lost: 0, expected: 0, received: 0 };

/// An input of a script.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// The script has sent a message.
    Said(Encoding, &'a [u8]),
    /// The script violated a rule of the connection, which ends.
    Broke(Code, &'a str),
    /// A message from the room.
    Message(Channel, &'a [u8]),
    /// The room or the server has closed the member.
    Closed(&'a str),
    /// The time of `WakeAt` is reached.
    Timeout,
}

/// An output of a script. Its bytes are in the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send these bytes to the room.
    Send(Channel),
    /// Send these bytes to the script.
    Say(Encoding),
    /// End the connection after the messages so far.
    HangUp,
    /// No more output before this time.
    WakeAt(Time),
    /// No more output until the next input.
    Wait,
}

/// A script in a room of any game.
pub trait AnyScript {
    /// Handles an input.
    fn handle(&mut self, now: Time, input: Input<'_>);

    /// The next output.
    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output;
}

/// A command that waits for the next tick.
struct Waiting<C> {
    /// The estimated time it was made, by the server's clock in milliseconds.
    made_ms: f64,
    seq: u64,
    command: C,
}

/// An input that waits for its tick.
struct Queued<I> {
    /// `None` for a command without inputs, which only waits for its turn.
    input: Option<I>,
    seq: u64,
    is_first: bool,
    is_last: bool,
}

/// A script in a room.
pub struct Script<G: Hosted> {
    now: Time,
    room: String,
    name: String,
    view: View<G>,
    encoding: Encoding,
    is_welcome: bool,
    is_over: bool,
    /// The number of updates that the script was told.
    updates: u64,
    showing: Showing,
    waiting: Vec<Waiting<G::Command>>,
    queue: VecDeque<Queued<G::Input>>,
    /// The seat's last input.
    held: G::Input,
    /// Commands whose last inputs were submitted, and their ticks.
    handed_in: VecDeque<(Tick, u64)>,
    ack_seq: Option<u64>,
    /// The least difference between the server's clock and the script's, in milliseconds.
    least_ms: Option<f64>,
    messages: TokenBucket,
    said: VecDeque<(Encoding, Vec<u8>)>,
    inputs: Vec<G::Input>,
    /// The token that the script has.
    token: Option<Token>,
    character: String,
    saved: Option<Tick>,
    pace_percent: u8,
}

impl<G: Hosted> Script<G>
where
    G::Input: Default,
{
    /// A script that joins a room; with a claim it resumes its seat.
    pub fn new(
        now: Time,
        room: String,
        join: &JoinAs<G>,
        resume: Option<Claim>,
        token: Option<Token>,
    ) -> Script<G> {
        let mut view = View::new(now, join, PATH);
        if let Some(claim) = resume {
            view.require_resume();
            view.resume(now, PATH, claim);
        }
        if let Some(token) = token {
            view.come_as(token);
        }
        Script {
            now,
            room,
            name: join.name.clone(),
            view,
            encoding: Encoding::Json,
            is_welcome: false,
            is_over: false,
            updates: 0,
            showing: Showing::default(),
            waiting: Vec::new(),
            queue: VecDeque::new(),
            held: G::Input::default(),
            handed_in: VecDeque::new(),
            ack_seq: None,
            least_ms: None,
            messages: TokenBucket::default(),
            said: VecDeque::new(),
            inputs: Vec::new(),
            token,
            character: String::new(),
            saved: None,
            pace_percent: 100,
        }
    }

    fn say<M: Outgoing>(&mut self, message: &M) {
        let mut bytes = Vec::new();
        encode(self.encoding, message, &mut bytes);
        self.said.push_back((self.encoding, bytes));
    }

    /// Sends a fault and ends the connection.
    fn end(&mut self, code: Code, why: &str) {
        if !self.is_over {
            self.say(&Fault::new(code, why));
            self.is_over = true;
        }
    }

    /// Whether there is nothing to send now.
    fn is_quiet(&self) -> bool {
        self.said.is_empty() || !self.is_welcome && !self.is_over
    }

    fn now_ms(&self) -> f64 {
        self.now.as_micros() as f64 / 1_000.0
    }

    fn hear(&mut self, encoding: Encoding, bytes: &[u8]) {
        self.encoding = encoding;
        if !self.messages.try_take(self.now, MESSAGES) {
            let why = format!("at most {MESSAGES_PER_SECOND} messages a second are taken");
            return self.end(Code::TooManyMessages, &why);
        }
        let heard = parse(encoding, bytes).and_then(|incoming| self.take(incoming));
        if let Err(fault) = heard {
            self.say(&fault);
        }
    }

    fn take(&mut self, incoming: Incoming) -> Result<(), Fault> {
        match incoming {
            Incoming::Command(command) => self.wish(command)?,
            Incoming::Ping { seq, client_time } => {
                self.say(&Pong { seq, client_time, server_time: self.now_ms() });
            }
            Incoming::Character(name) => {
                let known = self.view.characters().all.iter().any(|(known, _)| *known == name);
                if !known {
                    return Err(Fault::new(Code::BadPayload, format!("there is no character {name:?} here")));
                }
                self.view.choose_character(&name);
            }
            Incoming::Resync => {
                self.showing.forget();
                if self.updates > 0 {
                    self.tell();
                }
            }
        }
        Ok(())
    }

    fn wish(&mut self, wanted: Command) -> Result<(), Fault> {
        let (seq, client_time) = (wanted.seq, wanted.client_time);
        if self.is_welcome && self.view.seat().is_none() {
            return Err(Fault::new(Code::NotAllowed, "a spectator cannot send commands").of(seq));
        }
        let command = command_of(wanted)?;
        let made_ms = self.made_ms(client_time);
        self.waiting.push(Waiting { made_ms, seq, command });
        Ok(())
    }

    /// The time a command was made, by the server's clock; never in the future, nor long ago.
    fn made_ms(&mut self, client_ms: Option<f64>) -> f64 {
        let now_ms = self.now_ms();
        let Some(client_ms) = client_ms.filter(|time| time.is_finite()) else { return now_ms };
        let least_ms = self.least_ms.map_or(now_ms - client_ms, |least| least.min(now_ms - client_ms));
        self.least_ms = Some(least_ms);
        (client_ms + least_ms).clamp(now_ms - MAX_AGE_MS, now_ms)
    }

    /// Converts the commands that wait for this tick to inputs, in the order in which they were made (B10).
    fn line_up(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_by(|a, b| a.made_ms.total_cmp(&b.made_ms).then(a.seq.cmp(&b.seq)));
        for Waiting { seq, command, .. } in waiting.drain(..) {
            if self.queue.len() >= MAX_QUEUED {
                let why =
                    format!("{MAX_QUEUED} inputs wait for their ticks already; this command was dropped");
                self.say(&Fault::new(Code::TooManyInputs, why).of(seq));
                continue;
            }
            let mut inputs = std::mem::take(&mut self.inputs);
            let last = self.queue.iter().rev().find_map(|queued| queued.input.as_ref());
            G::command(last.unwrap_or(&self.held), command, &mut inputs);
            let count = inputs.len().max(1);
            let mut inputs_of = inputs.drain(..);
            self.queue.extend((1..=count).map(|place| Queued {
                input: inputs_of.next(),
                seq,
                is_first: place == 1,
                is_last: place == count,
            }));
            drop(inputs_of);
            self.inputs = inputs;
        }
        self.waiting = waiting;
    }

    /// The seat's input for a tick.
    fn next_input(&mut self, tick: Tick) -> G::Input {
        self.line_up();
        let mut input: Option<G::Input> = None;
        while let Some(next) = self.queue.pop_front() {
            let Queued { input: later, seq, is_first, is_last } = next;
            if is_first {
                self.say(&Ack { seq, tick: tick.0 });
            }
            if is_last {
                self.handed_in.push_back((tick, seq));
            }
            let Some(later) = later else { continue };
            input = Some(match input {
                Some(earlier) => G::merge(&earlier, &later),
                None => later,
            });
            if !is_last || self.queue.len() <= MAX_BEHIND {
                break;
            }
        }
        self.held = input.unwrap_or_else(|| G::guess(&self.held));
        self.held.clone()
    }

    /// Handles a message from the room.
    fn on_message(&mut self, channel: Channel, bytes: &[u8]) {
        if self.view.handle(self.now, view::Input::Message(channel, bytes)).is_err() {
            return self.end(Code::Closed, "the room cannot be understood");
        }
        // A script decides itself whether it joins as a new player.
        if let Some(why) = self.view.bad_token().map(ToOwned::to_owned) {
            return self.end(Code::BadToken, &why);
        }
        match self.view.status() {
            Status::Joining => {}
            Status::Refused(why) => {
                let (code, why) = match &why[..] {
                    ROOM_IS_FULL => (Code::RoomFull, ROOM_IS_FULL),
                    NOT_RESUMED => (Code::BadResumeToken, BAD_RESUME_TOKEN),
                    other => (Code::NotAllowed, other),
                };
                self.end(code, why);
            }
            _ if !self.is_welcome => self.welcome(),
            _ => self.look(),
        }
        if self.is_welcome {
            self.tell_identity();
        }
    }

    /// Sends changes of token, character and stored state.
    fn tell_identity(&mut self) {
        if let Some(token) = self.view.token().filter(|token| self.token != Some(*token)) {
            self.token = Some(token);
            self.say(&Known { token: token.to_hex() });
        }
        if let Some(tick) = self.view.saved().filter(|tick| self.saved != Some(*tick)) {
            self.saved = Some(tick);
            self.say(&Saved { tick: tick.0 });
        }
        let percent = self.view.pace_percent();
        if std::mem::replace(&mut self.pace_percent, percent) != percent {
            self.say(&Pace { percent });
        }
        let characters = self.view.characters();
        if characters.active != self.character {
            self.character.clone_from(&characters.active);
            let all = characters.all.iter().map(|(name, _)| name.clone()).collect();
            self.say(&Cast { active: self.character.clone(), all });
        }
    }

    /// Sends the welcome, which is the first message.
    fn welcome(&mut self) {
        self.is_welcome = true;
        let answers = std::mem::take(&mut self.said);
        let mut features = BTreeMap::<_, BTreeMap<_, _>>::new();
        for kind in G::KINDS {
            let fields = kind.fields.iter().map(|field| field.name).collect();
            features.entry(kind.feature).or_default().insert(kind.name, fields);
        }
        let seat = self.view.seat().map(|Seat(seat)| seat);
        self.say(&Welcome {
            room: self.room.clone(),
            game: G::NAME,
            player_id: seat.map(|seat| seat.to_string()),
            seat,
            name: self.name.clone(),
            rates: Rates { step: G::RATE.per_second(), update: G::UPDATES.per_second() },
            resume_token: self.view.claim().map(token_of).unwrap_or_default(),
            tick: self.view.welcome().map_or(0, |welcome| welcome.tick.0),
            server_time: self.now_ms(),
            features,
        });
        self.said.extend(answers);
    }

    /// Sends an update and events, if there are new ones.
    fn look(&mut self) {
        let updates = self.view.stats().updates;
        if updates > self.updates {
            self.updates = updates;
            self.tell();
        }
        while let Some((tick, event)) = self.view.next_event() {
            self.say(&Happened { tick: tick.0, event });
        }
    }

    fn tell(&mut self) {
        let tick = self.view.newest_tick();
        while let Some((_, seq)) = self.handed_in.pop_front_if(|(handed_in, _)| *handed_in <= tick) {
            self.ack_seq = self.ack_seq.max(Some(seq));
        }
        let own = self.view.newest_own().map(|own| {
            let mut slots = vec![0; G::Own::KIND.width()];
            own.put(&mut slots);
            Fields::seen(&G::Own::KIND, 0, &slots)
        });
        let seated = self.view.roster().iter();
        let news = self.showing.tell(Sight {
            scene: self.view.newest(),
            zones: (0..G::KINDS.len()).map(|kind| self.view.newest_zones(kind).collect()).collect(),
            own,
            players: seated.map(|who| Player { seat: who.seat.0, name: who.name.clone() }).collect(),
        });
        self.say(&Snapshot {
            mode: news.mode,
            tick: tick.0,
            server_time: self.now_ms(),
            ack_seq: self.ack_seq,
            players: news.players,
            own: news.own,
            features: news.features,
        });
    }
}

const BAD_RESUME_TOKEN: &str = "this `resumeToken` brings nobody back: it was used before, is of another room, or the seat was \
     given away; come in without it as a new player";

impl<G: Hosted> AnyScript for Script<G>
where
    G::Input: Default,
{
    fn handle(&mut self, now: Time, input: Input<'_>) {
        self.now = self.now.max(now);
        if self.is_over {
            return;
        }
        match input {
            Input::Said(encoding, bytes) => self.hear(encoding, bytes),
            Input::Broke(code, why) => self.end(code, why),
            Input::Message(channel, bytes) => self.on_message(channel, bytes),
            Input::Closed(why) => self.end(Code::Closed, why),
            Input::Timeout => {
                // It cannot fail: there is no message.
                let _ = self.view.handle(self.now, view::Input::Timeout);
            }
        }
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output {
        loop {
            // Messages from before the join are answered after the welcome.
            if let Some((encoding, bytes)) = self.said.pop_front_if(|_| self.is_welcome || self.is_over) {
                *buf = bytes;
                return Output::Say(encoding);
            }
            if self.is_over {
                return Output::HangUp;
            }
            match self.view.poll_output(buf) {
                view::Output::Send(channel) => return Output::Send(channel),
                view::Output::WantInput(tick) => {
                    let input = self.next_input(tick);
                    let _ = self.view.handle(self.now, view::Input::Local(input));
                }
                view::Output::WantPath => {
                    let _ = self.view.handle(self.now, view::Input::Path(PATH));
                }
                view::Output::WakeAt(at) if self.is_quiet() => return Output::WakeAt(at),
                view::Output::Wait if self.is_quiet() => return Output::Wait,
                view::Output::WakeAt(_) | view::Output::Wait => {}
            }
        }
    }
}

/// A claim as text, for the welcome and for the URL to resume.
pub fn token_of(claim: Claim) -> String {
    let mut bytes = claim.run.to_be_bytes().to_vec();
    bytes.extend(claim.token);
    to_hex(&bytes)
}

/// Parses a claim from that text.
pub fn claim_of(token: &str) -> Option<Claim> {
    let bytes: [u8; 24] = sametick_wire::hex::from_hex(token)?;
    let (run, token) = bytes.split_first_chunk::<8>()?;
    Some(Claim { run: u64::from_be_bytes(*run), token: token.try_into().ok()? })
}
