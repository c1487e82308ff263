//! Raw UDP: the fewest bytes and system calls per packet. Encrypted and authenticated by [`crate::noise`]; clients
//! without the passphrase get no answer.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll};

use sametick_wire::{Carrier, LaneId, Time};
use tokio::net::UdpSocket;

use crate::batch::{Outgoing, Received};
use crate::endpoint::{Arrival, CALL, Endpoint, EndpointStats, Gone, LinkId};
use crate::firsts::Firsts;
use crate::noise::{Called, Calling, FirstTag, Psk, Seal, Stranger};
use crate::proof_journal::ProofJournal;
use crate::rate_limit::network;

/// The kernel's buffers: a tenth of a second of a full 100 Mbit/s.
const SOCKET_BUFFER: usize = 4 << 20;

/// How many links one socket carries.
pub const MAX_LINKS: usize = 20_000;

/// How many of them one address may have, for IPv6 one network.
pub const MAX_LINKS_EACH: usize = 512;

/// When a client repeats its first packet, counted from the start; then it gives up.
const RETRY_AT_MS: [u64; 8] = [100, 250, 500, 900, 1_400, 2_000, 3_000, 4_000];
const GIVE_UP_AT_MS: u64 = 5_000;

/// The last answers that opened no link, sent again for a repeated first packet.
const KEPT_REFUSALS: usize = 64;

/// First packets that are remembered by their tag, so that a replay costs one hash, and nothing of its address's rate
/// limit. Forgetting one is harmless: the proof journal remembers for as long as it must.
const MAX_SEEN: usize = 32_768;

/// Receive errors in a row after which the socket is given up: a shortage of memory passes.
const MAX_ERRORS: u32 = 100;

/// A link that has been answered.
struct Peer {
    link: LinkId,
    seal: Seal,
}

/// A link whose client has not shown that our answer arrived: its address may be forged.
struct Fresh {
    peer: Peer,
    repeat: Repeat,
}

/// A first packet, and the answer to its repeats, for as long as a client would try.
struct Repeat {
    first: Vec<u8>,
    answer: Vec<u8>,
    until: Time,
}

impl Repeat {
    fn is_of(&self, now: Time, packet: &[u8]) -> bool {
        now < self.until && self.first == packet
    }
}

/// A first packet that is unanswered.
struct Caller {
    from: SocketAddr,
    called: Called,
    first: Vec<u8>,
    since: Time,
}

/// Our own first packet and its retries.
struct Call {
    to: SocketAddr,
    calling: Calling,
    since: Time,
    tries: usize,
}

impl Call {
    fn next_at(&self) -> Time {
        self.since.plus_micros(RETRY_AT_MS.get(self.tries).unwrap_or(&GIVE_UP_AT_MS) * 1_000)
    }
}

/// The keys of a server's passphrase that check first packets.
struct Guard {
    proofs: ProofJournal,
    psk: Psk,
    generation: u64,
    seen: Seen,
}

impl Guard {
    fn new(proofs: ProofJournal) -> Guard {
        Guard { psk: Psk::new(&proofs.key()), generation: proofs.generation(), proofs, seen: Seen::default() }
    }

    /// Whether this is a first packet that was not accepted before.
    fn check(&mut self, packet: &[u8]) -> Result<FirstTag, Stranger> {
        let generation = self.proofs.generation();
        if self.generation != generation {
            self.generation = generation;
            self.psk = Psk::new(&self.proofs.key());
        }
        let tag = self.psk.check_first(packet)?;
        if self.seen.contains(tag) { Err(Stranger) } else { Ok(tag) }
    }

    /// Accepts it.
    fn take(&mut self, tag: FirstTag, packet: &[u8]) -> Result<(Called, Vec<u8>), Stranger> {
        self.seen.note(tag);
        Called::new(&self.psk, packet)
    }
}

/// The tags of recent first packets, in two generations.
#[derive(Default)]
struct Seen {
    new: HashSet<FirstTag>,
    old: HashSet<FirstTag>,
}

impl Seen {
    fn contains(&self, tag: FirstTag) -> bool {
        self.new.contains(&tag) || self.old.contains(&tag)
    }

