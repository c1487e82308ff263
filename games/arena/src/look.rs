//! What there is to draw, in tiles as floats, from the corner of the map: x to the right, y downwards. Never used in a step.

use core::f32::consts::TAU;

use alloc::vec::Vec;

use sametick_sim::replica::Scene;

use crate::build::{Kind, NOBODY};
use crate::entities;
use crate::movement::RADIUS;
use crate::presence::MAX_HEALTH;
use crate::space::{At, TURN, UNIT};
use crate::state::Own;

/// The radius of an avatar.
pub const AVATAR_RADIUS: f32 = RADIUS as f32 / UNIT as f32;

/// The radius of a shot, for the eye.
pub const SHOT_RADIUS: f32 = 0.1;

/// An avatar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Avatar {
    /// The number of its player.
    pub number: u32,
    /// Its middle.
    pub at: [f32; 2],
    /// Where it looks, in radians from the right over downwards.
    pub angle: f32,
    /// What is left of it, from 0 to 1.
    pub health: f32,
    /// Whether nothing hurts it now.
    pub shielded: bool,
}

/// What stands on a tile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Structure {
    /// The corner of its tile with the lowest numbers.
    pub corner: [f32; 2],
    /// What it is.
    pub kind: Kind,
    /// What is left of it, from 0 to 1.
    pub health: f32,
    /// Whose it is, if anybody's.
    pub owner: Option<u16>,
}

/// What might be built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preview {
    /// The number of whoever might.
    pub number: u32,
    /// The corner of its tile with the lowest numbers.
    pub corner: [f32; 2],
    /// What it would be.
    pub kind: Kind,
    /// Whether it could be built.
    pub ok: bool,
}

/// A shot in the air.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Projectile {
    /// Its middle.
    pub at: [f32; 2],
    /// Where it flies, in radians.
    pub angle: f32,
    /// Whose it is.
    pub owner: u16,
}

/// Everything there is to draw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// How many tiles a side of the map has; 0 as long as that is not known.
    pub size: f32,
    /// Everyone who is alive and in sight.
    pub avatars: Vec<Avatar>,
    /// Everything that stands.
    pub structures: Vec<Structure>,
    /// Everything that might.
    pub previews: Vec<Preview>,
    /// Everything that flies.
    pub projectiles: Vec<Projectile>,
}

impl Look {
    /// What a scene shows.
    pub fn of(scene: &Scene) -> Look {
        Look {
            size: scene.get::<entities::Ground>(0).map_or(0.0, |ground| f32::from(ground.size)),
            avatars: scene.iter().map(|(id, entity)| avatar(id, &entity)).collect(),
            structures: scene.iter().filter_map(|(_, entity)| structure(&entity)).collect(),
            previews: scene.iter().filter_map(|(id, entity)| preview(id, &entity)).collect(),
            projectiles: scene.iter().map(|(_, entity)| projectile(&entity)).collect(),
        }
    }
}

/// An avatar as it is drawn.
pub fn avatar(id: u32, entity: &entities::Avatar) -> Avatar {
    Avatar {
        number: id,
        at: tiles(entity.at),
        angle: angle(entity.aim),
        health: health(entity.health, MAX_HEALTH),
        shielded: entity.shielded,
    }
}

/// One's own avatar as it is drawn, while it is alive.
pub fn own(own: &Own) -> Option<Avatar> {
    let shielded = own.is_shielded();
    let entity = entities::Avatar { at: own.at, aim: own.aim, health: own.health, shielded };
    own.is_alive().then(|| avatar(own.number.into(), &entity))
}

/// A structure as it is drawn; none if it is of no known kind.
pub fn structure(entity: &entities::Structure) -> Option<Structure> {
    let kind = Kind::of_code(entity.kind)?;
    let owner = Some(entity.owner).filter(|owner| *owner != NOBODY);
    Some(Structure { corner: corner(entity.tile), kind, health: health(entity.health, kind.health()), owner })
}

/// A preview as it is drawn; none if it is of no known kind.
pub fn preview(id: u32, entity: &entities::Preview) -> Option<Preview> {
    let kind = Kind::of_code(entity.kind)?;
    Some(Preview { number: id, corner: corner(entity.tile), kind, ok: entity.ok })
}

/// A shot as it is drawn.
pub fn projectile(entity: &entities::Projectile) -> Projectile {
    Projectile { at: tiles(entity.at), angle: angle(entity.aim), owner: entity.owner }
}

/// A place in tiles.
pub fn tiles(at: At) -> [f32; 2] {
    at.map(|part| part as f32 / UNIT as f32)
}

/// A direction in radians.
pub fn angle(aim: u8) -> f32 {
    f32::from(aim) * TAU / TURN as f32
}

/// The name of a kind.
pub const fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Wall => "wall",
        Kind::Crate => "crate",
        Kind::Rock => "rock",
    }
}

fn corner(tile: [i16; 2]) -> [f32; 2] {
    tile.map(f32::from)
}

fn health(left: u8, whole: u8) -> f32 {
    f32::from(left) / f32::from(whole)
}
