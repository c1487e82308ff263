//! The physics engine, as the scenes use it.

use rapier3d::prelude::*;

/// Where a body is at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Transform {
    pub at: [f32; 3],
    /// x, y, z, w.
    pub rotation: [f32; 4],
    pub awake: bool,
}

/// A world of bodies, in the order in which they were added.
#[derive(Default)]
pub struct World {
    gravity: Vector,
    parameters: IntegrationParameters,
    pipeline: PhysicsPipeline,
    islands: IslandManager,
    broad_phase: BroadPhaseBvh,
    narrow_phase: NarrowPhase,
    pub bodies: RigidBodySet,
    colliders: ColliderSet,
    joints: ImpulseJointSet,
    multi_joints: MultibodyJointSet,
    ccd: CCDSolver,
    pub handles: Vec<RigidBodyHandle>,
}

impl World {
    /// Empty, stepped so many times a second.
    pub fn new(gravity: f32, hz: f32) -> World {
        let parameters = IntegrationParameters { dt: 1.0 / hz, ..IntegrationParameters::default() };
        World { gravity: Vector::new(0.0, -gravity, 0.0), parameters, ..World::default() }
    }

    /// Something that never moves.
    pub fn add_wall(&mut self, collider: ColliderBuilder) {
        self.colliders.insert(collider);
    }

    /// Something that does.
    pub fn add(&mut self, body: RigidBodyBuilder, collider: ColliderBuilder) -> RigidBodyHandle {
        let handle = self.bodies.insert(body);
        self.colliders.insert_with_parent(collider, handle, &mut self.bodies);
        self.handles.push(handle);
        handle
    }

    pub fn step(&mut self) {
        self.pipeline.step(
            self.gravity,
            &self.parameters,
            &mut self.islands,
            &mut self.broad_phase,
            &mut self.narrow_phase,
            &mut self.bodies,
            &mut self.colliders,
            &mut self.joints,
            &mut self.multi_joints,
            &mut self.ccd,
            &(),
            &(),
        );
    }

    pub fn transforms(&self) -> Vec<Transform> {
        let transform = |handle: &RigidBodyHandle| {
            let body = &self.bodies[*handle];
            let (at, turn) = (body.translation(), body.rotation());
            Transform {
                at: [at.x, at.y, at.z],
                rotation: [turn.x, turn.y, turn.z, turn.w],
                awake: !body.is_sleeping(),
            }
        };
        self.handles.iter().map(transform).collect()
    }
}
