//! Who comes, and what outlives a room: what is asked of the database before somebody is let in, and what is written to it.
//!
//! Whoever comes is looked up first. What was kept of them, of their character and of the room comes into the game as a logged
//! input. A token that was used is followed by another: the old one is good until its player has had the new one for a moment.

use std::collections::VecDeque;

use sametick_room::host::{Input, Keepable, KnownPlayer, NOT_RESUMED};
use sametick_room::message::{Characters, Join, ToHost, ToView};
use sametick_sim::replica::put_part;
use sametick_sim::{Seat, Tick, Time, Whose, to_canonical};
use sametick_store::players::{
    CheckpointRow, Found, Kept, MAX_KEPT, PlaceId, PlaceRow, PlayerId, Question, Token, TokenHash,
    TokenState, Write,
};
use sametick_transport::clock::random;
use sametick_wire::{Channel, Member, control};

use super::beginning::{Beginning, join_of};
use super::{Output, RoomId, Rooms, Turned};

/// An old token is good for so long after its player was given the next.
pub const GRACE_US: u64 = 10_000_000;

/// What is brought of a place at once: less than a log takes.
const MAX_CHUNK: usize = 2_000;

/// What somebody is told whose token is no good, by what has become of it.
const TOKEN_EXPIRED: &str = "this token has expired";
const TOKEN_RETIRED: &str = "this token was used before, and another was given for it";
const TOKEN_UNKNOWN: &str = "nobody was given this token";

/// What somebody is told who has none where one is needed.
const SIGN_IN: &str = "sign in first: only those with a token play here";

/// What somebody is told while the database cannot be read.
const NO_LOOKING_UP: &str = "who you are cannot be looked up just now; try again in a moment";

/// How players are kept.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    /// What the wall clock says at time zero.
    pub epoch_unix_ms: u64,
    /// For how long a token is good.
    pub token_s: u64,
    /// Whether nobody plays without a token.
    pub is_strict: bool,
    /// For how long a seat waits for whoever was cut off.
    pub hold_us: u64,
}

/// Something that is worth knowing once it is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// What is kept of a room, as it was after a tick.
    Room(RoomId, Tick),
    /// The token of somebody.
    Token(Member, Token),
    /// The choice of a character.
    Characters(Member),
}

/// Somebody who is known.
pub(super) struct Player {
    pub id: PlayerId,
    pub characters: Characters,
    /// Their character has done something since they were told of it.
    has_lived: bool,
    /// The token they came with.
    old: Option<TokenHash>,
}

/// Tokens that will be taken back.
pub(super) type Retirements = VecDeque<(Time, Member, TokenHash)>;

impl Rooms {
    fn unix_ms(&self, keeping: &Keeping) -> u64 {
        keeping.epoch_unix_ms + self.now.as_micros() / 1_000
    }

    /// Asks who somebody is before they are let in.
    pub(super) fn ask(&mut self, member: Member, channel: Channel, bytes: &[u8]) -> Result<(), Turned> {
        let join = join_of(channel, bytes)?;
        let Some(keeping) = self.keeping else { return Err(Turned::Out) };
        self.inquire(&keeping, member, join);
        Ok(())
    }

    pub(super) fn inquire(&mut self, keeping: &Keeping, member: Member, join: Join) {
        if self.look_for(member, &join) {
            return;
        }
        let now_unix_s = self.unix_ms(keeping) / 1_000;
        // Who was cut off before a token came is known by the claim.
        let claim = join.resume.filter(|_| join.token.is_none());
        let room = self.doors.get(&member).and_then(|door| self.find(&door.key));
        let room = room.and_then(|id| self.rooms.get(&id));
        let claimed = room.zip(claim).and_then(|(room, claim)| room.host.player_of(&claim));
        let Some(door) = self.doors.get_mut(&member) else { return };
        door.claimed = claimed;
        let is_open = self.names.contains_key(&door.key);
        let question = Question {
            token: join.token.map(|token| token.hash()),
            player: claimed,
            game: join.game.clone(),
            code: door.key.name.clone(),
            with_place: !is_open,
            now_unix_s,
        };
        // Whoever asks twice is answered once.
        if let Some((asking, _)) = &mut door.asking {
            *asking = join;
            return;
        }
        door.asking = Some((join, question.with_place));
        if question.token.is_none() && claimed.is_none() && is_open {
            // There is nothing to be found about a guest, and the room is there.
            self.found(self.now, member, Some(Found::default()));
        } else {
            self.outbox.push_bare(Output::Ask(member, question));
        }
    }

