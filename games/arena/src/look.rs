//! Drawing data, in tiles as floats, from the corner of the map: x to the right, y downwards. Never used in a step.

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

/// The radius of a shot, for drawing.
pub const SHOT_RADIUS: f32 = 0.1;

/// An avatar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Avatar {
    /// The number of its player.
    pub number: u32,
    /// Its centre.
    pub at: [f32; 2],
    /// Its aim, in radians, clockwise from the right.
    pub angle: f32,
    /// Its remaining health, from 0 to 1.
    pub health: f32,
    /// Whether it is invulnerable now.
    pub shielded: bool,
}

/// A structure on a tile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Structure {
    /// The corner of its tile with the lowest coordinates.
    pub corner: [f32; 2],
    /// Its kind.
    pub kind: Kind,
    /// Its remaining health, from 0 to 1.
    pub health: f32,
    /// The number of its owner, if it has one.
    pub owner: Option<u16>,
}

/// A planned structure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preview {
    /// The number of its player.
    pub number: u32,
    /// The corner of its tile with the lowest coordinates.
    pub corner: [f32; 2],
    /// Its kind.
    pub kind: Kind,
    /// Whether it could be built.
    pub ok: bool,
}

/// A shot in the air.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Projectile {
    /// Its centre.
    pub at: [f32; 2],
    /// Its direction, in radians.
    pub angle: f32,
    /// The number of its owner.
    pub owner: u16,
}

/// All drawing data of a frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// The number of tiles per side of the map; 0 while unknown.
    pub size: f32,
    /// All living avatars in sight.
    pub avatars: Vec<Avatar>,
    /// All structures.
    pub structures: Vec<Structure>,
    /// All previews.
    pub previews: Vec<Preview>,
    /// All shots.
    pub projectiles: Vec<Projectile>,
}

impl Look {
    /// The drawing data of a scene.
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

/// The drawing data of an avatar.
pub fn avatar(id: u32, entity: &entities::Avatar) -> Avatar {
    Avatar {
        number: id,
        at: tiles(entity.at),
        angle: angle(entity.aim),
        health: health(entity.health, MAX_HEALTH),
        shielded: entity.shielded,
    }
}

/// The drawing data of the player's own avatar, while it is alive.
pub fn own(own: &Own) -> Option<Avatar> {
    let shielded = own.is_shielded();
    let entity = entities::Avatar { at: own.at, aim: own.aim, health: own.health, shielded };
    own.is_alive().then(|| avatar(own.number.into(), &entity))
}

/// The drawing data of a structure; none if its kind is unknown.
pub fn structure(entity: &entities::Structure) -> Option<Structure> {
    let kind = Kind::of_code(entity.kind)?;
    let owner = Some(entity.owner).filter(|owner| *owner != NOBODY);
    Some(Structure { corner: corner(entity.tile), kind, health: health(entity.health, kind.health()), owner })
}

/// The drawing data of a preview; none if its kind is unknown.
pub fn preview(id: u32, entity: &entities::Preview) -> Option<Preview> {
    let kind = Kind::of_code(entity.kind)?;
    Some(Preview { number: id, corner: corner(entity.tile), kind, ok: entity.ok })
}

/// The drawing data of a shot.
pub fn projectile(entity: &entities::Projectile) -> Projectile {
    Projectile { at: tiles(entity.at), angle: angle(entity.aim), owner: entity.owner }
}

/// A position in tiles.
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
