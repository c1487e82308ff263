//! The `Hosted` trait: a game that an authoritative host runs for players who see only a part of it.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use postcard_schema::Schema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Entity, Kind, Parts, Scene, ViewId};
use crate::{Game, SchemaHash, Seat, TickRate, description_of, schema};

/// A game that can also run in an authoritative room: the host steps it, and each player sees only the relevant part.
///
/// The step is the same as in lockstep. In addition the game declares what is visible ([`show`](Hosted::show)), from
/// where ([`eye`](Hosted::eye)), and what clients predict ([`own`](Hosted::own), [`predict`](Hosted::predict)).
pub trait Hosted: Game {
    /// The kinds of entities.
    const KINDS: &'static [Kind];

    /// The update rate of views. At most the tick rate.
    const UPDATES: TickRate;

    /// How far behind the newest update other entities are shown, in milliseconds.
    const DELAY_MS: u32 = 110;

    /// How a wrong prediction is corrected.
    const BLEND: Blend = Blend { over_us: 100_000 };

    /// The characters a player may choose from, each with saved state that is shared by all rooms; the first is the
    /// default. Names are short, of lower-case letters, digits and hyphens.
    const CHARACTERS: &'static [&'static str] = &[];

    /// The state that a client predicts for its player: complete, so that the prediction matches the host's result. Its
    /// codes must be lossless.
    type Own: Entity;

    /// Something that happens at a moment, such as a sound, a hit or a message.
    type Event: Clone + Serialize + DeserializeOwned + Schema + 'static;

    /// The commands of scripts, by feature and action; [`NoCommand`](super::NoCommand) if there are none.
    type Command: DeserializeOwned + 'static;

    /// The view of a seat. By default every seat has its own.
    fn view_of(&self, seat: Seat) -> ViewId {
        ViewId(seat.0)
    }

    /// The position from which a view looks. Without one it sees only entities without a position.
    fn eye(&self, view: ViewId) -> Option<[f32; 3]>;

    /// Puts every entity into an empty scene.
    fn show(&self, scene: &mut Scene);

    /// The state that a view predicts, if it has one.
    fn own(&self, view: ViewId) -> Option<Self::Own>;

    /// Predicts one tick, with the same code as [`step`](Game::step). `around` is what the player knows of everything
    /// else.
    fn predict(own: &mut Self::Own, input: &Self::Input, around: &Scene);

    /// The error of a predicted state.
    fn prediction_error(predicted: &Self::Own, right: &Self::Own) -> PredictionError;

    /// The events of the last step.
    fn events(&self, events: &mut Events<Self::Event>) {
        let _ = events;
    }

    /// Merges two inputs of one seat that fall into one tick: the later wins by default. A game overrides this if, for
    /// example, a button pressed in the earlier one must not be lost.
    fn merge(earlier: &Self::Input, later: &Self::Input) -> Self::Input {
        let _ = earlier;
        later.clone()
    }

    /// Receives the position of this input among all inputs of the tick, ordered by the time they were made. A game
    /// that needs it stores it in the input, where it is logged and replayed.
    fn order(input: &mut Self::Input, place: u16) {
        let _ = (input, place);
    }

    /// The saved state of a player, for the next visit: appended to `out`, at most [`MAX_KEPT`](super::MAX_KEPT) bytes.
    /// It is loaded again as [`Owner::Player`](crate::Owner) among [`Inputs::brought`](crate::Inputs::brought), perhaps
    /// by a later build of the game.
    fn keep(&self, seat: Seat, out: &mut Vec<u8>) {
        let _ = (seat, out);
    }

    /// The saved state of a player's character. It is loaded again, in any room, as [`Owner::Character`](crate::Owner):
    /// the canonical bytes of the character's name and of what is appended here.
    fn keep_character(&self, seat: Seat, out: &mut Vec<u8>) {
        let _ = (seat, out);
    }

    /// The saved parts of the place, which outlive the room. They are loaded again as [`Owner::Place`](crate::Owner),
    /// see [`parts_in`](super::parts_in).
    fn keep_parts(&self, parts: &mut Parts) {
        let _ = parts;
    }

    /// Translates a command: one input for each of the next ticks. `held` is the seat's last input.
    fn command(held: &Self::Input, command: Self::Command, inputs: &mut Vec<Self::Input>);
}

/// How a prediction error is corrected when it is too small to be corrected at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blend {
    /// How long the shown state takes to blend over to the corrected one, in microseconds.
    pub over_us: u64,
}

/// The distance of a predicted state from the correct one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PredictionError {
    /// In the units of the game.
    pub distance: f32,
    /// The speed, in these units a second: distance divided by speed is the error as a time.
    pub speed: f32,
    /// Whether the error is so large that it is corrected at once.
    pub snaps: bool,
}

/// The receivers of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Audience {
    /// All views.
    Everyone,
    /// One view.
    View(ViewId),
    /// Views whose eye is within this distance of a position.
    Near([f32; 3], f32),
}

/// The delivery guarantee of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Delivered, in order.
    Reliable,
    /// Delivered soon or never.
    Lossy,
}

/// An event with its audience.
#[derive(Clone, Debug, PartialEq)]
pub struct Told<E> {
    /// The receivers.
    pub audience: Audience,
    /// Whether it may be lost.
    pub promise: Promise,
    /// The event.
    pub event: E,
}

/// The events of a step. Made once and reused.
#[derive(Clone, Debug)]
pub struct Events<E>(Vec<Told<E>>);

impl<E> Default for Events<E> {
    fn default() -> Events<E> {
        Events(Vec::new())
    }
}

impl<E> Events<E> {
    /// Adds an event.
    pub fn tell(&mut self, audience: Audience, promise: Promise, event: E) {
        self.0.push(Told { audience, promise, event });
    }

    /// All events, in order.
    pub fn iter(&self) -> core::slice::Iter<'_, Told<E>> {
        self.0.iter()
    }

    /// Removes all events, keeping the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// The description of all types in the messages of a game's room: its types as in lockstep, its kinds, its predicted
/// state, and its events.
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

/// The hash of that description: both ends of a room must have the same.
pub fn hosted_schema_of<G: Hosted>() -> SchemaHash {
    schema::hash_description(&hosted_description_of::<G>())
}
