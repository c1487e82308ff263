//! Benchmark of the relay's capacity: how many sessions of four players at 60 Hz it carries on one core, over real
//! sockets. The relay with its logs runs on one core, and light clients on the other.
//!
//! `cargo bench -p sametick --bench sessions` (about three minutes; `-- udp 100` measures one transport with one number
//! of sessions)
//!
//! The clients, with a socket each, need more of a processor than the relay, so the relay's core is not filled: its
//! capacity is computed from what it uses. A tick counts as missed if it was closed a whole tick late.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    missing_docs,
    reason = "a benchmark has clocks, threads and files"
)]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use postcard_schema::Schema;
use sametick::app::ServerApp;
use sametick::games::Games;
use sametick_lockstep::peer::{Input, JoinAs, Output, Peer};
use sametick_lockstep::relay::RelayConfig;
use sametick_sim::{BuildId, Game, Inputs, Rng, TickRate, Time, schema_hash_of};
use sametick_transport::clock::Clock;
use sametick_transport::connection_slots::ConnectionSlots;
use sametick_transport::dial::{Locator, Scheme};
use sametick_transport::endpoint::Endpoint;
use sametick_transport::hub::{App, Event, Hub, Key, Links};
use sametick_transport::proof_journal::ProofJournal;
use sametick_transport::site::Site;
use sametick_transport::udp::UdpEndpoint;
use sametick_transport::websocket;
use sametick_wire::access::AccessKey;
use sametick_wire::hello::{Hello, Identity, Intent, Proven, Refusal};
use serde::{Deserialize, Serialize};

const PLAYERS: usize = 4;

/// Sessions whose clients share a thread. An address may send 256 first packets at once, and 32 a second after that.
const BUNCH: usize = 50;
const BETWEEN_BUNCHES: Duration = Duration::from_secs(7);

/// The wait after the last bunch has joined; the measurement takes as long.
const SETTLE: Duration = Duration::from_secs(4);
const MEASURE: Duration = Duration::from_secs(10);

const CLIENTS: &str = "clients";

#[derive(Clone, Serialize, Deserialize, Schema)]
struct Plain {
    totals: [u64; PLAYERS],
}

impl Game for Plain {
    const NAME: &'static str = "plain";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = BuildId::from_bytes([4; 16]);
    type Setup = ();
    type Input = u8;

    fn new((): &()) -> Plain {
        Plain { totals: [0; PLAYERS] }
    }

    fn step(&mut self, inputs: &Inputs<u8>) {
        for row in inputs {
            let total = &mut self.totals[row.seat.index()];
            *total = total.rotate_left(5) ^ u64::from(*row.input_or(&0));
        }
    }
}

/// How late the relay was woken.
#[derive(Default)]
struct Lateness {
    wakes: AtomicU64,
    missed: AtomicU64,
    worst_us: AtomicU64,
}

/// The relay, with measurements around it.
struct Watched {
    app: ServerApp,
    lateness: Arc<Lateness>,
    done: Arc<AtomicBool>,
}

impl App for Watched {
    fn admit(&mut self, now: Time, key: Key, from: SocketAddr, proven: &Proven) -> Result<(), Refusal> {
        self.app.admit(now, key, from, proven)
    }

    fn enter(&mut self, now: Time, key: Key, from: SocketAddr, proven: &Proven) -> Result<(), Refusal> {
        self.app.enter(now, key, from, proven)
    }

    fn has_joined(&self, key: Key) -> bool {
        self.app.has_joined(key)
    }

    fn handle(&mut self, now: Time, links: &mut Links, event: Event<'_>) {
        if let (Event::Timeout, Some(due)) = (&event, self.app.wake_at()) {
            let late_us = now.micros_since(due);
            self.lateness.wakes.fetch_add(1, Ordering::Relaxed);
            let is_missed = late_us >= Plain::RATE.tick_micros();
            self.lateness.missed.fetch_add(u64::from(is_missed), Ordering::Relaxed);
            self.lateness.worst_us.fetch_max(late_us, Ordering::Relaxed);
        }
        self.app.handle(now, links, event);
    }

    fn wake_at(&self) -> Option<Time> {
        self.app.wake_at()
    }

    fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }
}

/// The players of many sessions.
struct Clients {
    players: Vec<(Key, Peer<Plain>, u8)>,
    numbers: HashMap<Key, usize>,
    wakes: BinaryHeap<Reverse<(Time, usize)>>,
    rng: Rng,
    buf: Vec<u8>,
    omissions: Arc<AtomicU64>,
    /// Links that ended. If there is any, the clients could not keep up and the measurement is void.
    lost: Arc<AtomicU64>,
    done: Arc<AtomicBool>,
}

