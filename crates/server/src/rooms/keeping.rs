//! Persistence of players and places: database lookups before a member joins, and writes.
//!
//! A member's player is looked up first. The stored state of player, character and room enters the game as a logged
//! input. A token that was used is replaced by a new one: the old one stays valid until its player has had the new one
//! for a moment.

use std::collections::VecDeque;

use sametick_room::host::{Input, Keepable, KnownPlayer, NOT_RESUMED};
use sametick_room::message::{Characters, Join, ToHost, ToView};
use sametick_sim::replica::put_part;
use sametick_sim::{Owner, Seat, Tick, Time, to_canonical};
use sametick_store::players::{
    CheckpointRow, Found, Kept, MAX_KEPT, PlaceId, PlaceRow, PlayerId, Question, Token, TokenHash,
    TokenState, Write,
};
use sametick_transport::clock::random;
use sametick_wire::{Channel, Member, control};

use super::beginning::{Beginning, join_of};
use super::{Output, RoomId, Rooms, Turned};

/// How long an old token stays valid after its player was given the next.
pub const GRACE_US: u64 = 10_000_000;

/// The most bytes of a place's stored state in one input: less than the log's limit.
const MAX_CHUNK: usize = 2_000;

/// The refusals for invalid tokens, by the state of the token.
const TOKEN_EXPIRED: &str = "this token has expired";
const TOKEN_RETIRED: &str = "this token was used before, and another was given for it";
const TOKEN_UNKNOWN: &str = "nobody was given this token";

/// The refusal without a token where one is required.
const SIGN_IN: &str = "sign in first: only those with a token play here";

/// The refusal while the database cannot be read.
const NO_LOOKING_UP: &str = "who you are cannot be looked up just now; try again in a moment";

/// The configuration of persistence.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    /// The Unix time at time zero.
    pub epoch_unix_ms: u64,
    /// How long a token is valid.
    pub token_s: u64,
    /// Whether players must have a token.
    pub is_strict: bool,
    /// How long a seat waits for a player that was cut off.
    pub hold_us: u64,
}

/// A write whose completion is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The stored state of a room after a tick.
    Room(RoomId, Tick),
    /// A member's token.
    Token(Member, Token),
    /// A member's choice of character.
    Characters(Member),
}

/// A player with an id.
pub(super) struct Player {
    pub id: PlayerId,
    pub characters: Characters,
    /// Whether the character's stored state has changed since the player was sent it.
    has_lived: bool,
    /// The hash of the token that the player joined with.
    old: Option<TokenHash>,
}

/// Old tokens to revoke, and when.
pub(super) type Retirements = VecDeque<(Time, Member, TokenHash)>;

impl Rooms {
    fn unix_ms(&self, keeping: &Keeping) -> u64 {
        keeping.epoch_unix_ms + self.now.as_micros() / 1_000
    }

