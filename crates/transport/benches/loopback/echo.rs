//! Request and answer, a server and a client on a core each: whole links through hubs, against raw sockets.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sametick_transport::clock::Clock;
use sametick_transport::connection_slots::ConnectionSlots;
use sametick_transport::dial::{Locator, Scheme};
use sametick_transport::endpoint::Endpoint;
use sametick_transport::hub::{App, Event, Hub, Key, Links};
use sametick_transport::proof_journal::ProofJournal;
use sametick_transport::site::Origins;
use sametick_transport::tls::{Certificate, Purpose};
use sametick_transport::udp::UdpEndpoint;
use sametick_transport::websocket;
use sametick_transport::{quic, webtransport};
use sametick_wire::access::AccessKey;
use sametick_wire::hello::{Hello, Identity, Intent, Proven, Refusal};
use sametick_wire::{BuildId, Channel, SchemaHash, Time};

use crate::raw::Raw;
use crate::{Cpu, FLYING, MEASURE, MESSAGE, line, pin, table};

/// Echoes of each connection; a WebSocket may send 600 messages at once before it is slowed down.
const ECHOES: usize = 2_000;
const WEBSOCKET_ECHOES: usize = 550;

/// How many clients connect one after the other. Fewer than the burst of first packets of an address.
const HANDSHAKES: usize = 100;

pub fn hello() -> Hello {
    let identity = Identity { build: BuildId::from_bytes([0; 16]), schema: SchemaHash::from_bytes([0; 32]) };
    Hello { identity, intent: Intent::Ping, name: String::new(), pass: None }
}

/// Echoes a second, and the server thread's CPU time for each.
struct Figures {
    per_second: f64,
    server_ns: f64,
}

pub fn report(only: Option<&str>) {
    println!("\n| {:44} | a second   | server ns | ratio |", "request and answer, a core each");
    println!("|{:-<46}|-----------:|----------:|------:|", "");
    let raw = raw_echo(Raw::echo_one_by_one);
    let print = |what: &str, Figures { per_second, server_ns }: Figures| {
        let ratio = raw.server_ns / server_ns;
        println!("| {what:44} | {per_second:>10.0} | {server_ns:>9.0} | {ratio:>5.2} |");
    };
    print("raw: one packet a call", Figures { ..raw });
    #[cfg(target_os = "linux")]
    print("raw: the server in batches", raw_echo(Raw::echo_in_batches));
    let (mut server, cpu) = start();
    server.retain(|to| only.is_none_or(|only| to.scheme.name() == only));
    for to in &server {
        print(&format!("{}: {FLYING} links", to.scheme.name()), echo(to, &cpu));
    }
    table("handshakes, one after the other");
    let mut reference = None;
    for to in &server {
        let per_second = handshakes(to);
        line(to.scheme.name(), per_second, *reference.get_or_insert(per_second));
    }
}

fn raw_echo(serve: fn(&mut Raw)) -> Figures {
    let (ready, started) = std::sync::mpsc::channel();
    let serving = std::thread::spawn(move || {
        pin(0);
        let mut server = Raw::new();
        ready.send((server.addr(), Cpu::here())).unwrap();
        serve(&mut server);
    });
    let (to, cpu) = started.recv().unwrap();
    pin(1);
    let mut client = Raw::new();
    client.send_one_by_one(to, &[7; MESSAGE]);
    let (start, used, mut echoes) = (Instant::now(), cpu.used(), 0);
    while start.elapsed() < MEASURE {
        let (len, _) = client.socket.recv_from(&mut client.buffer).unwrap();
        client.socket.send_to(&client.buffer[..len], to).unwrap();
        echoes += 1;
    }
    let (took, used, echoes) = (start.elapsed(), cpu.used() - used, f64::from(echoes));
    drop(client);
    serving.join().unwrap();
    Figures { per_second: echoes / took.as_secs_f64(), server_ns: used.as_nanos() as f64 / echoes }
}

/// Starts an echo server on every transport, which runs until the program ends.
fn start() -> (Vec<Locator>, Cpu) {
    let (ready, started) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        pin(0);
        block_on(async {
            let proofs = ProofJournal::in_memory(AccessKey::open());
            let mut hub = Hub::new(Clock::start(), Some(proofs.clone()));
            ready.send((listen(&mut hub, proofs).await, Cpu::here())).unwrap();
            hub.run(&mut Echo).await.unwrap();
        });
    });
    started.recv().unwrap()
}

