//! A packet filter below quinn on a native QUIC listener: packets of unproven clients never reach quinn, so it never
//! answers them.
//!
//! quinn would answer an unproven client's first packet with a handshake, an unknown version with a negotiation and an
//! unknown connection with a reset. Here a packet gets through only if
//! - it is a first packet whose connection id proves the passphrase, for the first time, from this address; or
//! - it comes from an address that has done so, and carries a connection id that this endpoint has issued.
//!
//! Likewise nothing is sent to an address that has not proven itself.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, ConnectionId, ConnectionIdGenerator, UdpPoller};
use quinn_proto::InvalidCid;
use sametick_wire::access::{CONNECTION_ID_LEN, Source};

use crate::clock::{Clock, random};
use crate::firsts::Firsts;
use crate::proof_journal::ProofJournal;
use crate::rate_limit::network;
use crate::tasks::Reporter;

/// QUIC version 1, the only one; other versions get no answer.
const VERSION_1: [u8; 4] = [0, 0, 0, 1];

/// A client's first datagram is at least this long (RFC 9000, 14.1).
const MIN_FIRST: usize = 1_200;

/// The connection ids that this endpoint issues: random, then a keyed hash.
const ISSUED_LEN: usize = 12;
const ISSUED_RANDOM: usize = 6;

/// A proven address that is silent is removed after this: longer than a connection lives without a packet, and than its
/// closing takes.
const FORGET_AFTER: Duration = Duration::from_secs(30);

/// How long a client may go on with the id of its first packet: it gives up by then.
const REPEAT_FOR: Duration = Duration::from_secs(5);

/// How many addresses may have sent a first packet and nothing more; then the oldest is dropped. Addresses may be
/// forged, and a client whose entry was dropped sends its first packet again.
const MAX_UNMET: usize = 4_096;

/// How often silent addresses are removed.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Connection ids that an endpoint issues: it recognises its own without storing them.
#[derive(Clone)]
pub(crate) struct Issuer {
    key: [u8; 32],
}

impl Issuer {
    pub fn new() -> Issuer {
        Issuer { key: random() }
    }

    fn mac(&self, random: &[u8]) -> [u8; ISSUED_LEN - ISSUED_RANDOM] {
        *blake3::keyed_hash(&self.key, random).as_bytes().first_chunk().expect("a hash is longer")
    }

    fn is_ours(&self, id: &[u8]) -> bool {
        id.len() == ISSUED_LEN && self.mac(&id[..ISSUED_RANDOM]) == id[ISSUED_RANDOM..]
    }
}

impl ConnectionIdGenerator for Issuer {
    fn generate_cid(&mut self) -> ConnectionId {
        let random: [u8; ISSUED_RANDOM] = random();
        ConnectionId::new(&[&random[..], &self.mac(&random)].concat())
    }

    /// quinn asks this only about ids it does not know, before it answers them with a reset. No reset is sent.
    fn validate(&self, _: &ConnectionId) -> Result<(), InvalidCid> {
        Err(InvalidCid)
    }

