//! Clients that speak a carrier by hand, so that they can break its rules.

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use quinn::crypto::rustls::QuicClientConfig;
use sametick_transport::clock::{random, unix_seconds};
use sametick_transport::dial::{Locator, Scheme};
use sametick_transport::tls::{CertHash, Trust, client_config};
use sametick_wire::access::AccessKey;
use sametick_wire::hello::Stamp;
use sametick_wire::{Carrier, Channel, Input, LaneId, Link, Output, Time};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::echo::{Server, hello};

pub fn first_message() -> Vec<u8> {
    hello().to_bytes(&AccessKey::open(), Stamp { unix_s: unix_seconds(), nonce: random() }).unwrap()
}

/// A WebSocket with a link on it.
pub struct RawWebSocket {
    pub socket: WebSocketStream<TcpStream>,
    link: Link,
}

impl RawWebSocket {
    /// Connects without sending anything.
    pub async fn connect(server: &Server) -> WebSocketStream<TcpStream> {
        RawWebSocket::ask(server, "").await.unwrap()
    }

    /// Asks for a WebSocket with this query.
    pub async fn ask(server: &Server, query: &str) -> Result<WebSocketStream<TcpStream>, Error> {
        let stream = TcpStream::connect(server.addr(Scheme::Ws)).await.unwrap();
        let url = format!("ws://{}/?{query}", server.addr(Scheme::Ws));
        tokio_tungstenite::client_async(url, stream).await.map(|(socket, _)| socket)
    }

    /// Connects and says hello.
    pub async fn open(server: &Server) -> RawWebSocket {
        RawWebSocket::open_with(server, "").await
    }

    /// The same, asking with this query.
    pub async fn open_with(server: &Server, query: &str) -> RawWebSocket {
        let mut socket = RawWebSocket::ask(server, query).await.unwrap();
        socket.send(Message::binary(first_message())).await.unwrap();
        assert!(socket.next().await.unwrap().unwrap().is_binary());
        RawWebSocket { socket, link: Link::new(Time::ZERO, Carrier::Stream) }
    }

    /// A message of the link, as it travels.
    pub fn encode(&mut self, channel: Channel, message: &[u8]) -> Vec<u8> {
        self.link.send(Time::ZERO, channel, message).unwrap();
        let mut bytes = vec![];
        while self.link.poll_output(&mut bytes) != Output::Stream(LaneId(0)) {}
        bytes
    }

    pub async fn send(&mut self, channel: Channel, message: &[u8]) -> Result<(), Error> {
        let bytes = self.encode(channel, message);
        self.socket.send(Message::binary(bytes)).await
    }

    /// How many messages of the link the next message of the socket brings.
    pub async fn receive(&mut self) -> usize {
        let Message::Binary(bytes) = self.socket.next().await.unwrap().unwrap() else { return 0 };
        self.link.handle(Time::ZERO, Input::Stream(LaneId(0), &bytes)).unwrap();
        let (mut out, mut count) = (vec![], 0);
        loop {
            match self.link.poll_output(&mut out) {
                Output::Message(_) => count += 1,
                Output::WakeAt(_) => return count,
                _ => {}
            }
        }
    }
}

/// A QUIC connection that has proven the passphrase and opened no lane.
pub struct RawQuic {
    _endpoint: quinn::Endpoint,
    pub connection: quinn::Connection,
}

impl RawQuic {
    pub async fn connect(to: &Locator) -> RawQuic {
        let endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let tls = client_config(Trust::Pinned(to.cert.unwrap_or(CertHash([0; 32]))), &[b"sametick"]).unwrap();
        let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
        config.initial_dst_cid_provider(Arc::new(|| {
            quinn::ConnectionId::new(&AccessKey::open().connection_id(unix_seconds(), random()))
        }));
        let connecting = endpoint.connect_with(config, to.authority().parse().unwrap(), "localhost").unwrap();
        RawQuic { connection: connecting.await.unwrap(), _endpoint: endpoint }
    }

    /// Opens a lane with these first bytes.
    pub async fn lane(&self, first: &[u8]) -> (quinn::SendStream, quinn::RecvStream) {
        let (mut writer, reader) = self.connection.open_bi().await.unwrap();
        writer.write_all(first).await.unwrap();
        (writer, reader)
    }

    /// Opens all lanes and says hello.
    pub async fn open(to: &Locator) -> (RawQuic, Vec<(quinn::SendStream, quinn::RecvStream)>) {
        let raw = RawQuic::connect(to).await;
        let mut lanes = vec![raw.lane(&[&[0][..], &blob(&first_message())].concat()).await];
        for lane in 1..4 {
            lanes.push(raw.lane(&[lane]).await);
        }
        let mut answer = [0; 8];
        lanes[0].1.read_exact(&mut answer).await.unwrap();
        (raw, lanes)
    }
}

/// With its length in front.
pub fn blob(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_le_bytes()[..], bytes].concat()
}