impl Clients {
    fn open(&mut self, now: Time, key: Key, links: &Links) {
        let (seats, name, commit) = (PLAYERS as u16, "ada".into(), String::new());
        let join =
            JoinAs { setup: (), seed: 0, seats, wait_for: seats, name, commit, watch: false, listed: false };
        let peer = Peer::new(now, &join, links.stats(key).unwrap_or_default().into());
        self.numbers.insert(key, self.players.len());
        self.players.push((key, peer, 0));
    }

    fn drain(&mut self, now: Time, number: usize, links: &mut Links) {
        let Clients { players, wakes, rng, buf, .. } = self;
        let (key, peer, held) = &mut players[number];
        loop {
            let input = match peer.poll_output(buf) {
                Output::Send(channel) => {
                    // A link that has ended is counted when it reports that.
                    let _ = links.send(*key, channel, buf);
                    continue;
                }
                Output::WantInput(_) => {
                    *held ^= if rng.chance(5, 60) { 1 << rng.below(8) } else { 0 };
                    Input::Local(*held)
                }
                Output::WantPath => Input::Path(links.stats(*key).unwrap_or_default().into()),
                Output::WakeAt(at) => {
                    wakes.push(Reverse((at, number)));
                    return;
                }
                Output::Wait => return,
            };
            peer.handle(now, input).expect("own input");
        }
    }
}

impl App for Clients {
    fn admit(&mut self, _: Time, _: Key, _: SocketAddr, _: &Proven) -> Result<(), Refusal> {
        unreachable!("nobody calls a client")
    }

    fn handle(&mut self, now: Time, links: &mut Links, event: Event<'_>) {
        match event {
            Event::Opened(key) => {
                self.open(now, key, links);
                self.drain(now, self.players.len() - 1, links);
            }
            Event::Message(key, channel, bytes) => {
                let Some(number) = self.numbers.get(&key).copied() else { return };
                self.players[number]
                    .1
                    .handle(now, Input::Message(channel, bytes))
                    .expect("a relay's message");
                self.drain(now, number, links);
            }
            Event::Ended(..) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
            Event::Timeout => {
                while let Some(&Reverse((_, number))) = self.wakes.peek().filter(|wake| wake.0.0 <= now) {
                    self.wakes.pop();
                    self.players[number].1.handle(now, Input::Timeout).expect("time passes");
                    self.drain(now, number, links);
                }
            }
        }
        if self.is_done() {
            let omissions = self.players.iter().map(|(_, peer, _)| u64::from(peer.stats().omissions)).sum();
            self.omissions.fetch_add(omissions, Ordering::Relaxed);
        }
    }

    fn wake_at(&self) -> Option<Time> {
        self.wakes.peek().map(|wake| wake.0.0)
    }

    fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

fn start_relay(
    scheme: Scheme,
    data: &Path,
    lateness: &Arc<Lateness>,
    done: &Arc<AtomicBool>,
) -> (Locator, JoinHandle<()>) {
    let (ready, started) = std::sync::mpsc::channel();
    let (data, lateness, done) = (data.to_owned(), lateness.clone(), done.clone());
    let relay = std::thread::spawn(move || {
        pin(0);
        block_on(async {
            let keeper = ProofJournal::in_memory(AccessKey::open());
            let mut hub = Hub::new(Clock::start(), Some(keeper.clone()));
            let at: SocketAddr = "127.0.0.1:0".parse().expect("an address");
            let endpoint: Box<dyn Endpoint> = match scheme {
                Scheme::Udp => {
                    Box::new(UdpEndpoint::listen(at, keeper).expect("a port").with_max_links_each(usize::MAX))
                }
                _ => {
                    // All players come from this machine.
                    let site = Site { places: ConnectionSlots::of_each(usize::MAX), ..Site::default() };
                    Box::new(websocket::listen(at, None, site).await.expect("a port"))
                }
            };
            let port = endpoint.local_addr().expect("a bound socket").port();
            hub.add(endpoint);
            ready
                .send(Locator { scheme, host: "127.0.0.1".into(), port, cert: None })
                .expect("a client waits");
            let app = ServerApp::relay_only(RelayConfig::default(), &data, Games::default());
            let mut app = Watched { app, lateness, done };
            hub.run(&mut app).await.expect("sockets");
            app.app.close();
        });
    });
    (started.recv().expect("a relay"), relay)
}

fn start_clients(
    to: &Locator,
    sessions: std::ops::Range<usize>,
    [omissions, lost]: [&Arc<AtomicU64>; 2],
    done: &Arc<AtomicBool>,
) -> JoinHandle<()> {
    let (to, omissions, lost, done) = (to.clone(), omissions.clone(), lost.clone(), done.clone());
    let run = move || {
        pin(1);
        let mut clients = Clients {
            players: vec![],
            numbers: HashMap::new(),
            wakes: BinaryHeap::new(),
            rng: Rng::new(sessions.start as u64),
            buf: vec![],
            omissions,
            lost,
            done,
        };
        block_on(async {
            let clock = Clock::start();
            let mut hub = Hub::new(clock, None);
            let identity = Identity { build: Plain::BUILD, schema: schema_hash_of::<Plain>() };
            for number in sessions.flat_map(|session| [session; PLAYERS]) {
                let intent = Intent::Join { session: format!("den {number}") };
                let hello = Hello { identity, intent, name: "ada".into(), pass: None };
                hub.add(to.dial(clock.now(), &AccessKey::open(), &hello).await.expect("a socket"));
            }
            hub.run(&mut clients).await.expect("sockets");
        });
    };
    std::thread::Builder::new().name(CLIENTS.into()).spawn(run).expect("a thread")
}

/// The processor time of all threads except this one and the clients'.
fn server_cpu() -> Duration {
    let own = std::process::id().to_string();
    let mut total = 0;
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let read = |file: &str| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        if task.file_name().to_string_lossy() != own.as_str() && read("comm").trim() != CLIENTS {
            total += read("schedstat").split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    Duration::from_nanos(total)
}

fn pin(core: usize) {
    #[cfg(target_os = "linux")]
    {
        let mut set = nix::sched::CpuSet::new();
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let _ = set.set(core % cores);
        let _ = nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = core;
}

fn measure(scheme: Scheme, sessions: usize) {
    let data = std::env::temp_dir().join(format!("sametick-sessions-{}", std::process::id()));
    let [relay_done, clients_done] = [0; 2].map(|_| Arc::new(AtomicBool::new(false)));
    let lateness = Arc::new(Lateness::default());
    let [omissions, lost] = [0; 2].map(|count| Arc::new(AtomicU64::new(count)));
    let (to, relay) = start_relay(scheme, &data, &lateness, &relay_done);
    let mut clients = vec![];
    for first in (0..sessions).step_by(BUNCH) {
        if first > 0 {
            std::thread::sleep(BETWEEN_BUNCHES);
        }
        clients.push(start_clients(
            &to,
            first..sessions.min(first + BUNCH),
            [&omissions, &lost],
            &clients_done,
        ));
    }
    std::thread::sleep(SETTLE);
    let counts = || [&lateness.wakes, &lateness.missed].map(|count| count.load(Ordering::Relaxed));
    lateness.worst_us.store(0, Ordering::Relaxed);
    let (start, used, before) = (Instant::now(), server_cpu(), counts());
    std::thread::sleep(MEASURE);
    let (took, used, after) = (start.elapsed(), server_cpu() - used, counts());
    let lost = lost.load(Ordering::Relaxed);
    let worst_ms = lateness.worst_us.load(Ordering::Relaxed) as f64 / 1e3;
    clients_done.store(true, Ordering::Relaxed);
    clients.into_iter().for_each(|clients| clients.join().expect("clients"));
    relay_done.store(true, Ordering::Relaxed);
    // The relay is woken once more when the links time out; the benchmark does not wait for that.
    drop(relay);
    let _ = std::fs::remove_dir_all(&data);
    if lost > 0 {
        println!(
            "| {:4} | {sessions:>8} | the clients could not keep up: {lost} links lost |",
            scheme.name()
        );
        return;
    }
    let load = used.as_secs_f64() / took.as_secs_f64();
    let ticks = took.as_secs_f64() * 60.0 * sessions as f64;
    println!(
        "| {:4} | {sessions:>8} | {:>5.1} % | {:>9.1} | {:>9} | {worst_ms:>8.1} | {:>9} | {:>15.0} |",
        scheme.name(),
        load * 100.0,
        used.as_secs_f64() * 1e6 / ticks,
        after[1] - before[1],
        omissions.load(Ordering::Relaxed),
        sessions as f64 / load
    );
}

fn main() {
    println!(
        "|      | sessions | a core  | µs a tick | missed    | worst ms | omissions | sessions a core |"
    );
    println!(
        "|------|---------:|--------:|----------:|----------:|---------:|----------:|----------------:|"
    );
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let schemes = [Scheme::Udp, Scheme::Ws];
    for scheme in schemes.into_iter().filter(|it| words.first().is_none_or(|only| only == it.name())) {
        match words.get(1).and_then(|count| count.parse().ok()) {
            Some(sessions) => measure(scheme, sessions),
            None => [25, 50, 100].into_iter().for_each(|sessions| measure(scheme, sessions)),
        }
    }
}
