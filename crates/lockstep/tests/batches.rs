//! Inputs that wait to be sent together keep their ticks when inputs between them are skipped.

use postcard_schema::Schema;
use sametick_lockstep::message::{self, About, Claim, ToPeer, put_ticks, read_inputs};
use sametick_lockstep::peer::{Input, JoinAs, Output, Peer};
use sametick_lockstep::rows::{Opaque, Table};
use sametick_sim::{BuildId, Game, Inputs, Seat, Tick, TickRate, Time, to_canonical};
use sametick_wire::Channel;
use sametick_wire::pacer::Path;
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize, Schema)]
struct Count(u32);

impl Game for Count {
    const NAME: &'static str = "count";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = BuildId::from_bytes([7; 16]);
    type Setup = ();
    type Input = u32;

    fn new((): &()) -> Count {
        Count(0)
    }

    fn step(&mut self, _: &Inputs<u32>) {
        self.0 += 1;
    }
}

/// Runs the peer until `until`, each input being the number of its tick; checks every input that it sends.
fn run(peer: &mut Peer<Count>, path: Path, now: &mut Time, until: Time, sent: &mut u32) {
    let mut buf = vec![];
    while *now <= until {
        match peer.poll_output(&mut buf) {
            Output::Send(Channel::Input) => read_inputs(&buf, Tick(1), |tick, input| {
                assert_eq!(input.as_bytes(), to_canonical(&tick.0).unwrap(), "the input of tick {tick}");
                *sent += 1;
            })
            .unwrap(),
            Output::Send(_) => {}
            Output::WantInput(tick) => peer.handle(*now, Input::Local(tick.0)).unwrap(),
            Output::WantPath => peer.handle(*now, Input::Path(path)).unwrap(),
            Output::WakeAt(at) if at <= until => {
                *now = at;
                peer.handle(*now, Input::Timeout).unwrap();
            }
            Output::WakeAt(_) | Output::Wait => return,
        }
    }
}

#[test]
fn inputs_keep_their_ticks_when_others_are_left_out() {
    // Long and without losses, so that several inputs go into one message.
    let path = Path { rtt_us: 600_000, sent: 5_000, expected: 5_000, received: 5_000, ..Path::default() };
    for ms in 0..70 {
        let mut now = Time::ZERO;
        let (name, commit) = (String::new(), String::new());
        let join =
            JoinAs { setup: (), seed: 0, seats: 1, wait_for: 1, name, commit, watch: false, listed: false };
        let mut peer = Peer::<Count>::new(now, &join, Path::default());
        peer.handle(now, Input::Path(path)).unwrap();
        let claim = Claim {
            run: 1,
            member: 0,
            seat: None,
            since: Tick::ZERO,
            restarts: 0,
            from: Tick::ZERO,
            token: [9; 16],
        };
        let welcome = ToPeer::Welcome {
            seat: Some(Seat(0)),
            closed: Tick(0),
            first: Tick(1),
            age_us: 0,
            setup: vec![],
            rate: 60,
            claim,
            save: None,
            about: About::default(),
        };
        peer.handle(now, Input::Message(Channel::Control, &message::to_bytes(&welcome))).unwrap();
        let mut sent = 0;
        run(&mut peer, path, &mut now, Time::from_millis(100 + ms), &mut sent);
        // The relay is further than this peer has ever been.
        let (mut table, mut tick) = (Table::default(), Tick(0));
        while tick < Tick(100) {
            let rows = (0..50).map(|row| {
                let mut rows = Inputs::new();
                rows.omit(Seat(0));
                if tick.0 + row == 0 {
                    rows.join(Seat(0));
                }
                rows
            });
            let (rows, mut bytes): (Vec<Inputs<Opaque>>, _) = (rows.collect(), vec![]);
            put_ticks(&mut bytes, tick.next(), &mut table, rows.iter());
            peer.handle(now, Input::Message(Channel::Input, &bytes)).unwrap();
            tick += 50;
        }
        let until = now.plus_micros(200_000);
        run(&mut peer, path, &mut now, until, &mut sent);
        assert!(sent > 5, "{sent}");
    }
}
