//! The shapes of arena: see the table at the top of this crate.

use sametick_arena::look::{self, AVATAR_RADIUS, SHOT_RADIUS};
use sametick_arena::{Avatar, Ground, Kind, Own, Preview, Projectile, Structure};

use super::Sight;
use crate::screen::Shape;

const GROUND: f32 = 1.0;
const CAMERA: f32 = 2.0;
const AVATARS: u32 = 10_000;
const PREVIEWS: u32 = 20_000;
const SHIELDS: u32 = 30_000;
const STRUCTURES: u32 = 100_000;
const SHOTS: u32 = 1_000_000;

/// Shot numbers are cut to this range, so that a float represents them exactly.
const SHOT_NUMBERS: u32 = 1 << 23;

/// How much wider the ring of a shield is than its avatar.
const SHIELD_GAP: f32 = 0.5;

/// A longer move within a frame is a jump, not a walk.
const LEAP: f32 = 2.0;

/// The own avatar as predicted, which is drawn instead of the one in the state.
pub struct Mine {
    /// The number of the own seat.
    pub number: Option<u32>,
    /// The own avatar.
    pub own: Option<Own>,
    /// The own build preview.
    pub plan: Option<look::Preview>,
}

/// The last position of the camera.
#[derive(Default)]
pub struct Camera {
    at: [f32; 2],
    leaps: u32,
}

impl Camera {
    fn follow(&mut self, at: [f32; 2]) -> Shape {
        let far = self.at.iter().zip(at).any(|(was, is)| (is - was).abs() > LEAP);
        self.leaps += u32::from(far);
        self.at = at;
        Shape { epoch: self.leaps as f32, ..Shape::new(CAMERA, 10.0, at, [0.0; 2]) }
    }
}

/// Draws all visible entities.
pub fn draw(sight: &impl Sight, mine: &Mine, camera: &mut Camera, shapes: &mut Vec<Shape>) {
    let others = |number: u32| Some(number) != mine.number;
    let size = sight.each::<Ground>().next().map_or(0.0, |(_, ground)| f32::from(ground.size));
    shapes.push(Shape::new(GROUND, 9.0, [size / 2.0; 2], [size; 2]));
    shapes.extend(sight.each::<Structure>().filter_map(|(id, entity)| structure(id, &entity)));
    let previews = sight.each::<Preview>().filter(|(id, _)| others(*id));
    let previews = previews.filter_map(|(id, entity)| look::preview(id, &entity));
    shapes.extend(previews.chain(mine.plan).map(|plan| preview(&plan)));
    shapes.extend(sight.each::<Projectile>().map(|(id, entity)| shot(id, &entity)));
    let avatars = sight.each::<Avatar>().filter(|(id, _)| others(*id));
    let avatars = avatars.map(|(id, entity)| look::avatar(id, &entity));
    for it in avatars.chain(mine.own.as_ref().and_then(look::own)) {
        shapes.push(avatar(&it));
        shapes.extend(it.shielded.then(|| shield(&it)));
    }
    let at = mine.own.map_or([size / 2.0; 2], |own| look::tiles(own.at));
    let tint = mine.number.map_or(-1.0, |number| number as f32);
    shapes.push(Shape { tint, ..camera.follow(at) });
}

fn structure(id: u32, entity: &Structure) -> Option<Shape> {
    let look::Structure { corner, kind, health, owner } = look::structure(entity)?;
    let code = match kind {
        Kind::Wall => 4.0,
        Kind::Crate => 5.0,
        Kind::Rock => 11.0,
    };
    let tint = owner.map_or(-1.0, f32::from);
    Some(Shape {
        tint,
        level: health,
        ..Shape::new((STRUCTURES + id) as f32, code, middle(corner), [1.0; 2])
    })
}

fn preview(plan: &look::Preview) -> Shape {
    let look::Preview { number, corner, kind, ok } = *plan;
    let code = if ok { 6.0 } else { 7.0 };
    let level = if kind == Kind::Crate { 1.0 } else { 0.0 };
    // Every tile has its own epoch: a preview does not glide from one to the next.
    let epoch = corner[0] + 512.0 * corner[1];
    let shape = Shape::new((PREVIEWS + number) as f32, code, middle(corner), [1.0; 2]);
    Shape { tint: number as f32, level, epoch, ..shape }
}

fn shot(id: u32, entity: &Projectile) -> Shape {
    let look::Projectile { at, angle, owner } = look::projectile(entity);
    let shape = Shape::new((SHOTS + id % SHOT_NUMBERS) as f32, 8.0, at, [2.0 * SHOT_RADIUS; 2]);
    Shape { tint: owner.into(), angle, ..shape }
}

fn avatar(avatar: &look::Avatar) -> Shape {
    let look::Avatar { number, at, angle, health, .. } = *avatar;
    let shape = Shape::new((AVATARS + number) as f32, 3.0, at, [2.0 * AVATAR_RADIUS; 2]);
    Shape { tint: number as f32, angle, level: health, ..shape }
}

fn shield(avatar: &look::Avatar) -> Shape {
    let shape =
        Shape::new((SHIELDS + avatar.number) as f32, 12.0, avatar.at, [2.0 * AVATAR_RADIUS + SHIELD_GAP; 2]);
    Shape { tint: avatar.number as f32, ..shape }
}

fn middle(corner: [f32; 2]) -> [f32; 2] {
    corner.map(|part| part + 0.5)
}