    fn note(&mut self, tag: FirstTag) {
        if self.new.len() >= MAX_SEEN / 2 {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(tag);
    }

    /// Allows a first packet to be accepted once more.
    fn forget(&mut self, first: &[u8]) {
        if let Some(tag) = first.first_chunk() {
            self.new.remove(tag);
            self.old.remove(tag);
        }
    }
}

/// A socket with many links, or one link to a server.
pub struct UdpEndpoint {
    socket: UdpSocket,
    received: Option<Received>,
    outgoing: Outgoing,
    peers: HashMap<SocketAddr, Peer>,
    fresh: HashMap<SocketAddr, Fresh>,
    addresses: HashMap<LinkId, SocketAddr>,
    /// How many links each address has.
    of_address: HashMap<IpAddr, usize>,
    callers: HashMap<LinkId, Caller>,
    refusals: VecDeque<(SocketAddr, Repeat)>,
    firsts: Firsts,
    guard: Option<Guard>,
    call: Option<Call>,
    next_link: u64,
    max_links: usize,
    max_links_each: usize,
    plain: Vec<u8>,
    errors: u32,
    stats: EndpointStats,
}

impl UdpEndpoint {
    /// Listens; first packets are checked against the passphrase of `proofs`.
    pub fn listen(addr: SocketAddr, proofs: ProofJournal) -> io::Result<UdpEndpoint> {
        let mut endpoint = UdpEndpoint::new(bind(addr)?);
        endpoint.guard = Some(Guard::new(proofs));
        Ok(endpoint)
    }

    /// Sets the limit on links instead of [`MAX_LINKS`].
    pub fn with_max_links(mut self, max_links: usize) -> UdpEndpoint {
        self.max_links = max_links;
        self
    }

    /// Sets the limit on links per address instead of [`MAX_LINKS_EACH`].
    pub fn with_max_links_each(mut self, max_links_each: usize) -> UdpEndpoint {
        self.max_links_each = max_links_each;
        self
    }

    /// Connects to a server. The link has the id 0, and its first arrival is the answer or `Gone`.
    pub fn connect(to: SocketAddr, psk: &Psk, hello: &[u8], now: Time) -> io::Result<UdpEndpoint> {
        let any: IpAddr =
            if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let mut endpoint = UdpEndpoint::new(bind(SocketAddr::new(any, 0))?);
        let calling =
            Calling::new(psk, hello).map_err(|Stranger| io::Error::other("the first packet is too long"))?;
        endpoint.outgoing.push(to, |out| out.extend_from_slice(calling.first()));
        endpoint.flush();
        endpoint.call = Some(Call { to, calling, since: now, tries: 0 });
        Ok(endpoint)
    }

    fn new(socket: UdpSocket) -> UdpEndpoint {
        UdpEndpoint {
            socket,
            received: Some(Received::new()),
            outgoing: Outgoing::new(),
            peers: HashMap::new(),
            fresh: HashMap::new(),
            addresses: HashMap::new(),
            of_address: HashMap::new(),
            callers: HashMap::new(),
            refusals: VecDeque::new(),
            firsts: Firsts::default(),
            guard: None,
            call: None,
            next_link: 0,
            max_links: MAX_LINKS,
            max_links_each: MAX_LINKS_EACH,
            plain: Vec::new(),
            errors: 0,
            stats: EndpointStats::default(),
        }
    }

