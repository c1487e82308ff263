//! Arena on a page: in lockstep from a state, and in a room from a complete connection to a host.

use sametick_arena::build::MAX_BUILT;
use sametick_arena::{Action, Kind, Tile, Walk};
use sametick_room::host::{self, Host, HostConfig};
use sametick_room::message::{Characters, ToHost, ToView};
use sametick_sim::{Inputs, Time};
use sametick_wire::hello::Answer;
use sametick_wire::identity::Token;
use sametick_wire::{Carrier, Channel, LaneId, Link, Member, control, link};
use serde_json::{Value, json};

use super::*;
use crate::client::Client;
use crate::screen::Held;

const STILL: Controls = Controls { held: Held(0), pointer: None, action: false, build: 0 };

fn playing(ticks: u32, input: Input) -> Arena {
    let mut arena = Arena::new(&Setup { seed: 7, bots: 5, ..Setup::default() });
    let mut inputs = Inputs::new();
    for _ in 0..ticks {
        inputs.clear();
        inputs.set(Seat(0), input);
        arena.step(&inputs);
    }
    arena
}

fn of_kind(frame: &[f32], kind: f32) -> Vec<&[f32]> {
    frame.chunks(Shape::NUMBERS).filter(|shape| shape[1] == kind).collect()
}

#[test]
fn a_state_is_drawn_with_ground_people_and_camera() {
    let (arena, mut memory, mut shapes) = (playing(30, Input::default()), Memory::default(), vec![]);
    arena.draw(Some(Seat(0)), &mut memory, &mut shapes);
    let frame: Vec<f32> = shapes.iter().flat_map(|shape| shape.numbers()).collect();
    assert_eq!(of_kind(&frame, 9.0)[0][4..6], [48.0, 48.0]);
    assert!(of_kind(&frame, 11.0).len() > 10, "rocks");
    let own = arena.at_seat(Seat(0)).unwrap().own;
    let avatars = of_kind(&frame, 3.0);
    let mine = avatars.iter().find(|avatar| avatar[7] == 0.0).unwrap();
    assert_eq!(mine[2..4], look::tiles(own.at));
    assert_eq!(of_kind(&frame, 10.0)[0][2..4], mine[2..4]);
    assert!(avatars.iter().any(|avatar| avatar[7] >= 1000.0), "bots");
    let shields = of_kind(&frame, 12.0);
    let ring = shields.iter().find(|shield| shield[7] == 0.0).unwrap();
    assert!(ring[2..4] == mine[2..4] && ring[4] > mine[4], "a ring around an avatar that has just come");
    let mut ids: Vec<u32> = frame.chunks(Shape::NUMBERS).map(|shape| shape[0] as u32).collect();
    ids.sort_unstable();
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "every shape has its number");
}

#[test]
fn the_hud_is_that_of_the_seat() {
    let (arena, mut memory) = (playing(30, Input::default()), Memory::default());
    arena.look(&arena, Some(Seat(0)), Tick::ZERO, &mut memory);
    let roster = [Seated { seat: Seat(0), name: "Ada".into() }];
    let hud = serde_json::to_value(arena.hud(Some(Seat(0)), &roster, &memory)).unwrap();
    assert_eq!(hud["phase"], "playing");
    assert_eq!((&hud["mode"], &hud["size"]), (&"lockstep".into(), &48.into()));
    assert_eq!(hud["builds"]["limit"], MAX_BUILT);
    assert_eq!((&hud["shield"], &hud["round"], &hud["wait"]), (&2.0.into(), &1.into(), &0.into()));
    let players = hud["players"].as_array().unwrap();
    assert_eq!(players.len(), 6);
    let you = players.iter().find(|player| player["you"] == true).unwrap();
    assert_eq!((&you["name"], &you["bot"]), (&"Ada".into(), &false.into()));
    let watching = serde_json::to_value(arena.hud(None, &roster, &memory)).unwrap();
    assert_eq!((&watching["phase"], &watching["respawnIn"]), (&"watching".into(), &Value::Null));
}

