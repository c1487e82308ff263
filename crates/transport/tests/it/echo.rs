//! A server that echoes and a client that checks what comes back, over any transport.

use std::net::SocketAddr;
use std::sync::{Mutex, mpsc};
use std::thread::JoinHandle;

use sametick_sim::{BuildId, SchemaHash};
use sametick_transport::clock::Clock;
use sametick_transport::connection_slots::ConnectionSlots;
use sametick_transport::dial::{Locator, Scheme};
use sametick_transport::endpoint::Endpoint;
use sametick_transport::hub::{App, Ended, Event, Hub, Key, Links};
use sametick_transport::proof_journal::ProofJournal;
use sametick_transport::site::Origins;
use sametick_transport::tls::{Certificate, Purpose};
use sametick_transport::udp::UdpEndpoint;
use sametick_transport::websocket;
use sametick_transport::{quic, webtransport};
use sametick_wire::access::AccessKey;
use sametick_wire::hello::{Hello, Identity, Intent, Proven, Refusal};
use sametick_wire::{Channel, LinkStats, Time};

pub const LOCALHOST: &str = "127.0.0.1:0";

pub fn identity(build: u8, schema: u8) -> Identity {
    Identity { build: BuildId::from_bytes([build; 16]), schema: SchemaHash::from_bytes([schema; 32]) }
}

pub fn hello() -> Hello {
    Hello { identity: identity(1, 1), intent: Intent::Ping, name: "tester".into(), pass: None }
}

/// Answers every message with itself.
struct Echo {
    stop: mpsc::Receiver<()>,
    ended: mpsc::Sender<Ended>,
    /// Links that have asked for more than they will read.
    flooded: Vec<Key>,
    /// Links that have not joined.
    unjoined: Vec<Key>,
    /// Whether links join only when they ask for it.
    holds_back: bool,
    stopped: bool,
    wake_at: Time,
}

/// How often a server checks whether it should stop. Not a wait: no assertion depends on it.
const LOOK_EVERY_US: u64 = 5_000;

impl App for Echo {
    fn admit(&mut self, _: Time, _: Key, _: SocketAddr, proven: &Proven) -> Result<(), Refusal> {
        identity(1, 1).refusal(&proven.hello.identity).map_or(Ok(()), Err)
    }

    /// A link counts as joined unless it has sent that it has not.
    fn has_joined(&self, key: Key) -> bool {
        !self.unjoined.contains(&key)
    }

    fn handle(&mut self, now: Time, links: &mut Links, event: Event<'_>) {
        match event {
            Event::Message(key, Channel::Chat, b"close me") => links.close(key, 7, "as you wish"),
            Event::Message(key, Channel::Chat, b"flood me") => self.flooded.push(key),
            Event::Message(_, Channel::Chat, b"join me") => self.unjoined.clear(),
            Event::Message(key, channel, bytes) => links.send(key, channel, bytes).expect("there is room"),
            Event::Timeout => {
                for key in &self.flooded {
                    (0..64).for_each(|_| {
                        links.send(*key, Channel::State, &[7; 1_000]).expect("the newest wins");
                    });
                }
                self.wake_at = now.plus_micros(LOOK_EVERY_US);
                self.stopped = !matches!(self.stop.try_recv(), Err(mpsc::TryRecvError::Empty));
            }
            Event::Ended(key, ended, _) => {
                self.flooded.retain(|flooded| *flooded != key);
                let _ = self.ended.send(ended.clone());
            }
            Event::Opened(key) => self.unjoined.extend(self.holds_back.then_some(key)),
        }
    }

    fn wake_at(&self) -> Option<Time> {
        Some(self.wake_at)
    }

    fn is_done(&self) -> bool {
        self.stopped
    }
}

/// An echo server on all transports, in a thread of its own.
pub struct Server {
    pub locators: Vec<Locator>,
    /// How each of the server's links ended.
    pub ended: Mutex<mpsc::Receiver<Ended>>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Runs a future that is not `Send` on a runtime of its own.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

impl Server {
    pub fn start(proofs: ProofJournal) -> Server {
        Server::start_at(proofs, [LOCALHOST.parse().unwrap(); 5])
    }

    /// A server whose links join only on request.
    pub fn start_strict(proofs: ProofJournal) -> Server {
        Server::run(proofs, [LOCALHOST.parse().unwrap(); 5], true)
    }

    /// Listens on UDP, QUIC, WebSocket with and without TLS, and WebTransport.
    pub fn start_at(proofs: ProofJournal, at: [SocketAddr; 5]) -> Server {
        Server::run(proofs, at, false)
    }

