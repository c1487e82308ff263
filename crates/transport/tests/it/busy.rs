//! An overloaded application still reads its messages.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use sametick_transport::clock::Clock;
use sametick_transport::endpoint::{Arrival, Endpoint, LinkId, RawEvent, RawMessage};
use sametick_transport::hub::{App, Event, Hub, Key, Links};
use sametick_transport::site::Site;
use sametick_transport::websocket;
use sametick_wire::hello::{Proven, Refusal};
use sametick_wire::{Carrier, LaneId, Time};
use tokio_tungstenite::tungstenite::protocol::WebSocket;

use crate::echo::{LOCALHOST, block_on};
use crate::raw_sockets::Rooms;

/// How many messages wait, and how long the application is busy for each timer.
const MESSAGES: u32 = 1_000;
const BUSY: Duration = Duration::from_millis(4);

/// Passes on a message at each poll.
struct Crowd {
    left: u32,
}

impl Endpoint for Crowd {
    fn carrier(&self) -> Carrier {
        Carrier::Stream
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn poll(
        &mut self,
        _: &mut Context<'_>,
        _: Time,
        sink: &mut dyn FnMut(Arrival<'_>),
    ) -> Poll<io::Result<()>> {
        let event = match self.left {
            0 => return Poll::Pending,
            MESSAGES => RawEvent::Began { from: ([127, 0, 0, 1], 1).into(), target: "/".into() },
            _ => RawEvent::Said(RawMessage::Text("hear me".into())),
        };
        self.left -= 1;
        sink(Arrival::Raw { link: LinkId(1), event });
        Poll::Ready(Ok(()))
    }

    fn answer(&mut self, _: LinkId, _: &[u8], _: bool) {}

    fn send_datagram(&mut self, _: LinkId, _: &[u8]) {}

    fn send_stream(&mut self, _: LinkId, _: LaneId, _: &[u8]) {}

    fn drop_link(&mut self, _: LinkId) {}
}

/// A timer is always due, and its handling takes time.
#[derive(Default)]
struct Busy {
    turns: u32,
    heard: u32,
}

impl App for Busy {
    fn admit(&mut self, _: Time, _: Key, _: SocketAddr, _: &Proven) -> Result<(), Refusal> {
        Ok(())
    }

    fn handle(&mut self, _: Time, _: &mut Links, event: Event<'_>) {
        if let Event::Timeout = event {
            self.turns += 1;
            let began = Instant::now();
            while began.elapsed() < BUSY {
                std::hint::spin_loop();
            }
        }
    }

    fn on_raw(&mut self, _: Time, _: &mut Links, _: Key, _: RawEvent) {
        self.heard += 1;
    }

    fn wake_at(&self) -> Option<Time> {
        Some(Time::ZERO)
    }

    fn is_done(&self) -> bool {
        self.heard == MESSAGES
    }
}

#[test]
fn due_timers_leave_time_to_read_messages() {
    let mut app = Busy::default();
    block_on(async {
        let mut hub = Hub::new(Clock::start(), None);
        hub.add(Box::new(Crowd { left: MESSAGES }));
        hub.run(&mut app).await.unwrap();
    });
    assert!(app.turns < MESSAGES / 4, "heard {} messages in {} turns", app.heard, app.turns);
}

/// A timer is always due; in one of the turns a client sends a message.
struct Interrupted {
    connected: mpsc::Receiver<WebSocket<TcpStream>>,
    client: Option<WebSocket<TcpStream>>,
    turns: u32,
    said_in: u32,
    heard_in: Option<u32>,
}

impl App for Interrupted {
    fn admit(&mut self, _: Time, _: Key, _: SocketAddr, _: &Proven) -> Result<(), Refusal> {
        Ok(())
    }

    fn handle(&mut self, _: Time, _: &mut Links, event: Event<'_>) {
        let Event::Timeout = event else { return };
        self.turns += 1;
        if let Ok(mut client) = self.connected.try_recv() {
            // The hub's socket has it when this returns.
            client.send("hear me".into()).unwrap();
            self.client = Some(client);
            self.said_in = self.turns;
        }
    }

    fn on_raw(&mut self, _: Time, _: &mut Links, _: Key, event: RawEvent) {
        if let RawEvent::Said(_) = event {
            self.heard_in = Some(self.turns);
        }
    }

    fn wake_at(&self) -> Option<Time> {
        Some(Time::ZERO)
    }

    fn is_done(&self) -> bool {
        self.heard_in.is_some()
    }
}

#[test]
fn messages_during_a_turn_are_read_before_the_next() {
    let (sender, connected) = mpsc::channel();
    let mut app = Interrupted { connected, client: None, turns: 0, said_in: 0, heard_in: None };
    block_on(async {
        let site = Site { pages: Some(Arc::new(Rooms)), ..Site::default() };
        let endpoint = websocket::listen(LOCALHOST.parse().unwrap(), None, site).await.unwrap();
        let addr = endpoint.local_addr().unwrap();
        std::thread::spawn(move || {
            let stream = TcpStream::connect(addr).unwrap();
            let url = format!("ws://{addr}/talk");
            let (socket, _) = tokio_tungstenite::tungstenite::client(url, stream).unwrap();
            sender.send(socket).unwrap();
        });
        let mut hub = Hub::new(Clock::start(), None);
        hub.add(Box::new(endpoint));
        hub.run(&mut app).await.unwrap();
    });
    assert_eq!(app.heard_in, Some(app.said_in));
}