#[test]
fn the_kill_feed_shows_kills_for_a_while() {
    let mut ears = Ears::default();
    let tallies = |score: u16, deaths: u16| [(0, score, 0), (1000, 0, deaths)].into_iter();
    assert_eq!(ears.count(0, Some(Seat(0)), tallies(0, 0)), 0);
    assert_eq!(ears.count(100, Some(Seat(0)), tallies(1, 1)), ears::KILL);
    ears.count(2_200, Some(Seat(0)), tallies(1, 1));
    let feed: Vec<_> = ears.feed().map(|(kill, ago)| (kill.killer, kill.victim, ago)).collect();
    assert_eq!(feed, [(Some(0), 1000, 2)]);
    ears.count(9_000, Some(Seat(0)), tallies(1, 1));
    assert_eq!(ears.feed().count(), 0);
}

#[test]
fn controls_walk_look_shoot_and_build() {
    let (own, mut hands) = (playing(30, Input::default()).at_seat(Seat(0)).unwrap().own, Hands::default());
    let [x, y] = look::tiles(own.at);
    assert_eq!(hands.input(&own, &STILL), Input { aim: own.aim, ..Input::default() });
    let walking = hands.input(&own, &Controls { held: Held(Held::DOWN), ..STILL });
    assert_eq!((walking.walk, walking.aim), (Walk::towards(0, 1), 64), "it looks where it walks");
    let pointing = Controls { held: Held(Held::ACTION), pointer: Some([x - 3.0, y]), ..STILL };
    let shooting = hands.input(&own, &pointing);
    assert_eq!((shooting.aim, shooting.fire, shooting.action), (128, true, None));

    let tile = Tile::new((x - 3.0) as i32, y as i32).unwrap();
    let building = Controls { held: Held(0), build: 1, ..pointing };
    let said: Vec<_> = (0..6).map(|_| hands.input(&own, &building).action).collect();
    let preview = Some(Action::Preview(tile, Kind::Wall));
    assert_eq!(said, [preview, None, None, None, None, preview], "said, and said again");
    let pressed = hands.input(&own, &Controls { action: true, ..building });
    assert_eq!((pressed.action, pressed.fire), (Some(Action::Place(tile, Kind::Wall)), false));
    let busy = Own { busy: 3, ..own };
    assert_eq!(hands.input(&busy, &Controls { action: true, ..building }).action, None);
    let taking = Controls { build: 3, action: true, ..building };
    assert_eq!(hands.input(&own, &taking).action, Some(Action::Remove(tile)));
    hands.input(&own, &building);
    assert_eq!(hands.input(&own, &STILL).action, Some(Action::Clear), "nothing is planned any more");
    assert_eq!(hands.input(&own, &STILL).action, None);
}

/// A page and a host with a calm network between them.
struct Conversation {
    now: Time,
    page: Client,
    host: Host<Arena>,
    link: Link,
    /// The identity messages that the page has sent.
    said: Vec<ToHost>,
    frames: Vec<(u32, Vec<f32>)>,
    heard: u32,
    status: Value,
    hud: Value,
    diagnostics: Value,
    who: Value,
}

impl Conversation {
    fn new() -> Conversation {
        Conversation::with("")
    }

    /// With more options.
    fn with(more: &str) -> Conversation {
        Conversation::of(more, &Setup { seed: 7, seats: 4, bots: 3, ..Setup::default() })
    }

