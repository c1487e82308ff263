//! A game that a host runs for players who know only a part of it.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use postcard_schema::Schema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Entity, Kind, Parts, Scene, ViewId};
use crate::{Game, SchemaHash, Seat, TickRate, description_of, schema};

/// A game that can also run in an authoritative room: the host steps it, and players see what concerns them.
///
/// The step is the same as in lockstep. Besides it a game says what others may see ([`show`](Hosted::show)), from where
/// ([`eye`](Hosted::eye)), and what a player's own screen predicts ([`own`](Hosted::own), [`predict`](Hosted::predict)).
pub trait Hosted: Game {
    /// The kinds of entities there are.
    const KINDS: &'static [Kind];

    /// How many times a second players are told. At most as often as the game steps.
    const UPDATES: TickRate;

    /// How far behind the newest update other entities are shown, in milliseconds.
    const DELAY_MS: u32 = 110;

    /// How a wrong prediction is mended.
    const BLEND: Blend = Blend { over_us: 100_000 };

    /// The characters that a player may have, each with what is kept of it wherever they play; the first if they choose none. Their
    /// names are short, of lower-case letters, digits and hyphens.
    const CHARACTERS: &'static [&'static str] = &[];

    /// What a player's screen predicts of itself: in full, so that what is predicted from it is what the host comes to.
    /// Its codes must lose nothing.
    type Own: Entity;

    /// Something that happens at a moment: a sound, a hit, a word.
    type Event: Clone + Serialize + DeserializeOwned + Schema + 'static;

    /// What a script may ask for, by feature and action; [`NoCommand`](super::NoCommand) if nothing.
    type Command: DeserializeOwned + 'static;

    /// The view that a seat shares. By default everybody has their own.
    fn view_of(&self, seat: Seat) -> ViewId {
        ViewId(seat.0)
    }

    /// Where a view looks from. Who looks from nowhere sees only what is nowhere.
    fn eye(&self, view: ViewId) -> Option<[f32; 3]>;

    /// Puts every entity there is into an empty scene.
    fn show(&self, scene: &mut Scene);

    /// What a view predicts, if it has anything of its own.
    fn own(&self, view: ViewId) -> Option<Self::Own>;

    /// One tick of what is its own, as [`step`](Game::step) will do it: the same code. `around` is what the player knows of
    /// everything else.
    fn predict(own: &mut Self::Own, input: &Self::Input, around: &Scene);

    /// How far what was predicted is from what is right.
    fn apart(predicted: &Self::Own, right: &Self::Own) -> PredictionError;

    /// What happened in the last step.
    fn events(&self, events: &mut Events<Self::Event>) {
        let _ = events;
    }

    /// Two inputs of one seat fall into one tick: the later wins, unless the game knows better, such as that a button
    /// pressed in the earlier one must not be lost.
    fn merge(earlier: &Self::Input, later: &Self::Input) -> Self::Input {
        let _ = earlier;
        later.clone()
    }

    /// Whose input of a tick came first: the place of this one among all of them, by the time at which it was made. A game
    /// that cares keeps it in the input, where it is logged and replayed.
    fn order(input: &mut Self::Input, place: u16) {
        let _ = (input, place);
    }

    /// What is kept of whoever sits there, for when they come back: appended to `out`, at most
    /// [`MAX_KEPT`](super::MAX_KEPT) bytes. It comes again as [`Whose::Player`](crate::Whose) among
    /// [`Inputs::brought`](crate::Inputs::brought), perhaps to a later build of the game.
    fn keep(&self, seat: Seat, out: &mut Vec<u8>) {
        let _ = (seat, out);
    }

    /// What is kept of the character of whoever sits there. It comes again, wherever they play, as
    /// [`Whose::Character`](crate::Whose): the canonical bytes of the character's name and of what is appended here.
    fn keep_character(&self, seat: Seat, out: &mut Vec<u8>) {
        let _ = (seat, out);
    }

    /// What stands in the place that outlives the room. It comes again as [`Whose::Place`](crate::Whose), see
    /// [`parts_in`](super::parts_in).
    fn keep_parts(&self, parts: &mut Parts) {
        let _ = parts;
    }

    /// What a command means: one input for each of the next ticks. `held` is what the seat did last.
    fn command(held: &Self::Input, command: Self::Command, inputs: &mut Vec<Self::Input>);
}

/// How a wrong prediction is mended, when it is not so wrong that it is mended at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blend {
    /// For how long what is shown moves over to what is right.
    pub over_us: u64,
}

/// How far a predicted state is from the right one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PredictionError {
    /// In the units of the game.
    pub distance: f32,
    /// How fast it moves, in these units a second: distance by speed is the error as a time.
    pub speed: f32,
    /// So far that it is mended at once.
    pub snaps: bool,
}

/// Who is told of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Audience {
    /// Everyone.
    Everyone,
    /// One view.
    View(ViewId),
    /// Whoever looks from within so far of a place.
    Near([f32; 3], f32),
}

/// Whether an event may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// It arrives, after those before it.
    Reliable,
    /// It arrives soon or never.
    Lossy,
}

/// An event and whom it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Told<E> {
    /// For whom.
    pub audience: Audience,
    /// Whether it may be lost.
    pub promise: Promise,
    /// What.
    pub event: E,
}

/// What happened in a step. Made once and reused.
#[derive(Clone, Debug)]
pub struct Events<E>(Vec<Told<E>>);

impl<E> Default for Events<E> {
    fn default() -> Events<E> {
        Events(Vec::new())
    }
}

impl<E> Events<E> {
    /// Something happened.
    pub fn tell(&mut self, audience: Audience, promise: Promise, event: E) {
        self.0.push(Told { audience, promise, event });
    }

    /// Everything that happened, in order.
    pub fn iter(&self) -> core::slice::Iter<'_, Told<E>> {
        self.0.iter()
    }

    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// The description of everything that a room of a game says: its types as in lockstep, its kinds, what is predicted, and its
/// events.
pub fn hosted_description_of<G: Hosted>() -> String {
    let mut text = description_of::<G>();
    text += &schema::describe(&[G::Event::SCHEMA]);
    for kind in G::KINDS.iter().chain([&G::Own::KIND]) {
        let _ = writeln!(text, "entity {}: {}", kind.name, kind.feature);
        for zone in kind.zones {
            let _ =
                writeln!(text, "entity {} zone {}: {} at {} Hz", kind.name, zone.name, zone.within, zone.hz);
        }
        for field in kind.fields {
            let super::Field { name, slots, code, motion, zones, hz, owner, plain: _ } = field;
            let rest = (slots, code, motion, zones, hz, owner);
            let _ = writeln!(text, "entity {}.{name}: {rest:?}", kind.name);
        }
    }
    text
}

/// The hash of that description: both ends of a room have the same.
pub fn hosted_schema_of<G: Hosted>() -> SchemaHash {
    schema::hash_description(&hosted_description_of::<G>())
}
