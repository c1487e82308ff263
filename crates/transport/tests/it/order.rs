//! Arrivals of one poll reach the application in order, and an idle hub sleeps.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use sametick_transport::clock::Clock;
use sametick_transport::endpoint::{Arrival, CALL, Endpoint, Gone, LinkId};
use sametick_transport::hub::{App, Event, Hub, Key, Links};
use sametick_transport::hub_waker::HubWaker;
use sametick_wire::hello::{Answer, Proven, Refusal};
use sametick_wire::{Carrier, Channel, LaneId, Link, Output, Time};

use crate::echo::block_on;

/// Passes on all its arrivals at the first poll, and returns that there were none.
struct Scripted {
    lane_bytes: Option<Vec<u8>>,
    polls: Rc<Cell<u32>>,
}

impl Endpoint for Scripted {
    fn carrier(&self) -> Carrier {
        Carrier::Stream
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::from(([127, 0, 0, 1], 1)))
    }

    fn poll(
        &mut self,
        _: &mut Context<'_>,
        _: Time,
        sink: &mut dyn FnMut(Arrival<'_>),
    ) -> Poll<io::Result<()>> {
        self.polls.set(self.polls.get() + 1);
        if let Some(bytes) = self.lane_bytes.take() {
            sink(Arrival::Answer { link: CALL, bytes: &Answer::Welcome.to_bytes() });
            sink(Arrival::Stream { link: CALL, lane: LaneId(0), bytes: &bytes });
            sink(Arrival::Gone { link: CALL, why: Gone::Closed });
        }
        Poll::Pending
    }

    fn answer(&mut self, _: LinkId, _: &[u8], _: bool) {}

    fn send_datagram(&mut self, _: LinkId, _: &[u8]) {}

    fn send_stream(&mut self, _: LinkId, _: LaneId, _: &[u8]) {}

    fn drop_link(&mut self, _: LinkId) {}
}

#[derive(Default)]
struct Told(Vec<String>);

impl App for Told {
    fn admit(&mut self, _: Time, _: Key, _: SocketAddr, _: &Proven) -> Result<(), Refusal> {
        unreachable!("nobody calls a client")
    }

    fn handle(&mut self, _: Time, _: &mut Links, event: Event<'_>) {
        self.0.push(match event {
            Event::Opened(_) => "opened".into(),
            Event::Message(_, channel, bytes) => format!("{channel:?} {}", String::from_utf8_lossy(bytes)),
            Event::Ended(_, ended, _) => ended.to_string(),
            Event::Timeout => "time".into(),
        });
    }

    fn wake_at(&self) -> Option<Time> {
        None
    }

    fn is_done(&self) -> bool {
        self.0.iter().any(|told| told.contains("closed"))
    }
}

#[test]
fn messages_directly_after_the_answer_are_read() {
    let mut link = Link::new(Time::ZERO, Carrier::Stream);
    link.send(Time::ZERO, Channel::Chat, b"welcome, friend").unwrap();
    let mut bytes = vec![];
    assert_eq!(link.poll_output(&mut bytes), Output::Stream(LaneId(0)));
    let mut told = Told::default();
    block_on(async {
        let mut hub = Hub::new(Clock::start(), None);
        hub.add(Box::new(Scripted { lane_bytes: Some(bytes), polls: Rc::default() }));
        tokio::time::timeout(Duration::from_secs(10), hub.run(&mut told)).await.unwrap().unwrap();
    });
    assert_eq!(told.0, ["opened", "Chat welcome, friend", "the other side closed the connection"]);
}

#[test]
fn a_hub_with_nothing_to_wait_for_sleeps() {
    let polls = Rc::new(Cell::new(0));
    block_on(async {
        let mut hub = Hub::new(Clock::start(), None);
        hub.add(Box::new(Scripted { lane_bytes: None, polls: polls.clone() }));
        let mut told = Told::default();
        let rest = tokio::time::timeout(Duration::from_millis(50), hub.run(&mut told));
        assert!(rest.await.is_err(), "it runs on");
    });
    assert!(polls.get() < 10, "{} polls", polls.get());
}

/// Has no timer, and is done when it was called so often.
#[derive(Default)]
struct Sleeper {
    calls: u32,
    wanted: u32,
}

impl App for Sleeper {
    fn admit(&mut self, _: Time, _: Key, _: SocketAddr, _: &Proven) -> Result<(), Refusal> {
        unreachable!("nobody calls")
    }

    fn handle(&mut self, _: Time, _: &mut Links, event: Event<'_>) {
        assert!(matches!(event, Event::Timeout));
        self.calls += 1;
    }

    fn wake_at(&self) -> Option<Time> {
        None
    }

    fn is_done(&self) -> bool {
        self.calls >= self.wanted
    }
}

#[test]
fn rings_from_another_thread_are_handled_once() {
    let bell = HubWaker::default();
    let mut hub = Hub::new(Clock::start(), None);
    hub.set_waker(bell.clone());
    // Rings before the hub runs: they are handled once as soon as it does.
    (0..3).for_each(|_| bell.ring());
    let mut app = Sleeper { calls: 0, wanted: 1 };
    block_on(async { hub.run(&mut app).await.unwrap() });
    assert_eq!(app.calls, 1);
    // Rings while it sleeps.
    let mut app = Sleeper { calls: 0, wanted: 1 };
    let ringer = std::thread::spawn(move || bell.ring());
    block_on(async { hub.run(&mut app).await.unwrap() });
    assert_eq!(app.calls, 1);
    ringer.join().unwrap();
}