    /// In a room that already runs with this setup.
    fn of(more: &str, setup: &Setup) -> Conversation {
        let now = Time::from_millis(1_000);
        let options = format!(
            r#"{{"game":"arena","mode":"room","session":"den","name":"Ada","routes":["webtransport"],"key":null,
            "players":4,"bots":true,"listed":false,"watch":false,"unix_ms":1.8e12,"now_us":1e6,{more}"random":"{}"}}"#,
            "07".repeat(32)
        );
        Conversation {
            now,
            page: Client::new(&options).unwrap(),
            host: Host::new(now, setup, HostConfig { seats: 4, ..HostConfig::default() }),
            link: Link::new(now, Carrier::DatagramsAndStreams),
            said: vec![],
            frames: vec![],
            heard: 0,
            status: Value::Null,
            hud: Value::Null,
            diagnostics: Value::Null,
            who: Value::Null,
        }
    }

    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now = self.now.plus_micros(1_000);
            self.host.handle(self.now, host::Input::Timeout);
            let _ = self.link.handle(self.now, link::Input::Timeout);
            self.drain_host();
            let now_us = self.now.as_micros() as f64;
            if self.page.wake_at() <= now_us {
                self.page.timeout(now_us);
            }
            self.drain_page();
        }
    }

    fn drain_host(&mut self) {
        let (mut buf, now_us) = (vec![], self.now.as_micros() as f64);
        loop {
            match self.host.poll_output(&mut buf) {
                host::Output::Send(_, channel) => self.link.send(self.now, channel, &buf).unwrap(),
                host::Output::WakeAt(_) => break,
                _ => {}
            }
        }
        loop {
            match self.link.poll_output(&mut buf) {
                link::Output::Datagram => self.page.datagram(now_us, 1, &buf),
                link::Output::Stream(lane) => self.page.stream(now_us, 1, lane.0, &buf),
                link::Output::Message(Channel::Control) => {
                    let message: ToHost = control::from_bytes(&buf).unwrap();
                    if matches!(message, ToHost::Join(_)) {
                        self.host.handle(self.now, host::Input::Message(Member(1), Channel::Control, &buf));
                    }
                    self.said.push(message);
                }
                link::Output::Message(channel) => {
                    self.host.handle(self.now, host::Input::Message(Member(1), channel, &buf));
                }
                _ => break,
            }
        }
    }

    /// Sends a message of a server with identity tokens.
    fn say(&mut self, message: &ToView) {
        self.link.send(self.now, Channel::Control, &control::to_bytes(message)).unwrap();
    }

    /// The tokens that the page has presented.
    fn tokens(&self) -> Vec<Option<Token>> {
        let token = |said: &ToHost| if let ToHost::Join(join) = said { Some(join.token) } else { None };
        self.said.iter().filter_map(token).collect()
    }

    /// Runs until the page shows it, for at most two minutes.
    fn run_until(&mut self, what: &str, is_so: impl Fn(&Value) -> bool) {
        for _ in 0..1_200 {
            if is_so(&self.hud) {
                return;
            }
            self.run(100);
        }
        panic!("the page never shows {what}: {}", self.hud);
    }

    fn drain_page(&mut self) {
        let now_us = self.now.as_micros() as f64;
        loop {
            let json = |text: String| serde_json::from_str(&text).unwrap();
            match self.page.poll(now_us) {
                0 => break,
                1 => self.page.answer(now_us, 1, &Answer::Welcome.to_bytes()),
                2 => self.link.handle(self.now, link::Input::Datagram(&self.page.bytes())).unwrap(),
                3 => {
                    let lane = LaneId(self.page.lane());
                    self.link.handle(self.now, link::Input::Stream(lane, &self.page.bytes())).unwrap();
                }
                5 => {
                    self.heard |= self.page.events();
                    self.frames.push((self.page.tick(), self.page.frame()));
                }
                6 => self.status = json(self.page.status()),
                7 => self.hud = json(self.page.hud()),
                8 => self.diagnostics = json(self.page.diagnostics()),
                10 => self.who = json(self.page.who()),
                other => panic!("{other}"),
            }
        }
    }

    /// The position of the own avatar in a frame.
    fn own_at(&self, back: usize) -> [f32; 2] {
        let (_, frame) = &self.frames[self.frames.len() - 1 - back];
        let avatars = of_kind(frame, 3.0);
        let mine = avatars.iter().find(|avatar| avatar[7] == 0.0).expect("it is alive");
        [mine[2], mine[3]]
    }
}