    /// Starts the lookup for a member's first message.
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
        // A player that was cut off before it got a token is identified by its claim.
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
        // A second request replaces the first; one answer is sent.
        if let Some((asking, _)) = &mut door.asking {
            *asking = join;
            return;
        }
        door.asking = Some((join, question.with_place));
        if question.token.is_none() && claimed.is_none() && is_open {
            // The database has nothing on a guest, and the room is open.
            self.found(self.now, member, Some(Found::default()));
        } else {
            self.outbox.push_bare(Output::Ask(member, question));
        }
    }

    /// Handles the result of a lookup for a member.
    pub fn found(&mut self, now: Time, member: Member, found: Option<Found>) {
        self.now = self.now.max(now);
        let Some(door) = self.doors.get_mut(&member) else { return };
        let Some((join, with_place)) = door.asking.take() else { return };
        let is_open = self.names.contains_key(&door.key);
        if let Some(keeping) = self.keeping.filter(|_| !is_open && !with_place) {
            // The room has ended in the meantime; its stored state is looked up too.
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

    /// Resumes or restores a room, or begins one as the join says if nothing is stored.
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
            // A setup stored by an earlier build may be invalid for this one.
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

    /// Restores a place's stored state into a new room, and reserves seats for recent players.
    fn bring_place(&mut self, id: RoomId, keeping: &Keeping, place: &PlaceRow) {
        for_each_chunk(place, |chunk| self.tell(id, Input::Bring(Owner::Place, chunk)));
        self.hold_seats(id, keeping, place);
    }

    /// Reminds a resumed room of its place's stored state, which is in the room already, and reserves seats.
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

    /// Tells a room the player of a member that is about to join.
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

    /// Issues a token for a player; it is sent once it is on disk.
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

    /// Handles the completion of a write.
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

    /// Revokes old tokens whose players have had the new ones for a moment. A player that was cut off before may not
    /// have the new one: then both stay valid.
    pub(super) fn retire(&mut self) -> Option<Time> {
        while let Some((_, member, hash)) = self.retirements.pop_front_if(|(at, ..)| *at <= self.due) {
            if self.doors.contains_key(&member) {
                self.save(Write::Retire { hash });
            }
        }
        self.retirements.front().map(|(at, ..)| *at)
    }

    /// Changes the character of a member.
    pub(super) fn recast(&mut self, member: Member, name: String) {
        let Some(door) = self.doors.get(&member) else { return };
        let (Some(id), Some(player)) = (door.room, &door.player) else { return };
        let (player_id, seat) = (player.id, self.seat_of(id, member));
        let game = self.rooms.get(&id).map(|room| room.facts.game.clone()).unwrap_or_default();
        let is_known = self.characters_of(&game).contains(&&*name);
        let (Some(seat), true) = (seat, is_known && player.characters.active != name) else { return };
        // The state of the previous character is stored under its own name.
        if let Some(room) = self.rooms.get_mut(&id) {
            room.recasts.push_back((player_id, name.clone()));
        }
        self.tell(id, Input::Keep(member));
        let Some(player) = self.doors.get_mut(&member).and_then(|door| door.player.as_mut()) else { return };
        player.characters.active.clone_from(&name);
        let gift = gift_of(&player.characters);
        self.tell(id, Input::Bring(Owner::Character(seat), &gift));
        self.save(Write::Active { player: player_id, game, character: name });
        self.outbox.push_bare(Output::Flush(Mark::Characters(member)));
    }

    fn seat_of(&self, id: RoomId, member: Member) -> Option<Seat> {
        self.rooms.get(&id)?.participants().find(|who| who.member == member)?.seat
    }

    /// Stores data that a room outputs.
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

    /// Updates the state of a character for its present player.
    fn note_life(&mut self, player: PlayerId, character: &str, bytes: &[u8]) {
        let players = self.doors.values_mut().filter_map(|door| door.player.as_mut());
        for player in players.filter(|known| known.id == player) {
            let life = player.characters.all.iter_mut().find(|(name, _)| name == character);
            life.into_iter().for_each(|(_, kept)| *kept = bytes.to_vec());
            player.has_lived = true;
        }
    }

    /// Handles the end of a room's batch of data to store.
    pub(super) fn kept(&mut self, id: RoomId, tick: Tick) {
        if self.keeping.is_none() {
            return;
        }
        if let Some(room) = self.rooms.get_mut(&id) {
            room.cast.extend(room.recasts.drain(..));
        }
        self.outbox.push_bare(Output::Flush(Mark::Room(id, tick)));
    }

    /// Revokes all tokens of a kicked player.
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

/// Splits the stored state of a place into chunks that fit the log.
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

/// The bytes of the active character for the game.
fn gift_of(characters: &Characters) -> Vec<u8> {
    let life = characters.all.iter().find(|(name, _)| *name == characters.active);
    life.map_or_else(Vec::new, |life| to_canonical(life).expect("bytes can be written"))
}

/// All characters of a game, with the stored state of those that were played.
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