    /// What the database knows of somebody who has asked to take part.
    pub fn found(&mut self, now: Time, member: Member, found: Option<Found>) {
        self.now = self.now.max(now);
        let Some(door) = self.doors.get_mut(&member) else { return };
        let Some((join, with_place)) = door.asking.take() else { return };
        let is_open = self.names.contains_key(&door.key);
        if let Some(keeping) = self.keeping.filter(|_| !is_open && !with_place) {
            // The room has ended in the meantime, and begins from what was kept of it.
            return self.inquire(&keeping, member, join);
        }
        let let_in = match found {
            Some(found) => self.let_in(member, join, found),
            None => Err(Turned::Away(NO_LOOKING_UP)),
        };
        if let Err(turned) = let_in {
            self.turn_away(member, &turned);
        }
    }

    fn let_in(&mut self, member: Member, join: Join, found: Found) -> Result<(), Turned> {
        let Some(keeping) = self.keeping else { return Ok(()) };
        let claimed = self.doors.get(&member).and_then(|door| door.claimed);
        let id = match (found.token, &found.player, claimed) {
            (TokenState::Good, Some(known), _) => known.id,
            (TokenState::None, _, Some(claimed)) => claimed,
            (TokenState::None, ..) if keeping.is_strict => return Err(Turned::BadToken(SIGN_IN)),
            (TokenState::None, ..) => PlayerId::from_bytes(random()),
            (TokenState::Expired, ..) => return Err(Turned::BadToken(TOKEN_EXPIRED)),
            (TokenState::Retired, ..) => return Err(Turned::BadToken(TOKEN_RETIRED)),
            (TokenState::Unknown | TokenState::Good, ..) => return Err(Turned::BadToken(TOKEN_UNKNOWN)),
        };
        let key = self.doors.get(&member).map(|door| door.key.clone()).ok_or(Turned::Out)?;
        let room = match self.find(&key) {
            Some(room) => room,
            None => self.begin_kept(&join, &key.name, member, found.place)?,
        };
        let names = self.characters_of(&join.game);
        let characters = cast(names, found.active.as_deref(), &found.profiles);
        let (name, game, plays) = (join.name.clone(), join.game.clone(), !join.watch);
        if let Some(door) = self.doors.get_mut(&member) {
            door.room = Some(room);
            let old = join.token.map(|token| token.hash());
            let player = Player { id, characters: characters.clone(), has_lived: false, old };
            door.player = plays.then_some(player);
        }
        if plays {
            self.introduce(room, member, id, &characters, found.checkpoint.as_ref());
        }
        self.tell(room, Input::Message(member, Channel::Control, &control::to_bytes(&ToHost::Join(join))));
        if !plays || !self.takes_part(room, member) {
            return Ok(());
        }
        let subject = found.player.and_then(|known| known.subject);
        self.issue(&keeping, member, id, name, subject);
        if !names.is_empty() {
            self.save(Write::Active { player: id, game, character: characters.active.clone() });
            self.say(member, &ToView::Characters(characters));
        }
        Ok(())
    }

    /// Begins a room as it was, or as somebody asks for if it never was.
    fn begin_kept(
        &mut self,
        join: &Join,
        code: &str,
        member: Member,
        place: Option<PlaceRow>,
    ) -> Result<RoomId, Turned> {
        let Some(keeping) = self.keeping else { return Err(Turned::Out) };
        if let Some(id) = self.reopen(member, join)? {
            if let Some(place) = &place {
                self.recall_place(id, &keeping, place);
            }
            return Ok(id);
        }
        if join.must_resume && place.is_none() {
            return Err(Turned::Away(NOT_RESUMED));
        }
        let own = Beginning { setup: &join.setup, seed: join.seed, seats: join.seats, listed: join.listed };
        let kept = place.as_ref().map(|place| Beginning {
            setup: &place.setup,
            seed: place.seed,
            seats: place.seats,
            listed: place.listed,
        });
        let (id, is_new) = match kept.map(|kept| self.begin(member, join, &kept)) {
            // What an earlier build began cannot always be begun by this one.
            Some(Err(Turned::Away(_))) | None => (self.begin(member, join, &own)?, true),
            Some(begun) => (begun?, false),
        };
        if let Some(place) = place {
            self.bring_place(id, &keeping, &place);
        }
        if is_new && let Some(room) = self.rooms.get(&id) {
            let facts = &room.facts;
            let write = Write::Place {
                place: PlaceId::of(&facts.game, code),
                game: facts.game.clone(),
                code: code.into(),
                setup: facts.setup.clone(),
                seats: facts.seats,
                seed: facts.seed,
                listed: facts.listed,
                unix_ms: self.unix_ms(&keeping),
            };
            self.save(write);
        }
        Ok(id)
    }

