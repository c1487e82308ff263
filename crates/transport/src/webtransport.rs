//! WebTransport: QUIC's datagrams and streams for browsers. A listener of its own, which answers as HTTP/3 does.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quinn::VarInt;
use sametick_wire::Carrier;
use wtransport::endpoint::IncomingSession;
use wtransport::endpoint::endpoint_side::Server;
use wtransport::error::{ConnectionError, StreamOpeningError};
use wtransport::{ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig};

use crate::connection_slots::ConnectionSlots;
use crate::endpoint::CALL;
use crate::http::report_unknown;
use crate::quic;
use crate::sessions::{LANES, Session, call, serve};
use crate::site::Origins;
use crate::tasks::{Reporter, Running, TaskEndpoint, reports};
use crate::tls::{self, Certificate, Trust};

/// The time-out of the request.
const HEADERS_DEADLINE: Duration = Duration::from_secs(5);

/// From this many handshakes on, a client must first prove its source address.
const RETRY_ABOVE: usize = 64;

/// From this many handshakes on, new ones are refused.
const MAX_OPENING: usize = 1_024;

/// HTTP/3 has streams of its own: the request, control, and two for header compression.
const EXTRA_STREAMS: u32 = 4;

fn with_h3(mut config: quinn::TransportConfig) -> quinn::TransportConfig {
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(LANES as u32 + EXTRA_STREAMS))
        .max_concurrent_uni_streams(VarInt::from_u32(EXTRA_STREAMS));
    config
}

/// Listens on a port of its own.
pub fn listen(
    addr: SocketAddr,
    certificate: &Certificate,
    origins: Origins,
    places: ConnectionSlots,
) -> io::Result<TaskEndpoint<Running>> {
    let tls = certificate.server_config(&[b"h3"]).map_err(io::Error::other)?;
    let config = ServerConfig::builder()
        .with_bind_address(addr)
        .with_custom_tls_and_transport(tls, with_h3(quic::server_config()))
        .build();
    let endpoint = Endpoint::server(config)?;
    let local_addr = endpoint.local_addr()?;
    let (reporter, events) = reports();
    let task = Running::spawn(accept(endpoint, Arc::new(origins), places, reporter.clone()));
    Ok(TaskEndpoint::new(Carrier::DatagramsAndStreams, local_addr, (reporter, events), None, task))
}

async fn accept(
    endpoint: Endpoint<Server>,
    origins: Arc<Origins>,
    places: ConnectionSlots,
    reporter: Reporter,
) {
    let opening = Arc::new(AtomicUsize::new(0));
    loop {
        let incoming = endpoint.accept().await;
        let under_way = opening.load(Ordering::Relaxed);
        if under_way >= MAX_OPENING {
            incoming.ignore();
            continue;
        }
        if under_way >= RETRY_ABOVE && !incoming.remote_address_validated() {
            incoming.retry();
            continue;
        }
        let Some(place) = places.take(incoming.remote_address().ip()) else {
            incoming.ignore();
            continue;
        };
        let (opening, origins, reporter) = (opening.clone(), origins.clone(), reporter.clone());
        opening.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            let opened = tokio::time::timeout(HEADERS_DEADLINE, open(incoming, &origins)).await;
            opening.fetch_sub(1, Ordering::Relaxed);
            match opened {
                Ok(Some(connection)) => serve(Arc::new(connection), place, reporter).await,
                _ => reporter.ignore(),
            }
        });
    }
}

async fn open(incoming: IncomingSession, origins: &Origins) -> Option<Connection> {
    let request = incoming.await.ok()?;
    let host = request.authority();
    let is_known = origins.knows(host);
    if !is_known {
        report_unknown(host);
    }
    if !is_known || !origins.admit(request.origin(), Some(host)) {
        request.forbidden().await;
        return None;
    }
    request.accept().await.ok()
}

/// Connects to a server. The link has the id 0, and its first arrival is the answer or `Gone`.
pub fn connect(authority: &str, trust: Trust, hello: Vec<u8>) -> io::Result<TaskEndpoint<()>> {
    let tls = tls::client_config(trust, &[b"h3"]).map_err(io::Error::other)?;
    let config = ClientConfig::builder()
        .with_bind_default()
        .with_custom_tls_and_transport(tls, with_h3(quic::client_config()))
        .build();
    let endpoint = Endpoint::client(config)?;
    let local_addr = endpoint.local_addr()?;
    let url = format!("https://{authority}/");
    let (reporter, events) = reports();
    let (outbox, inbox) = reporter.connection();
    let report = reporter.clone();
    tokio::spawn(async move {
        let connecting = async { endpoint.connect(url).await.map(Arc::new).map_err(io::Error::other) };
        call(connecting, CALL, hello, inbox, report).await;
        // Keeps the endpoint until its final packets are out.
        endpoint.wait_idle().await;
    });
    let ours = Some((CALL, outbox));
    Ok(TaskEndpoint::new(Carrier::DatagramsAndStreams, local_addr, (reporter, events), ours, ()))
}

fn connection_error(error: ConnectionError) -> io::Error {
    let kind = match &error {
        ConnectionError::TimedOut => io::ErrorKind::TimedOut,
        ConnectionError::ConnectionClosed(_)
        | ConnectionError::ApplicationClosed(_)
        | ConnectionError::LocallyClosed => io::ErrorKind::ConnectionAborted,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

impl Session for Arc<Connection> {
    type Writer = SendStream;
    type Reader = RecvStream;

    const IS_PUBLIC: bool = true;

    fn remote(&self) -> SocketAddr {
        self.remote_address()
    }

    async fn open(&self) -> io::Result<(SendStream, RecvStream)> {
        let opening = self.open_bi().await.map_err(connection_error)?;
        opening.await.map_err(|error: StreamOpeningError| io::Error::other(error))
    }

    async fn accept(&self) -> io::Result<(SendStream, RecvStream)> {
        self.accept_bi().await.map_err(connection_error)
    }

    async fn receive(&self) -> io::Result<Vec<u8>> {
        self.receive_datagram().await.map(|datagram| datagram.payload().to_vec()).map_err(connection_error)
    }

    fn send(&self, datagram: Vec<u8>) {
        // A datagram is never too long; a lost connection is noticed elsewhere.
        let _ = self.send_datagram(datagram);
    }

    fn widen(&self) {
        quic::widen(self.quic_connection());
    }

    fn shut(&self) {
        self.close(wtransport::VarInt::from_u32(0), b"");
    }
}
