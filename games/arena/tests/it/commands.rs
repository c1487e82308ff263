//! Script commands, and the errors for invalid ones.

use sametick_arena::{Action, Arena, Command, Input, Kind, Tile, Walk};
use sametick_sim::replica::Hosted;

fn inputs(held: &Input, json: &str) -> Vec<Input> {
    let command: Command = serde_json::from_str(json).unwrap();
    let mut inputs = Vec::new();
    Arena::command(held, command, &mut inputs);
    inputs
}

fn error(json: &str) -> String {
    serde_json::from_str::<Command>(json).unwrap_err().to_string()
}

const HELD: Input = Input { walk: Walk::STILL, aim: 9, fire: true, action: Some(Action::Clear), place: 3 };

#[test]
fn a_batch_is_one_input_for_each_tick() {
    let json = r#"{"movement":{"input_batch":{"inputs":[
        {"seq":101,"up":true,"down":false,"left":false,"right":true},{"seq":102,"left":true}]}}}"#;
    let walks = [Walk::towards(1, -1), Walk::towards(-1, 0)];
    assert_eq!(
        inputs(&HELD, json),
        walks.map(|walk| Input { walk, aim: 9, fire: true, action: None, place: 0 })
    );
    let of = |len: usize| {
        format!(r#"{{"movement":{{"input_batch":{{"inputs":[{}{{}}]}}}}}}"#, "{},".repeat(len - 1))
    };
    assert_eq!(inputs(&HELD, &of(60)).len(), 60);
    assert!(error(&of(61)).contains("a batch has at most 60 inputs, and this one has 61"));
}

#[test]
fn other_commands_keep_the_walk() {
    let held = Input { walk: Walk::towards(0, 1), ..HELD };
    let plain = held.going_on();
    let tile = Tile::new(3, 4).unwrap();
    let one = |json| <[Input; 1]>::try_from(inputs(&held, json)).unwrap()[0];
    assert_eq!(one(r#"{"movement":{"aim":{"angle":1.5708}}}"#), Input { aim: 64, ..plain });
    assert_eq!(one(r#"{"movement":{"aim":{"angle":-0.001}}}"#), Input { aim: 0, ..plain });
    let acts = |action| Input { action: Some(action), ..plain };
    let preview = r#"{"build":{"preview":{"x":3,"y":4,"kind":"wall"}}}"#;
    assert_eq!(one(preview), acts(Action::Preview(tile, Kind::Wall)));
    let place = r#"{"build":{"place":{"x":3,"y":4,"kind":"crate"}}}"#;
    assert_eq!(one(place), acts(Action::Place(tile, Kind::Crate)));
    assert_eq!(one(r#"{"build":{"remove":{"x":3,"y":4}}}"#), acts(Action::Remove(tile)));
    assert_eq!(one(r#"{"build":{"clear_preview":{}}}"#), acts(Action::Clear));
    let shots = inputs(&held, r#"{"projectile":{"fire":{"angle":3.1416}}}"#);
    assert_eq!(
        shots,
        [true, false].map(|fire| Input { aim: 128, fire, ..plain }),
        "the trigger is let go again"
    );
}

#[test]
fn mistakes_are_named() {
    let table = [
        (r#"{"dance":{}}"#, "unknown variant `dance`, expected one of `movement`, `build`, `projectile`"),
        (r#"{"build":{"burn":{}}}"#, "unknown variant `burn`, expected one of `preview`, `place`"),
        (r#"{"build":{"place":{"y":4,"kind":"wall"}}}"#, "missing field `x`"),
        (
            r#"{"build":{"place":{"x":1,"y":4,"kind":"rock"}}}"#,
            "unknown variant `rock`, expected `wall` or `crate`",
        ),
        (r#"{"build":{"remove":{"x":-1,"y":4}}}"#, "the columns and rows of tiles go from 0 to 511"),
        (r#"{"build":{"remove":{"x":1,"y":4,"z":2}}}"#, "unknown field `z`, expected `x` or `y`"),
        (r#"{"build":{"remove":{"x":1.5,"y":4}}}"#, "invalid type: floating point `1.5`, expected i32"),
        (r#"{"movement":{"aim":{"angle":"north"}}}"#, "invalid type: string \"north\", expected f32"),
        (
            r#"{"movement":{"input_batch":{"inputs":[{"jump":true}]}}}"#,
            "unknown field `jump`, expected one of `seq`, `up`",
        ),
        (r#"{"projectile":{"fire":{}}}"#, "missing field `angle`"),
    ];
    for (json, wanted) in table {
        let error = error(json);
        assert!(error.contains(wanted), "{json}: {error}");
    }
}