#[test]
fn a_page_plays_in_a_room_at_sixty_frames_a_second() {
    let mut talk = Conversation::new();
    talk.run(1_000);
    assert_eq!((&talk.status["state"], &talk.status["seat"]), (&"playing".into(), &0.into()));
    assert_eq!(talk.status["ticks_per_second"], 60);
    assert_eq!(talk.status["pace"], 100);
    let before = talk.frames.len();
    talk.run(1_000);
    assert_eq!(talk.frames.len() - before, 60);
    assert!(talk.frames.windows(2).all(|pair| pair[0].0 < pair[1].0));
    let hud = &talk.hud;
    assert_eq!(
        (&hud["mode"], &hud["phase"], &hud["health"]),
        (&"room".into(), &"playing".into(), &100.into())
    );
    assert_eq!(hud["players"].as_array().unwrap().len(), 4);

    // It walks where nothing is in the way, and the picture never jumps back.
    let middle = talk.own_at(0).map(|part| part - 24.0);
    let held = if middle[0] > 0.0 { Held::LEFT } else { Held::RIGHT };
    talk.page.controls(held, f32::NAN, f32::NAN, 0);
    talk.run(500);
    let moved: Vec<f32> =
        (0..20).map(|back| (talk.own_at(back)[0] - talk.own_at(back + 1)[0]).abs()).collect();
    let straight = moved.iter().all(|part| *part > 0.05 && *part < 0.12);
    assert!(straight || talk.own_at(0) == talk.own_at(1), "five tiles a second: {moved:?}");
    let room = &talk.diagnostics["room"];
    assert_eq!((&room["delay_ms"], &room["snaps"]), (&110.into(), &0.into()));
    assert!(room["bytes_per_second"].as_u64().unwrap() > 100, "{room}");
    assert!(room["reconciliation_ms"]["mean"].as_f64().unwrap() < 30.0, "{room}");
}

#[test]
fn a_page_shoots_and_builds_in_a_room_and_hears_it() {
    let mut talk = Conversation::new();
    talk.run(1_000);
    talk.page.press();
    talk.run(300);
    assert_ne!(talk.heard & ears::SHOT, 0, "an own shot is heard");
    let [x, y] = talk.own_at(0);
    let free = [[2.0, 0.0], [-2.0, 0.0], [0.0, 2.0], [0.0, -2.0]];
    let built = free.into_iter().any(|[dx, dy]| {
        talk.page.controls(0, x + dx, y + dy, 2);
        talk.run(300);
        let (_, frame) = talk.frames.last().unwrap();
        if !of_kind(frame, 6.0).iter().any(|shape| shape[7] == 0.0) {
            return false;
        }
        talk.page.press();
        talk.run(600);
        let (_, frame) = talk.frames.last().unwrap();
        of_kind(frame, 5.0).iter().any(|shape| shape[7] == 0.0)
    });
    assert!(built, "a crate stands");
    assert_ne!(talk.heard & ears::BUILT, 0);
    assert_eq!(talk.hud["builds"]["used"], 1);
    let ghost = talk.page.ghost();
    assert!(of_kind(&ghost, 5.0).iter().any(|shape| shape[7] == 0.0), "the host says so, too");
}