    /// Brings what stood in a place into its room, and has seats wait for those who were there a moment ago.
    fn bring_place(&mut self, id: RoomId, keeping: &Keeping, place: &PlaceRow) {
        for_each_chunk(place, |chunk| self.tell(id, Input::Bring(Whose::Place, chunk)));
        self.hold_seats(id, keeping, place);
    }

    /// The same for a room that goes on: what stood there stands there.
    fn recall_place(&mut self, id: RoomId, keeping: &Keeping, place: &PlaceRow) {
        for_each_chunk(place, |chunk| self.tell(id, Input::Remembered(chunk)));
        self.hold_seats(id, keeping, place);
    }

    fn hold_seats(&mut self, id: RoomId, keeping: &Keeping, place: &PlaceRow) {
        let now_ms = self.unix_ms(keeping);
        for (player, seat, unix_ms) in &place.checkpoints {
            let gone_us = now_ms.saturating_sub(*unix_ms).saturating_mul(1_000);
            if let Some(left_us) = keeping.hold_us.checked_sub(gone_us) {
                self.tell(id, Input::Hold(Seat(*seat), *player, left_us));
            }
        }
    }

    /// Tells a room who is about to join.
    fn introduce(
        &mut self,
        room: RoomId,
        member: Member,
        player: PlayerId,
        characters: &Characters,
        checkpoint: Option<&CheckpointRow>,
    ) {
        let character = gift_of(characters);
        let known = KnownPlayer {
            player,
            seat: checkpoint.map(|row| Seat(row.seat)),
            is_firm: false,
            kept: checkpoint.map_or(&[], |row| row.kept.as_bytes()),
            character: &character,
        };
        if let Some(room) = self.rooms.get_mut(&room) {
            room.cast.insert(player, characters.active.clone());
        }
        self.tell(room, Input::KnownPlayer(member, known));
    }

    /// Gives somebody a token; they are told once it is on disk.
    fn issue(
        &mut self,
        keeping: &Keeping,
        member: Member,
        player: PlayerId,
        name: String,
        subject: Option<String>,
    ) {
        let token = Token::from_bytes(random());
        let unix_ms = self.unix_ms(keeping);
        let expires_unix_s = unix_ms / 1_000 + keeping.token_s;
        self.save(Write::Player { player, name, subject, unix_ms });
        self.save(Write::Token { hash: token.hash(), player, expires_unix_s });
        self.outbox.push_bare(Output::Flush(Mark::Token(member, token)));
    }

    /// Something is on disk.
    pub fn saved(&mut self, now: Time, mark: Mark) {
        self.now = self.now.max(now);
        match mark {
            Mark::Room(id, tick) => {
                let Some(room) = self.rooms.get(&id) else { return };
                let there: Vec<Member> = room.participants().map(|who| who.member).collect();
                for member in there {
                    self.say(member, &ToView::Saved(tick));
                    let player = self.doors.get_mut(&member).and_then(|door| door.player.as_mut());
                    if player.is_some_and(|player| std::mem::take(&mut player.has_lived)) {
                        self.say_characters(member);
                    }
                }
            }
            Mark::Token(member, token) => {
                let old = self.doors.get_mut(&member).and_then(|door| door.player.as_mut()?.old.take());
                if let Some(old) = old {
                    self.retirements.push_back((self.now.plus_micros(GRACE_US), member, old));
                }
                self.say(member, &ToView::Token(token));
            }
            Mark::Characters(member) => self.say_characters(member),
        }
    }

    fn say_characters(&mut self, member: Member) {
        let player = self.doors.get(&member).and_then(|door| door.player.as_ref());
        if let Some(characters) = player.map(|player| player.characters.clone()) {
            self.say(member, &ToView::Characters(characters));
        }
    }

    /// Takes back old tokens whose players have had the new ones for a moment. Whoever was cut off before may not have got it: then
    /// both are good.
    pub(super) fn retire(&mut self) -> Option<Time> {
        while let Some((_, member, hash)) = self.retirements.pop_front_if(|(at, ..)| *at <= self.due) {
            if self.doors.contains_key(&member) {
                self.save(Write::Retire { hash });
            }
        }
        self.retirements.front().map(|(at, ..)| *at)
    }

