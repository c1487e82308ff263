//! Neither host nor view allocates per tick once all buffers have grown to their usual size.

use sametick_room::HostConfig;
use sametick_room::host::{self, Host};
use sametick_room::view::{self, JoinAs, View};
use sametick_sim::Time;
use sametick_wire::pacer::Path;
use sametick_wire::{Channel, Member};

use crate::field::{Field, Setup, Step};

/// A host and views with nothing in between, so that only they can allocate.
struct Direct {
    now: Time,
    host: Host<Field>,
    views: Vec<View<Field>>,
    buf: Vec<u8>,
    messages: u64,
}

impl Direct {
    fn new() -> Direct {
        let setup = Setup { seed: 4, stones: 80, drifters: 60, gusts: false };
        let join = JoinAs {
            name: "player".into(),
            commit: String::new(),
            setup: setup.clone(),
            seed: 4,
            seats: 8,
            watch: false,
            listed: false,
        };
        let path = Path { rtt_us: 1_000, ..Path::default() };
        Direct {
            now: Time::ZERO,
            host: Host::new(Time::ZERO, &setup, HostConfig::default()),
            views: (0..8).map(|_| View::new(Time::ZERO, &join, path)).collect(),
            buf: Vec::new(),
            messages: 0,
        }
    }

    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now = self.now.plus_micros(1_000);
            self.host.handle(self.now, host::Input::Timeout);
            loop {
                match self.host.poll_output(&mut self.buf) {
                    host::Output::Send(member, channel) => {
                        self.messages += 1;
                        let view = &mut self.views[member.0 as usize];
                        view.handle(self.now, view::Input::Message(channel, &self.buf)).unwrap();
                    }
                    host::Output::WakeAt(_) => break,
                    _ => {}
                }
            }
            for index in 0..self.views.len() {
                self.run_view(index);
            }
        }
    }

    fn run_view(&mut self, index: usize) {
        let (now, view) = (self.now, &mut self.views[index]);
        view.handle(now, view::Input::Timeout).unwrap();
        view.look(now);
        while view.poll_event().is_some() {}
        loop {
            match view.poll_output(&mut self.buf) {
                view::Output::Send(channel) => {
                    let message = host::Input::Message(Member(index as u64), channel, &self.buf);
                    self.host.handle(now, message);
                    self.messages += u64::from(channel != Channel::Control);
                }
                view::Output::WantInput(tick) => {
                    let turn = (tick.0 / 15 + index as u32) % 9;
                    let (dx, dy) = ((turn % 3) as i8 - 1, (turn / 3) as i8 - 1);
                    let step = Step { dx, dy, shout: false, place: 0 };
                    view.handle(now, view::Input::Local(step)).unwrap();
                }
                view::Output::WantPath => {
                    let path = Path { rtt_us: 1_000, ..Path::default() };
                    view.handle(now, view::Input::Path(path)).unwrap();
                }
                view::Output::WakeAt(_) | view::Output::Wait => break,
            }
        }
    }
}

#[test]
fn a_minute_of_a_busy_room_allocates_only_to_grow() {
    let mut direct = Direct::new();
    direct.run(20_000);
    let before = direct.messages;
    let minute = allocation_counter::measure(|| direct.run(60_000));
    let messages = direct.messages - before;
    println!("{} allocations for {messages} messages", minute.count_total);
    assert!(messages > 15_000, "{messages}");
    // A few tables reach a new maximum size; per message there are no allocations.
    assert!(minute.count_total < messages / 100, "{} allocations", minute.count_total);
}
