//! Native QUIC: TLS, datagrams for unreliable channels, one stream for each lane. Unproven clients get no answer: the
//! client's first connection id proves the passphrase, and `filter.rs` drops all other packets below quinn.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ConnectionId, EndpointConfig, Runtime, TokioRuntime, TransportConfig, VarInt};
use sametick_wire::Carrier;
use sametick_wire::access::AccessKey;

use crate::clock::{random, unix_seconds};
use crate::connection_slots::ConnectionSlots;
use crate::endpoint::CALL;
use crate::filter::{Filter, Issuer};
use crate::proof_journal::ProofJournal;
use crate::sessions::{LANES, Session, call, serve};
use crate::tasks::{Reporter, Running, TaskEndpoint, reports};
use crate::tls::{self, Certificate, Trust};

/// The ALPN name of this protocol.
const ALPN: &[u8] = b"sametick";

/// The idle time-out of a connection. The link's own time-out of 10 s comes first.
const IDLE: Duration = Duration::from_secs(12);

/// The most that a server may have in flight to its client on one stream, and on all of them.
const STREAM_WINDOW: u32 = 256 << 10;
const RECEIVE_WINDOW: u32 = 1 << 20;

/// The most that a client may have in flight on all streams together, before it has joined and after: bounds the
/// server's memory. Clients send little; the longest message is an occasional state.
const UNJOINED_WINDOW: u32 = 16 << 10;
const JOINED_WINDOW: u32 = 128 << 10;

/// The receive buffer of datagrams, in bytes; the oldest are dropped.
const DATAGRAM_BUFFER: usize = 64 << 10;

/// Handshakes under way at once.
const MAX_INCOMING: usize = 1_024;

/// From this many handshakes on, a client of a server without a passphrase must first prove its source address: first
/// packets with forged addresses must not use up all handshakes.
const RETRY_ABOVE: usize = 64;

/// The transport settings of a server.
pub(crate) fn server_config() -> TransportConfig {
    let mut config = client_config();
    config.receive_window(VarInt::from_u32(UNJOINED_WINDOW));
    config
}

/// Raises the window of a client that has joined.
pub(crate) fn widen(connection: &quinn::Connection) {
    connection.set_receive_window(VarInt::from_u32(JOINED_WINDOW));
}

/// The transport settings of a client.
pub(crate) fn client_config() -> TransportConfig {
    let mut config = TransportConfig::default();
    config
        .max_idle_timeout(Some(IDLE.try_into().expect("a short time")))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(RECEIVE_WINDOW))
        .send_window(u64::from(RECEIVE_WINDOW))
        .max_concurrent_bidi_streams(VarInt::from_u32(LANES as u32))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(Some(DATAGRAM_BUFFER))
        .datagram_send_buffer_size(DATAGRAM_BUFFER);
    config
}

/// Listens; connections of clients that cannot prove the passphrase of `proofs` are ignored.
pub fn listen(
    addr: SocketAddr,
    proofs: ProofJournal,
    certificate: &Certificate,
    places: ConnectionSlots,
) -> io::Result<TaskEndpoint<Running>> {
    let tls = certificate.server_config(&[ALPN]).map_err(io::Error::other)?;
    let tls = QuicServerConfig::try_from(tls).map_err(io::Error::other)?;
    let mut server = quinn::ServerConfig::with_crypto(Arc::new(tls));
    server.transport_config(Arc::new(server_config())).migration(false).max_incoming(MAX_INCOMING);
    let issuer = Issuer::new();
    let mut config = EndpointConfig::default();
    let issued = issuer.clone();
    // Clients then leave the fixed bit alone, which the filter requires.
    config.cid_generator(move || Box::new(issued.clone())).grease_quic_bit(false);
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let socket = runtime.wrap_udp_socket(UdpSocket::bind(addr)?)?;
    let (reporter, events) = reports();
    let filter = Arc::new(Filter::new(socket, proofs.clone(), issuer, reporter.clone()));
    let endpoint = quinn::Endpoint::new_with_abstract_socket(config, Some(server), filter, runtime)?;
    let local_addr = endpoint.local_addr()?;
    let task = Running::spawn(accept(endpoint, proofs, places, reporter.clone()));
    Ok(TaskEndpoint::new(Carrier::DatagramsAndStreams, local_addr, (reporter, events), None, task))
}