    fn on_packet(&mut self, now: Time, from: SocketAddr, packet: &[u8], sink: &mut dyn FnMut(Arrival<'_>)) {
        if let Some(peer) = self.peers.get_mut(&from)
            && peer.seal.open(packet, &mut self.plain)
        {
            return sink(Arrival::Datagram { link: peer.link, bytes: &self.plain });
        }
        if let Some(fresh) = self.fresh.get_mut(&from) {
            if fresh.peer.seal.open(packet, &mut self.plain) {
                let link = fresh.peer.link;
                self.on_met(from);
                return sink(Arrival::Datagram { link, bytes: &self.plain });
            }
            if fresh.repeat.is_of(now, packet) {
                return self.outgoing.push(from, |out| out.extend_from_slice(&fresh.repeat.answer));
            }
        }
        let known = match &mut self.call {
            Some(_) => self.on_answer(from, packet, sink),
            None => self.on_first(now, from, packet, sink),
        };
        self.stats.ignored += u64::from(known.is_err());
    }

    /// A client has shown that our answer arrived. Only now does its link replace an older one of its address: a first
    /// packet with a forged address ends nothing.
    fn on_met(&mut self, from: SocketAddr) {
        let Some(fresh) = self.fresh.remove(&from) else { return };
        if let Some(old) = self.peers.insert(from, fresh.peer) {
            // The client started again; its old link will time out.
            self.forget_address(old.link);
        }
    }

    fn forget_address(&mut self, link: LinkId) -> Option<SocketAddr> {
        let addr = self.addresses.remove(&link)?;
        let ip = network(addr.ip());
        if let Some(count) = self.of_address.get_mut(&ip) {
            *count -= 1;
            if *count == 0 {
                self.of_address.remove(&ip);
            }
        }
        Some(addr)
    }

    /// Whether one more link would be too many, in total or for an address.
    fn is_full(&self, ip: IpAddr) -> bool {
        let links = self.addresses.len() + self.callers.len();
        links >= self.max_links
            || self.of_address.get(&network(ip)).is_some_and(|count| *count >= self.max_links_each)
    }

    /// Handles a packet that may be the answer to our first packet.
    fn on_answer(
        &mut self,
        from: SocketAddr,
        packet: &[u8],
        sink: &mut dyn FnMut(Arrival<'_>),
    ) -> Result<(), Stranger> {
        let mut call = self.call.take_if(|call| call.to == from).ok_or(Stranger)?;
        match call.calling.on_answer(packet) {
            Ok(answer) => {
                let seal = call.calling.seal()?;
                self.peers.insert(from, Peer { link: CALL, seal });
                self.addresses.insert(CALL, from);
                sink(Arrival::Answer { link: CALL, bytes: &answer });
                Ok(())
            }
            Err(stranger) => {
                self.call = Some(call);
                Err(stranger)
            }
        }
    }

    /// Handles a packet that may be a client's first packet. An existing link of its address is left alone until the
    /// new one is proven: a replayed first packet must not end anything.
    fn on_first(
        &mut self,
        now: Time,
        from: SocketAddr,
        packet: &[u8],
        sink: &mut dyn FnMut(Arrival<'_>),
    ) -> Result<(), Stranger> {
        let refused = |(to, repeat): &&(SocketAddr, Repeat)| *to == from && repeat.is_of(now, packet);
        if let Some((to, repeat)) = self.refusals.iter().find(refused) {
            self.outgoing.push(*to, |out| out.extend_from_slice(&repeat.answer));
            return Ok(());
        }
        let tag = self.guard.as_mut().ok_or(Stranger)?.check(packet)?;
        if self.is_full(from.ip()) || !self.firsts.take(now, from.ip()) {
            // The client tries again.
            return Err(Stranger);
        }
        let (called, hello) = self.guard.as_mut().ok_or(Stranger)?.take(tag, packet)?;
        let link = LinkId(self.next_link);
        self.next_link += 1;
        self.callers.insert(link, Caller { from, called, first: packet.to_vec(), since: now });
        sink(Arrival::Hello { link, from, bytes: &hello });
        Ok(())
    }

    /// Repeats the first packet, or gives up.
    fn on_time(&mut self, now: Time, sink: &mut dyn FnMut(Arrival<'_>)) {
        while let Some(call) = self.call.as_mut().filter(|call| call.next_at() <= now) {
            if call.tries == RETRY_AT_MS.len() {
                self.call = None;
                return sink(Arrival::Gone { link: CALL, why: Gone::NoAnswer });
            }
            call.tries += 1;
            self.outgoing.push(call.to, |out| out.extend_from_slice(call.calling.first()));
        }
    }
}

impl Endpoint for UdpEndpoint {
    fn carrier(&self) -> Carrier {
        Carrier::Datagrams
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        now: Time,
        sink: &mut dyn FnMut(Arrival<'_>),
    ) -> Poll<io::Result<()>> {
        self.on_time(now, sink);
        // Taken out, so that packets can be read from it while the rest changes.
        let Some(mut received) = self.received.take() else { return Poll::Pending };
        let result = loop {
            match self.socket.poll_recv_ready(cx) {
                Poll::Pending => break Poll::Pending,
                Poll::Ready(Err(error)) => break Poll::Ready(Err(error)),
                Poll::Ready(Ok(())) => {}
            }
            match received.receive(&self.socket) {
                Ok(()) => break Poll::Ready(Ok(())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if is_about_a_packet(&error) => {}
                Err(_) if self.errors < MAX_ERRORS => self.errors += 1,
                Err(error) => break Poll::Ready(Err(error)),
            }
        };
        if let Poll::Ready(Ok(())) = result {
            self.errors = 0;
            received.iter().for_each(|(from, packet)| self.on_packet(now, from, packet, sink));
        }
        self.received = Some(received);
        self.flush();
        result
    }

    fn wake_at(&self) -> Option<Time> {
        self.call.as_ref().map(Call::next_at)
    }

    /// A first packet is answered before its source address is proven.
    fn are_sources_proven(&self) -> bool {
        false
    }

    fn answer(&mut self, link: LinkId, bytes: &[u8], open: bool) {
        let Some(Caller { from, called, first, since }) = self.callers.remove(&link) else { return };
        let Ok((answer, seal)) = called.answer(bytes) else { return };
        self.outgoing.push(from, |out| out.extend_from_slice(&answer));
        let repeat = Repeat { first, answer, until: since.plus_micros(GIVE_UP_AT_MS * 1_000) };
        if open {
            self.addresses.insert(link, from);
            *self.of_address.entry(network(from.ip())).or_default() += 1;
            let fresh = Fresh { peer: Peer { link, seal }, repeat };
            if let Some(old) = self.fresh.insert(from, fresh) {
                self.forget_address(old.peer.link);
            }
        } else {
            self.refusals.truncate(KEPT_REFUSALS - 1);
            self.refusals.push_front((from, repeat));
        }
    }

    fn send_datagram(&mut self, link: LinkId, bytes: &[u8]) {
        let Some(addr) = self.addresses.get(&link) else { return };
        let fresh = self.fresh.get_mut(addr).map(|fresh| &mut fresh.peer);
        let mut peers = fresh.into_iter().chain(self.peers.get_mut(addr));
        let Some(peer) = peers.find(|peer| peer.link == link) else { return };
        self.outgoing.push(*addr, |out| peer.seal.seal(bytes, out));
        if self.outgoing.is_full() {
            self.flush();
        }
    }

    fn send_stream(&mut self, _: LinkId, _: LaneId, _: &[u8]) {
        unreachable!("a link over datagrams sends no streams");
    }

    fn drop_link(&mut self, link: LinkId) {
        self.callers.remove(&link);
        let Some(addr) = self.forget_address(link) else { return };
        if self.peers.get(&addr).is_some_and(|peer| peer.link == link) {
            self.peers.remove(&addr);
        }
        if self.fresh.get(&addr).is_some_and(|fresh| fresh.peer.link == link)
            && let (Some(fresh), Some(guard)) = (self.fresh.remove(&addr), &mut self.guard)
        {
            // The client may try again: it was not admitted.
            guard.seen.forget(&fresh.repeat.first);
        }
    }

    fn flush(&mut self) {
        self.stats.unsent += self.outgoing.send(&self.socket);
    }

    fn stats(&self) -> EndpointStats {
        self.stats
    }
}

fn bind(addr: SocketAddr) -> io::Result<UdpSocket> {
    let socket = socket2::Socket::new(socket2::Domain::for_address(addr), socket2::Type::DGRAM, None)?;
    socket.set_nonblocking(true)?;
    // Best effort: the system may allow less.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
    socket.bind(&addr.into())?;
    UdpSocket::from_std(socket.into())
}

/// Whether an earlier packet of ours bounced, or an incoming one was longer than our buffer: the socket itself is fine,
/// however often this happens.
fn is_about_a_packet(error: &io::Error) -> bool {
    /// Windows: "message too long" and "the network dropped the connection".
    const WINDOWS: [i32; 2] = [10_040, 10_052];
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::Interrupted
    ) || cfg!(windows) && error.raw_os_error().is_some_and(|code| WINDOWS.contains(&code))
}