    fn run(proofs: ProofJournal, at: [SocketAddr; 5], holds_back: bool) -> Server {
        let (stop, stopping) = mpsc::channel();
        let (ready, started) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            block_on(async {
                let certificate =
                    Certificate::self_signed(&["localhost".into(), "127.0.0.1".into()], Purpose::Browsers)
                        .unwrap();
                let origins =
                    Origins { allowed: vec!["https://friend.example".into()], ..Origins::default() };
                let endpoints: Vec<(Scheme, Box<dyn Endpoint>)> = vec![
                    (Scheme::Udp, Box::new(UdpEndpoint::listen(at[0], proofs.clone()).unwrap())),
                    (
                        Scheme::Quic,
                        Box::new(
                            quic::listen(at[1], proofs.clone(), &certificate, ConnectionSlots::default())
                                .unwrap(),
                        ),
                    ),
                    (Scheme::Ws, Box::new(websocket::listen(at[2], None, origins.clone()).await.unwrap())),
                    (
                        Scheme::Wss,
                        Box::new(
                            websocket::listen(at[3], Some(&certificate), origins.clone()).await.unwrap(),
                        ),
                    ),
                    (
                        Scheme::Wt,
                        Box::new(
                            webtransport::listen(at[4], &certificate, origins, ConnectionSlots::default())
                                .unwrap(),
                        ),
                    ),
                ];
                let mut hub = Hub::new(Clock::start(), Some(proofs));
                let locate = |(scheme, endpoint): &(Scheme, Box<dyn Endpoint>)| {
                    let addr = endpoint.local_addr().unwrap();
                    let cert = (*scheme != Scheme::Udp && *scheme != Scheme::Ws).then(|| certificate.hash());
                    Locator { scheme: *scheme, host: addr.ip().to_string(), port: addr.port(), cert }
                };
                ready.send(endpoints.iter().map(locate).collect()).unwrap();
                for (_, endpoint) in endpoints {
                    hub.add(endpoint);
                }
                hub.run(&mut Echo {
                    stop: stopping,
                    ended: end,
                    flooded: vec![],
                    unjoined: vec![],
                    holds_back,
                    stopped: false,
                    wake_at: Time::ZERO,
                })
                .await
                .unwrap();
            });
        });
        Server {
            locators: started.recv().unwrap(),
            ended: Mutex::new(ended),
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn open() -> Server {
        Server::start(ProofJournal::in_memory(AccessKey::open()))
    }

    pub fn locator(&self, scheme: Scheme) -> &Locator {
        self.locators.iter().find(|locator| locator.scheme == scheme).unwrap()
    }

    pub fn addr(&self, scheme: Scheme) -> SocketAddr {
        let locator = self.locator(scheme);
        SocketAddr::new(locator.host.parse().unwrap(), locator.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Err(panic) = self.thread.take().unwrap().join()
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

/// Sends messages when the link opens and ends when all have come back.
pub struct Client {
    pub send: Vec<(Channel, Vec<u8>)>,
    pub expect: usize,
    pub got: Vec<(Channel, Vec<u8>)>,
    pub ended: Option<Ended>,
    pub stats: Option<LinkStats>,
    closing: bool,
}

impl Client {
    pub fn new(send: Vec<(Channel, Vec<u8>)>) -> Client {
        let expect = send.len();
        Client { send, expect, got: vec![], ended: None, stats: None, closing: false }
    }
}

impl App for Client {
    fn admit(&mut self, _: Time, _: Key, _: SocketAddr, _: &Proven) -> Result<(), Refusal> {
        unreachable!("nobody calls a client")
    }

    fn handle(&mut self, _: Time, links: &mut Links, event: Event<'_>) {
        match event {
            Event::Opened(key) => {
                for (channel, message) in &self.send {
                    links.send(key, *channel, message).unwrap();
                }
            }
            Event::Message(key, channel, bytes) => {
                self.got.push((channel, bytes.to_vec()));
                if self.got.len() == self.expect && !self.closing {
                    self.closing = true;
                    links.close(key, 0, "done");
                }
            }
            Event::Ended(_, ended, stats) => {
                self.ended = Some(ended.clone());
                self.stats = stats;
            }
            Event::Timeout => {}
        }
    }

    fn wake_at(&self) -> Option<Time> {
        None
    }

    fn is_done(&self) -> bool {
        self.ended.is_some()
    }
}

/// Runs a client until its link has ended.
pub fn run_client(to: &Locator, key: &AccessKey, hello: &Hello, mut client: Client) -> Client {
    run_app(to, key, hello, &mut client);
    client
}

/// Runs any client until it is done, in a thread of its own, because the caller may be in a runtime.
pub fn run_app(to: &Locator, key: &AccessKey, hello: &Hello, app: &mut (impl App + Send)) {
    let run = || {
        block_on(async {
            let clock = Clock::start();
            let mut hub = Hub::new(clock, None);
            hub.add(to.dial(clock.now(), key, hello).await.unwrap());
            hub.run(app).await.unwrap();
        });
    };
    std::thread::scope(|scope| scope.spawn(run).join()).unwrap();
}
