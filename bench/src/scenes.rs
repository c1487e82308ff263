//! The measured scenes: made by a physics engine, the same in every run.

use rapier3d::prelude::*;
use sametick_sim::Rng;

use crate::physics::{Transform, World};

/// A number from -1 to 1.
fn real(rng: &mut Rng) -> f32 {
    rng.below(2_000_001) as f32 / 1_000_000.0 - 1.0
}

fn vector(rng: &mut Rng, size: f32) -> Vector {
    Vector::new(real(rng) * size, real(rng) * size, real(rng) * size)
}

/// 250 balls of 1 m in a closed box of twice `half`, which lose little energy when they bounce, at 30 Hz. A ball that
/// has nearly come to rest is kicked up, so that all of them keep bouncing. Also returns how often one of them bounces
/// in a second.
pub fn bouncing(seconds: usize, half: f32) -> (Vec<Vec<Transform>>, f64) {
    let mut rng = Rng::new(1);
    let mut world = World::new(9.81, 60.0);
    for normal in [Vector::X, -Vector::X, Vector::Y, -Vector::Y, Vector::Z, -Vector::Z] {
        world.add_wall(wall(normal).translation(normal * -half).restitution(0.9).friction(0.3));
    }
    for _ in 0..250 {
        let body = RigidBodyBuilder::dynamic()
            .translation(vector(&mut rng, half - 1.0))
            .linvel(vector(&mut rng, 8.0))
            .angvel(vector(&mut rng, 4.0))
            .can_sleep(false);
        world.add(body, ColliderBuilder::ball(0.5).restitution(0.9).friction(0.3));
    }
    let (mut frames, mut bounces) = (Vec::new(), 0);
    for _ in 0..seconds * 30 {
        for handle in world.handles.clone() {
            let body = &mut world.bodies[handle];
            if body.linvel().length() < 1.5 && body.translation().y < 1.0 - half {
                let kick = vector(&mut rng, 6.0) + Vector::Y * 12.0;
                body.set_linvel(kick, true);
                body.set_angvel(vector(&mut rng, 4.0), true);
            }
        }
        let before: Vec<Vector> = world.handles.iter().map(|handle| world.bodies[*handle].linvel()).collect();
        world.step();
        world.step();
        let fall = Vector::Y * (9.81 / 30.0);
        let pushed = |(handle, before): &(&RigidBodyHandle, Vector)| {
            (world.bodies[**handle].linvel() - *before + fall).length() > 0.05
        };
        bounces += world.handles.iter().zip(before).filter(pushed).count();
        frames.push(world.transforms());
    }
    (frames, bounces as f64 / (250 * seconds) as f64)
}

/// A floor, or a wall that stands.
fn wall(normal: Vector) -> ColliderBuilder {
    ColliderBuilder::halfspace(rapier3d::na::Unit::new_unchecked(normal))
}

/// 900 cubes of 0.4 m on a floor and a large one that is rolled through them by forces, as by a player, at 60 Hz. From
/// time to time it attracts the cubes near it, and most of them tumble then.
pub fn cubes(seconds: usize) -> Vec<Vec<Transform>> {
    let mut rng = Rng::new(2);
    let mut world = World::new(9.81, 60.0);
    world.add_wall(wall(Vector::Y).friction(0.6));
    let player = RigidBodyBuilder::dynamic().translation(Vector::new(0.0, 2.0, 0.0)).can_sleep(false);
    let player = world.add(player, ColliderBuilder::cuboid(0.75, 0.75, 0.75).friction(0.6).density(2.0));
    for at in 0..900 {
        let (x, z) = (((at % 30) as f32 - 14.5) * 0.7, ((at / 30) as f32 - 14.5) * 0.7);
        let body = RigidBodyBuilder::dynamic().translation(Vector::new(x, 0.2, z));
        world.add(body, ColliderBuilder::cuboid(0.2, 0.2, 0.2).friction(0.6).density(1.0));
    }
    let mut frames = Vec::new();
    let mut goal = Vector::ZERO;
    for frame in 0..seconds * 60 {
        if frame % 90 == 0 {
            goal = Vector::new(real(&mut rng) * 10.0, 0.0, real(&mut rng) * 10.0);
        }
        push(&mut world, player, goal, frame / 60 % 8 >= 5);
        world.step();
        frames.push(world.transforms());
    }
    frames
}

/// The forces of one frame on the large cube, and, if it `pulls`, on those around it.
fn push(world: &mut World, player: RigidBodyHandle, goal: Vector, pulls: bool) {
    let body = &mut world.bodies[player];
    let at = body.translation();
    let way = Vector::new(goal.x - at.x, 0.0, goal.z - at.z);
    let wanted = way.normalize_or_zero() * 6.0;
    let mass = body.mass();
    let force = (wanted - body.linvel() * Vector::new(1.0, 0.0, 1.0)) * mass / 60.0 * 4.0;
    body.apply_impulse(force, true);
    body.apply_torque_impulse(Vector::new(force.z, 0.0, -force.x) * 0.4, true);
    if !pulls {
        return;
    }
    for handle in world.handles.iter().copied().filter(|handle| *handle != player) {
        let body = &mut world.bodies[handle];
        let way = at - body.translation();
        let distance = way.length();
        if distance < 3.0 {
            let pull = way / distance * (body.mass() * 25.0 / 60.0);
            body.apply_impulse(pull, true);
        }
    }
}