    fn cid_len(&self) -> usize {
        ISSUED_LEN
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// An address that has sent a good first packet.
struct Known {
    /// The connection id of its first packet, which the client repeats until it has one of ours; after that it is a
    /// replay.
    first: Option<[u8; CONNECTION_ID_LEN]>,
    since: Instant,
    heard_at: Instant,
    /// The client has used an id of ours, which proves that it receives at this address.
    is_met: bool,
}

struct Table {
    known: HashMap<SocketAddr, Known>,
    /// Unproven addresses, oldest first; some of them have been proven meanwhile.
    unmet: VecDeque<(SocketAddr, Instant)>,
    firsts: Firsts,
    looked_at: Instant,
}

impl Table {
    fn look(&mut self, now: Instant) {
        if now.duration_since(self.looked_at) > LOOK_EVERY {
            self.looked_at = now;
            self.known.retain(|_, known| now.duration_since(known.heard_at) < FORGET_AFTER);
            let known = &self.known;
            self.unmet
                .retain(|(from, since)| known.get(from).is_some_and(|known| known.is_unmet_since(*since)));
        }
    }

    /// Notes an address that has sent a good first packet.
    fn insert(&mut self, from: SocketAddr, first: [u8; CONNECTION_ID_LEN], now: Instant) {
        while self.unmet.len() >= MAX_UNMET
            && let Some((oldest, since)) = self.unmet.pop_front()
        {
            if self.known.get(&oldest).is_some_and(|known| known.is_unmet_since(since)) {
                self.known.remove(&oldest);
            }
        }
        // A known address that sends a new proof is a client that started again.
        let is_met = self.known.get(&from).is_some_and(|known| known.is_met);
        self.known.insert(from, Known { first: Some(first), since: now, heard_at: now, is_met });
        if !is_met {
            self.unmet.push_back((from, now));
        }
    }
}

impl Known {
    fn is_unmet_since(&self, since: Instant) -> bool {
        !self.is_met && self.since == since
    }
}

/// A UDP socket that drops the packets of unproven clients.
pub(crate) struct Filter {
    socket: Arc<dyn AsyncUdpSocket>,
    proofs: ProofJournal,
    issuer: Issuer,
    table: Mutex<Table>,
    clock: Clock,
    reporter: Reporter,
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl Filter {
    pub fn new(
        socket: Arc<dyn AsyncUdpSocket>,
        proofs: ProofJournal,
        issuer: Issuer,
        reporter: Reporter,
    ) -> Filter {
        let table = Table {
            known: HashMap::new(),
            unmet: VecDeque::new(),
            firsts: Firsts::default(),
            looked_at: Instant::now(),
        };
        Filter { socket, proofs, issuer, table: Mutex::new(table), clock: Clock::start(), reporter }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Whether a datagram may reach quinn.
    fn admits(&self, from: SocketAddr, datagram: &[u8], now: Instant) -> bool {
        let mut table = self.table();
        table.look(now);
        let Some(head) = Head::read(datagram) else { return false };
        if let Some(known) = table.known.get_mut(&from) {
            let ours = self.issuer.is_ours(head.id);
            if ours {
                known.first = None;
                known.is_met = true;
            }
            if now.duration_since(known.since) > REPEAT_FOR {
                known.first = None;
            }
            if ours || head.long && known.first.is_some_and(|first| first == head.id) {
                known.heard_at = now;
                return true;
            }
        }
        if !head.long || !head.initial || datagram.len() < MIN_FIRST {
            return false;
        }
        let Ok(first) = <[u8; CONNECTION_ID_LEN]>::try_from(head.id) else { return false };
        // A flood from a forged address must not use up the rate limit of that address.
        if !self.proofs.is_proof(&first) || !table.firsts.take(self.clock.now(), from.ip()) {
            return false;
        }
        if self.proofs.check_connection_id(Source::unproven(network(from.ip())), &first).is_err() {
            return false;
        }
        table.insert(from, first, now);
        true
    }

    /// Removes the datagrams that quinn must not see, keeping the rest in place.
    fn sift(&self, bufs: &[IoSliceMut<'_>], meta: &mut [RecvMeta]) {
        let now = Instant::now();
        for (buf, meta) in bufs.iter().zip(meta) {
            let whole = &buf[..meta.len.min(buf.len())];
            // Datagrams of one sender may arrive as one buffer; they are admitted or dropped as a whole.
            let mut datagrams = whole.chunks(meta.stride.max(1));
            if !datagrams.all(|datagram| self.admits(meta.addr, datagram, now)) {
                self.reporter.ignore();
                // quinn ignores an empty datagram.
                meta.len = 0;
                meta.stride = 0;
            }
        }
    }
}

impl AsyncUdpSocket for Filter {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.socket.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        if !self.table().known.contains_key(&transmit.destination) {
            return Ok(());
        }
        self.socket.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let polled = self.socket.poll_recv(cx, bufs, meta);
        if let Poll::Ready(Ok(count)) = polled {
            self.sift(&bufs[..count.min(bufs.len())], &mut meta[..count]);
        }
        polled
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.socket.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}

/// The part of a QUIC packet that is readable without keys.
struct Head<'a> {
    long: bool,
    initial: bool,
    id: &'a [u8],
}

impl<'a> Head<'a> {
    fn read(datagram: &'a [u8]) -> Option<Head<'a>> {
        let (first, rest) = datagram.split_first()?;
        // Always set: the server does not offer to grease it.
        if first & 0x40 == 0 {
            return None;
        }
        if first & 0x80 == 0 {
            return Some(Head { long: false, initial: false, id: rest.get(..ISSUED_LEN)? });
        }
        let (version, rest) = rest.split_first_chunk::<4>()?;
        let (len, rest) = rest.split_first()?;
        let id = rest.get(..usize::from(*len))?;
        (*version == VERSION_1).then_some(Head { long: true, initial: first & 0x30 == 0, id })
    }
}