#[test]
fn a_page_without_a_scenario_starts_a_quick_room() {
    let options = |scenario: &str| {
        let json = format!(
            r#"{{"game":"arena","mode":"room","session":"den","name":"Ada","routes":["websocket"],"key":null,{scenario}
            "players":4,"bots":true,"listed":false,"watch":false,"unix_ms":1.8e12,"now_us":1e6,"random":"{}"}}"#,
            "07".repeat(32)
        );
        Options::from_json(&json).unwrap()
    };
    assert_eq!(setup(&options(""), 7), (Setup::quick(7, 4, true), 4));
    let (field, _) = setup(&options(r#""scenario":"field","#), 7);
    assert_eq!((field.points, field.rounds, field.bots), (3, false, QUICK_BOTS));
}

#[test]
fn a_page_sees_the_winner_of_a_round_and_waits_for_the_next() {
    let mut talk = Conversation::of("", &Setup { points: 1, ..Setup::quick(7, 4, true) });
    talk.run(1_000);
    assert!(talk.hud["shield"].as_f64().is_some_and(|seconds| seconds > 1.5), "{}", talk.hud);
    talk.run_until("who has won", |hud| hud["winner"].is_number());
    assert!(talk.hud["wait"].as_u64().is_some_and(|seconds| seconds >= 5), "{}", talk.hud);
    talk.run_until("the next round", |hud| hud["round"] == 2);
    assert_eq!((&talk.hud["winner"], &talk.hud["wait"]), (&Value::Null, &3.into()));
    // No avatar walks until it starts, and the page predicts that.
    talk.run(300);
    let at = talk.own_at(0);
    talk.page.controls(Held::LEFT | Held::UP, f32::NAN, f32::NAN, 0);
    talk.run(1_500);
    assert_eq!(talk.own_at(0), at);
    talk.run_until("that it has begun", |hud| hud["wait"] == 0);
    talk.page.controls(Held::RIGHT | Held::DOWN, f32::NAN, f32::NAN, 0);
    talk.run(1_000);
    assert_ne!(talk.own_at(0), at);
}

#[test]
fn a_page_is_told_its_identity_and_its_saved_characters() {
    let (old, new) = ("01".repeat(16), Token::from_bytes([2; 16]));
    let mut talk = Conversation::with(&format!(r#""token":"{old}","#));
    talk.run(1_500);
    assert_eq!(talk.tokens(), [Token::from_hex(&old)]);
    assert_eq!(talk.diagnostics["room"]["saved_ms"], Value::Null);
    // The encoding of a life in arena, and that of a life that has not started.
    let all = vec![("scout".into(), vec![1, 3, 2, 9]), ("smith".into(), vec![])];
    talk.say(&ToView::Token(new));
    talk.say(&ToView::Characters(Characters { active: "scout".into(), all }));
    talk.say(&ToView::Saved(Tick(30)));
    talk.run(500);
    let lives = json!([
        {"name": "scout", "life": {"kills": 3, "deaths": 2, "built": 9}},
        {"name": "smith", "life": {"kills": 0, "deaths": 0, "built": 0}},
    ]);
    let who = json!({"token": "02".repeat(16), "bad_token": null, "active": "scout", "characters": lives});
    assert_eq!(talk.who, who);
    let saved_ms = talk.diagnostics["room"]["saved_ms"].as_f64().unwrap();
    assert!((200.0..1_200.0).contains(&saved_ms), "{saved_ms}");
    talk.page.choose_character("smith");
    talk.run(100);
    assert_eq!(talk.said.last(), Some(&ToHost::Character("smith".into())));
    for player in talk.hud["players"].as_array().unwrap() {
        assert!(
            player["character"].is_string() && (player["bot"] == true || player["character"] == "scout"),
            "{player}"
        );
    }
}

#[test]
fn a_page_with_a_bad_token_gets_a_new_identity_and_an_error() {
    let mut talk = Conversation::with(&format!(r#""token":"{}","#, "01".repeat(16)));
    talk.run(500);
    talk.say(&ToView::Refused { why: "this token has expired".into(), bad_token: true });
    talk.run(500);
    assert_eq!(talk.tokens()[1..], [None]);
    assert_eq!(
        (&talk.who["token"], &talk.who["bad_token"]),
        (&Value::Null, &"this token has expired".into())
    );
}