    /// Somebody wants to go on as another of their characters.
    pub(super) fn recast(&mut self, member: Member, name: String) {
        let Some(door) = self.doors.get(&member) else { return };
        let (Some(id), Some(player)) = (door.room, &door.player) else { return };
        let (player_id, seat) = (player.id, self.seat_of(id, member));
        let game = self.rooms.get(&id).map(|room| room.facts.game.clone()).unwrap_or_default();
        let is_known = self.characters_of(&game).contains(&&*name);
        let (Some(seat), true) = (seat, is_known && player.characters.active != name) else { return };
        // What the last one has done is kept under its own name.
        if let Some(room) = self.rooms.get_mut(&id) {
            room.recasts.push_back((player_id, name.clone()));
        }
        self.tell(id, Input::Keep(member));
        let Some(player) = self.doors.get_mut(&member).and_then(|door| door.player.as_mut()) else { return };
        player.characters.active.clone_from(&name);
        let gift = gift_of(&player.characters);
        self.tell(id, Input::Bring(Whose::Character(seat), &gift));
        self.save(Write::Active { player: player_id, game, character: name });
        self.outbox.push_bare(Output::Flush(Mark::Characters(member)));
    }

    fn seat_of(&self, id: RoomId, member: Member) -> Option<Seat> {
        self.rooms.get(&id)?.participants().find(|who| who.member == member)?.seat
    }

    /// What a room wants kept.
    pub(super) fn keep(&mut self, id: RoomId, what: Keepable, bytes: &[u8]) {
        let (Some(keeping), Some(room)) = (self.keeping, self.rooms.get(&id)) else { return };
        let Ok(kept) = Kept::new(bytes) else { return };
        let (unix_ms, place) = (self.unix_ms(&keeping), room.place);
        let write = match what {
            Keepable::Player { player, seat, tick } => {
                Write::Checkpoint { place, player, seat: seat.0, tick: tick.0, kept, unix_ms }
            }
            Keepable::Part(key) => Write::Part { place, key, kept: Some(kept) },
            Keepable::Gone(key) => Write::Part { place, key, kept: None },
            Keepable::Character { player } => {
                let Some(character) = room.cast.get(&player).filter(|name| !name.is_empty()).cloned() else {
                    return;
                };
                let game = room.facts.game.clone();
                self.note_life(player, &character, bytes);
                Write::Profile { player, game, character, kept, unix_ms }
            }
        };
        self.save(write);
    }

    /// What a character has done since its player came.
    fn note_life(&mut self, player: PlayerId, character: &str, bytes: &[u8]) {
        let players = self.doors.values_mut().filter_map(|door| door.player.as_mut());
        for player in players.filter(|known| known.id == player) {
            let life = player.characters.all.iter_mut().find(|(name, _)| name == character);
            life.into_iter().for_each(|(_, kept)| *kept = bytes.to_vec());
            player.has_lived = true;
        }
    }

    /// All that is to be kept of a room was said.
    pub(super) fn kept(&mut self, id: RoomId, tick: Tick) {
        if self.keeping.is_none() {
            return;
        }
        if let Some(room) = self.rooms.get_mut(&id) {
            room.cast.extend(room.recasts.drain(..));
        }
        self.outbox.push_bare(Output::Flush(Mark::Room(id, tick)));
    }

    /// Whoever was thrown out cannot come back by what they were given.
    pub(super) fn disown(&mut self, member: Member) {
        let player = self.doors.get(&member).and_then(|door| door.player.as_ref());
        if let Some(player) = player.map(|player| player.id) {
            self.save(Write::RetireAll { player });
        }
    }

    fn save(&mut self, write: Write) {
        self.outbox.push_bare(Output::Save(write));
    }

    fn characters_of(&self, game: &str) -> &'static [&'static str] {
        let game = self.games.iter().find(|known| known.name() == game);
        game.and_then(|game| game.room()).map_or(&[], |room| room.characters())
    }
}

/// What was kept of a place, as much at once as a log takes.
fn for_each_chunk(place: &PlaceRow, mut each: impl FnMut(&[u8])) {
    let mut chunk = Vec::new();
    for (number, part) in &place.parts {
        put_part(&mut chunk, *number, part.as_bytes());
        if chunk.len() > MAX_CHUNK - MAX_KEPT {
            each(&chunk);
            chunk.clear();
        }
    }
    if !chunk.is_empty() {
        each(&chunk);
    }
}

/// What comes into a game of the character who plays.
fn gift_of(characters: &Characters) -> Vec<u8> {
    let life = characters.all.iter().find(|(name, _)| *name == characters.active);
    life.map_or_else(Vec::new, |life| to_canonical(life).expect("bytes can be written"))
}

/// All characters that a game knows, with what was kept of those that have played.
fn cast(names: &[&str], active: Option<&str>, profiles: &[(String, Kept)]) -> Characters {
    let life = |name: &str| {
        let kept = profiles.iter().find(|(known, _)| known == name);
        kept.map_or_else(Vec::new, |(_, kept)| kept.as_bytes().to_vec())
    };
    let active = active.filter(|active| names.contains(active)).or(names.first().copied());
    Characters {
        active: active.unwrap_or_default().into(),
        all: names.iter().map(|name| ((*name).into(), life(name))).collect(),
    }
}
