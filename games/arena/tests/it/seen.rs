//! Visibility of entities, their zones, and the audience of events.

use sametick_arena::look::Look;
use sametick_arena::presence::MAX_HEALTH;
use sametick_arena::{
    Action, Arena, Avatar, Event, Ground, Input, Kind, Player, Preview, Projectile, Setup, Structure, UNIT,
};
use sametick_sim::replica::{Audience, Entity, Events, Hosted, Promise, Row, Scene, ViewId};

use crate::field::{FIRING, Field, STILL};

fn scene_of(field: &Field) -> Scene {
    let mut scene = Scene::new(Arena::KINDS);
    field.arena.show(&mut scene);
    scene
}

fn row<E: Entity>(scene: &Scene, id: u32) -> Row {
    let kind = Arena::KINDS.iter().position(|kind| kind.name == E::KIND.name).unwrap();
    let table = &scene.tables()[kind];
    table.rows()[table.find(id).unwrap()]
}

#[test]
fn four_features_and_their_zones() {
    let told = Arena::KINDS.iter().map(|kind| {
        let zones: Vec<_> =
            kind.zones.iter().map(|zone| (zone.name, zone.within / UNIT as f32, zone.hz)).collect();
        (kind.name, kind.feature, zones)
    });
    let (near, far) = (("near", 24.0, 10), ("far", 48.0, 10));
    let expected = [
        ("ground", "presence", vec![]),
        ("player", "presence", vec![far]),
        ("avatar", "movement", vec![near, ("far", 48.0, 2)]),
        ("structure", "build", vec![far]),
        ("preview", "build", vec![near]),
        ("projectile", "projectile", vec![near]),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    let health = Avatar::KIND.fields.iter().find(|field| field.name == "health").unwrap();
    assert_eq!(health.zones, 1, "health is visible in the near zone only");
    assert!(
        sametick_sim::replica::markdown(Arena::KINDS)
            .contains("| avatar | aim | whole number | around 256 |")
    );
}

#[test]
fn everyone_is_seen_where_they_are() {
    let mut field = Field::for_two();
    field.tick(&[(0, FIRING), (1, STILL)]);
    let scene = scene_of(&field);
    assert_eq!(scene.get::<Ground>(0), Some(Ground { size: 48, points: 0, won: None, round: 1, wait: 0 }));
    let own = field.own(0);
    assert_eq!(
        scene.get::<Avatar>(0),
        Some(Avatar { at: own.at, aim: 0, health: MAX_HEALTH, shielded: false })
    );
    assert_eq!(
        scene.get::<Player>(1),
        Some(Player { score: 0, deaths: 0, alive: true, bot: false, character: 0 })
    );
    let place = Some([own.at[0] as f32, own.at[1] as f32, 0.0]);
    assert_eq!(row::<Avatar>(&scene, 0), Row { id: 0, owner: Some(ViewId(0)), place });
    assert_eq!(field.arena.eye(ViewId(0)), place);
    assert_eq!(scene.iter::<Projectile>().map(|(_, shot)| shot.owner).collect::<Vec<_>>(), [0]);
    for (id, rock) in scene.iter::<Structure>() {
        let middle = rock.tile.map(|part| (f32::from(part) + 0.5) * UNIT as f32);
        assert_eq!(row::<Structure>(&scene, id).place, Some([middle[0], middle[1], 0.0]));
    }
}

#[test]
fn players_are_seen_everywhere_only_in_small_rooms() {
    for (seats, known) in [(64, true), (65, false)] {
        let mut field = Field::new(Setup { seats, bots: 0, ..Setup::default() });
        field.tick(&[(0, STILL)]);
        assert_eq!(row::<Player>(&scene_of(&field), 0).place.is_none(), known);
    }
}

#[test]
fn others_see_previews_and_whether_they_are_possible() {
    let mut field = Field::for_two();
    let see = |field: &mut Field, x: i32| {
        let tile = field.tile(0, x, 0);
        let action = Some(Action::Preview(tile, Kind::Crate));
        field.tick(&[(0, Input { action, ..STILL }), (1, STILL)]);
        let preview = scene_of(field).get::<Preview>(0).unwrap();
        assert_eq!((preview.tile, preview.kind), (tile.pair(), Kind::Crate.code()));
        preview.ok
    };
    assert!(see(&mut field, 2) && see(&mut field, -4));
    assert!(!see(&mut field, 3), "a player stands there");
    assert!(!see(&mut field, 5), "out of reach");
    field.ticks(20, &[(0, STILL), (1, STILL)]);
    assert_eq!(scene_of(&field).get::<Preview>(0), None);
}

#[test]
fn the_dead_have_no_avatar() {
    let mut field = Field::for_two();
    while field.own(1).is_alive() {
        field.tick(&[(0, FIRING), (1, STILL)]);
    }
    let scene = scene_of(&field);
    assert_eq!(scene.get::<Avatar>(1), None);
    assert_eq!(
        scene.get::<Player>(1),
        Some(Player { score: 0, deaths: 1, alive: false, bot: false, character: 0 })
    );
    assert!(field.arena.eye(ViewId(1)).is_some(), "they look on from where they fell");
}

#[test]
fn events_reach_their_audience() {
    let mut field = Field::for_two();
    let mut events = Events::default();
    let mut heard = Vec::new();
    for _ in 0..120 {
        field.tick(&[(0, FIRING), (1, STILL)]);
        events.clear();
        field.arena.events(&mut events);
        heard.extend(events.iter().cloned());
    }
    for told in &heard {
        let fits = match told.event {
            Event::Killed { killer, victim } => {
                assert_eq!((killer, victim), (0, 1));
                (told.audience, told.promise) == (Audience::Everyone, Promise::Reliable)
            }
            Event::Respawned { number, .. } => told.audience == Audience::View(ViewId(number)),
            _ => matches!(told.audience, Audience::Near(_, reach) if reach == 24.0 * UNIT as f32),
        };
        assert!(fits, "{told:?}");
    }
    let has = |wanted: fn(&Event) -> bool| heard.iter().any(|told| wanted(&told.event));
    assert!(has(|event| matches!(event, Event::Shot { by: 0, .. })));
    assert!(has(|event| matches!(event, Event::Hit { victim: Some(1), .. })));
    assert!(
        has(|event| matches!(event, Event::Killed { .. }))
            && has(|event| matches!(event, Event::Respawned { .. }))
    );
}

#[test]
fn a_screen_is_told_everything_in_tiles() {
    let mut field = Field::for_two();
    let tile = field.tile(0, 0, 1);
    let action = Some(Action::Preview(tile, Kind::Wall));
    field.tick(&[(0, Input { action, aim: 64, ..FIRING }), (1, STILL)]);
    let look = Look::of(&scene_of(&field));
    assert_eq!((look.size, look.avatars.len(), look.projectiles.len()), (48.0, 2, 1));
    let [x, y] = look.avatars[0].at;
    let (column, row) = (tile.x() as f32, tile.y() as f32);
    assert_eq!([x, y], [column + 0.5, row - 0.5]);
    assert!(
        (look.avatars[0].angle - core::f32::consts::FRAC_PI_2).abs() < 1e-6 && look.avatars[0].health == 1.0
    );
    assert_eq!(
        (look.previews[0].corner, look.previews[0].kind, look.previews[0].ok),
        ([column, row], Kind::Wall, true)
    );
    assert!(look.structures.iter().all(|rock| rock.kind == Kind::Rock && rock.owner.is_none()));
    assert_eq!(sametick_arena::look::own(&field.own(0)), Some(look.avatars[0]));
}