async fn listen(hub: &mut Hub, proofs: ProofJournal) -> Vec<Locator> {
    let certificate = Certificate::self_signed(&["localhost".into()], Purpose::Browsers).unwrap();
    let at: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let wss = websocket::listen(at, Some(&certificate), Origins::default()).await.unwrap();
    let endpoints: [(Scheme, Box<dyn Endpoint>); 5] = [
        (Scheme::Udp, Box::new(UdpEndpoint::listen(at, proofs.clone()).unwrap())),
        (Scheme::Quic, Box::new(quic::listen(at, proofs, &certificate, ConnectionSlots::default()).unwrap())),
        (Scheme::Ws, Box::new(websocket::listen(at, None, Origins::default()).await.unwrap())),
        (Scheme::Wss, Box::new(wss)),
        (
            Scheme::Wt,
            Box::new(
                webtransport::listen(at, &certificate, Origins::default(), ConnectionSlots::default())
                    .unwrap(),
            ),
        ),
    ];
    let locate = |(scheme, endpoint): (Scheme, Box<dyn Endpoint>)| {
        let port = endpoint.local_addr().unwrap().port();
        hub.add(endpoint);
        let cert = (!matches!(scheme, Scheme::Udp | Scheme::Ws)).then(|| certificate.hash());
        Locator { scheme, host: "127.0.0.1".into(), port, cert }
    };
    endpoints.into_iter().map(locate).collect()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

struct Echo;

impl App for Echo {
    fn admit(&mut self, _: Time, _: Key, _: SocketAddr, _: &Proven) -> Result<(), Refusal> {
        Ok(())
    }

    fn has_joined(&self, _: Key) -> bool {
        true
    }

    fn handle(&mut self, _: Time, links: &mut Links, event: Event<'_>) {
        if let Event::Message(key, channel, bytes) = event {
            let _ = links.send(key, channel, bytes);
        }
    }

    fn wake_at(&self) -> Option<Time> {
        None
    }
}

/// Sends a message on each link, and again whenever one comes back.
#[derive(Default)]
struct Asker<'a> {
    cpu: Option<&'a Cpu>,
    opened: usize,
    /// When all links were open, and what the server had used by then.
    began: Option<(Instant, Duration)>,
    echoes: usize,
    want: usize,
    keys: Vec<Key>,
}

impl App for Asker<'_> {
    fn admit(&mut self, _: Time, _: Key, _: SocketAddr, _: &Proven) -> Result<(), Refusal> {
        unreachable!("nobody calls a client")
    }

    fn handle(&mut self, _: Time, links: &mut Links, event: Event<'_>) {
        match event {
            Event::Opened(key) => self.keys.push(key),
            Event::Message(key, ..) => {
                self.echoes += 1;
                links.send(key, Channel::State, &[7; MESSAGE]).unwrap();
            }
            Event::Ended(_, ended, _) => panic!("{ended}"),
            Event::Timeout => {}
        }
        if self.keys.len() == self.opened && self.began.is_none() {
            self.began = Some((Instant::now(), self.cpu.map(Cpu::used).unwrap_or_default()));
            for key in &self.keys {
                links.send(*key, Channel::State, &[7; MESSAGE]).unwrap();
            }
        }
    }

    fn wake_at(&self) -> Option<Time> {
        None
    }

    fn is_done(&self) -> bool {
        self.echoes >= self.want
    }
}

fn echo(to: &Locator, cpu: &Cpu) -> Figures {
    pin(1);
    let each = if matches!(to.scheme, Scheme::Ws | Scheme::Wss) { WEBSOCKET_ECHOES } else { ECHOES };
    let mut app = Asker { cpu: Some(cpu), opened: FLYING, want: FLYING * each, ..Asker::default() };
    block_on(async {
        let clock = Clock::start();
        let mut hub = Hub::new(clock, None);
        for _ in 0..FLYING {
            hub.add(to.dial(clock.now(), &AccessKey::open(), &hello()).await.unwrap());
        }
        hub.run(&mut app).await.unwrap();
    });
    let ((began, used), echoes) = (app.began.unwrap(), app.echoes as f64);
    let (took, used) = (began.elapsed(), cpu.used() - used);
    Figures { per_second: echoes / took.as_secs_f64(), server_ns: used.as_nanos() as f64 / echoes }
}

fn handshakes(to: &Locator) -> f64 {
    let start = Instant::now();
    for _ in 0..HANDSHAKES {
        let mut app = Asker { opened: 1, want: 1, ..Asker::default() };
        block_on(async {
            let clock = Clock::start();
            let mut hub = Hub::new(clock, None);
            hub.add(to.dial(clock.now(), &AccessKey::open(), &hello()).await.unwrap());
            hub.run(&mut app).await.unwrap();
        });
    }
    HANDSHAKES as f64 / start.elapsed().as_secs_f64()
}