async fn accept(
    endpoint: quinn::Endpoint,
    proofs: ProofJournal,
    places: ConnectionSlots,
    reporter: Reporter,
) {
    let opening = Arc::new(AtomicUsize::new(0));
    while let Some(incoming) = endpoint.accept().await {
        let must_show_address = proofs.is_open() && opening.load(Ordering::Relaxed) >= RETRY_ABOVE;
        if must_show_address && !incoming.remote_address_validated() {
            // A retry is possible, since its address is not validated.
            let _ = incoming.retry();
            continue;
        }
        let Some(place) = places.take(incoming.remote_address().ip()) else {
            reporter.ignore();
            incoming.ignore();
            continue;
        };
        let (opening, reporter) = (opening.clone(), reporter.clone());
        opening.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            let opened = incoming.await;
            opening.fetch_sub(1, Ordering::Relaxed);
            match opened {
                Ok(connection) => serve(connection, place, reporter).await,
                Err(_) => reporter.ignore(),
            }
        });
    }
}

/// Connects to a server. The link has the id 0, and its first arrival is the answer or `Gone`.
pub fn connect(
    to: SocketAddr,
    host: &str,
    trust: Trust,
    key: AccessKey,
    hello: Vec<u8>,
) -> io::Result<TaskEndpoint<()>> {
    let any = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let endpoint = quinn::Endpoint::client(SocketAddr::new(any, 0))?;
    let tls = tls::client_config(trust, &[ALPN]).map_err(io::Error::other)?;
    let tls = QuicClientConfig::try_from(tls).map_err(io::Error::other)?;
    let mut config = quinn::ClientConfig::new(Arc::new(tls));
    config.transport_config(Arc::new(client_config()));
    config.initial_dst_cid_provider(Arc::new(move || {
        ConnectionId::new(&key.connection_id(unix_seconds(), random()))
    }));
    let connecting = endpoint.connect_with(config, to, host).map_err(io::Error::other)?;
    let local_addr = endpoint.local_addr()?;
    let (reporter, events) = reports();
    let (outbox, inbox) = reporter.connection();
    let connecting = async { connecting.await.map_err(connection_error) };
    let call = call(connecting, CALL, hello, inbox, reporter.clone());
    tokio::spawn(async move {
        call.await;
        // Keeps the endpoint until its final packets are out.
        endpoint.wait_idle().await;
    });
    let ours = Some((CALL, outbox));
    Ok(TaskEndpoint::new(Carrier::DatagramsAndStreams, local_addr, (reporter, events), ours, ()))
}

fn connection_error(error: quinn::ConnectionError) -> io::Error {
    let kind = match &error {
        quinn::ConnectionError::TimedOut => io::ErrorKind::TimedOut,
        quinn::ConnectionError::ApplicationClosed(_) | quinn::ConnectionError::LocallyClosed => {
            io::ErrorKind::ConnectionAborted
        }
        quinn::ConnectionError::Reset => io::ErrorKind::ConnectionReset,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

impl Session for quinn::Connection {
    type Writer = quinn::SendStream;
    type Reader = quinn::RecvStream;

    const IS_PUBLIC: bool = false;

    fn remote(&self) -> SocketAddr {
        self.remote_address()
    }

    async fn open(&self) -> io::Result<(quinn::SendStream, quinn::RecvStream)> {
        self.open_bi().await.map_err(connection_error)
    }

    async fn accept(&self) -> io::Result<(quinn::SendStream, quinn::RecvStream)> {
        self.accept_bi().await.map_err(connection_error)
    }

    async fn receive(&self) -> io::Result<Vec<u8>> {
        self.read_datagram().await.map(Into::into).map_err(connection_error)
    }

    fn send(&self, datagram: Vec<u8>) {
        // A datagram is never too long; a lost connection is noticed elsewhere.
        let _ = self.send_datagram(datagram.into());
    }

    fn widen(&self) {
        widen(self);
    }

    fn shut(&self) {
        self.close(VarInt::from_u32(0), b"");
    }
}
