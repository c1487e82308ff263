//! Clients without the passphrase, or with an old one: what they can see and send.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use quinn::crypto::rustls::QuicClientConfig;
use sametick_sim::Rng;
use sametick_transport::clock::{Clock, unix_seconds};
use sametick_transport::dial::{Locator, Scheme};
use sametick_transport::hub::{App, Ended, Event, Hub, Key, Links};
use sametick_transport::noise::{Calling, Psk};
use sametick_transport::tls::{CertHash, Trust, client_config};
use sametick_wire::access::AccessKey;
use sametick_wire::hello::{Proven, Refusal, Stamp};
use sametick_wire::{Channel, Time};
use tokio_tungstenite::tungstenite::Bytes;

use crate::echo::{Client, LOCALHOST, block_on, hello};

/// A socket without a link. Everything it receives is counted.
pub struct Stranger {
    socket: UdpSocket,
    pub heard: usize,
}

impl Stranger {
    pub fn new() -> Stranger {
        Stranger::at(UdpSocket::bind(LOCALHOST).unwrap())
    }

    fn at(socket: UdpSocket) -> Stranger {
        socket.set_nonblocking(true).unwrap();
        Stranger { socket, heard: 0 }
    }

    pub fn send(&mut self, to: SocketAddr, packet: &[u8]) {
        // A full buffer is a lost packet.
        let _ = self.socket.send_to(packet, to);
    }

    /// Counts what has arrived; an empty datagram is an answer too.
    pub fn listen(&mut self) -> usize {
        let mut buffer = [0; 2_048];
        while let Ok((len, _)) = self.socket.recv_from(&mut buffer) {
            self.heard += len.max(1);
        }
        self.heard
    }
}

/// The first packet of a client that called an address without a server.
pub fn unheard(scheme: Scheme, key: &AccessKey) -> Vec<u8> {
    block_on(async {
        let socket = tokio::net::UdpSocket::bind(LOCALHOST).await.unwrap();
        let port = socket.local_addr().unwrap().port();
        let nowhere = Locator { scheme, host: "127.0.0.1".into(), port, cert: Some(CertHash([0; 32])) };
        let _calling = nowhere.dial(Time::ZERO, key, &hello()).await.unwrap();
        first_packet(&socket).await
    })
}

async fn first_packet(socket: &tokio::net::UdpSocket) -> Vec<u8> {
    let mut buffer = vec![0; 2_048];
    let (len, _) = socket.recv_from(&mut buffer).await.unwrap();
    buffer.truncate(len);
    buffer
}

/// A raw UDP first packet with a valid passphrase around any bytes.
pub fn sealed_first(key: &AccessKey, inside: &[u8]) -> Vec<u8> {
    Calling::new(&Psk::new(key), inside).ok().unwrap().first().to_vec()
}

/// A hello of another time.
pub fn hello_of(key: &AccessKey, unix_s: u64, n: u64) -> Vec<u8> {
    let mut nonce = [7; 16];
    nonce[..8].copy_from_slice(&n.to_le_bytes());
    hello().to_bytes(key, Stamp { unix_s, nonce }).unwrap()
}

pub fn seconds_from_now(off_s: i64) -> u64 {
    unix_seconds().checked_add_signed(off_s).unwrap()
}

/// A QUIC first packet with this connection id, and with this token if it is not empty.
pub fn initial(id: &[u8], token: Vec<u8>) -> Vec<u8> {
    block_on(async {
        let socket = tokio::net::UdpSocket::bind(LOCALHOST).await.unwrap();
        let endpoint = quinn::Endpoint::client(LOCALHOST.parse().unwrap()).unwrap();
        let tls = client_config(Trust::Pinned(CertHash([0; 32])), &[b"sametick"]).unwrap();
        let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
        let id = quinn::ConnectionId::new(id);
        config.initial_dst_cid_provider(Arc::new(move || id));
        if !token.is_empty() {
            config.token_store(Arc::new(OneToken(token)));
        }
        let _calling = endpoint.connect_with(config, socket.local_addr().unwrap(), "localhost").unwrap();
        first_packet(&socket).await
    })
}

/// Always has the same token.
struct OneToken(Vec<u8>);

impl quinn::TokenStore for OneToken {
    fn insert(&self, _: &str, _: Bytes) {}

    fn take(&self, _: &str) -> Option<Bytes> {
        Some(self.0.clone().into())
    }
}

/// The packets of a client to its server, and the client's address.
pub struct Overheard {
    pub packets: Vec<Vec<u8>>,
    pub way: Stranger,
}

/// Forwards a client's packets to its server by way of a socket of ours, and records them.
pub fn overhear(server: &Locator, key: &AccessKey) -> Overheard {
    block_on(async {
        let front = tokio::net::UdpSocket::bind(LOCALHOST).await.unwrap();
        let back = tokio::net::UdpSocket::bind(LOCALHOST).await.unwrap();
        let to: SocketAddr = server.authority().parse().unwrap();
        let locator = Locator { port: front.local_addr().unwrap().port(), ..server.clone() };
        let mut packets = vec![];
        let forward = async {
            let (mut out, mut incoming) = (vec![0; 2_048], vec![0; 2_048]);
            let mut client = front.local_addr().unwrap();
            loop {
                tokio::select! {
                    said = front.recv_from(&mut out) => {
                        let (len, from) = said.unwrap();
                        client = from;
                        packets.push(out[..len].to_vec());
                        back.send_to(&out[..len], to).await.unwrap();
                    }
                    heard = back.recv_from(&mut incoming) => {
                        front.send_to(&incoming[..heard.unwrap().0], client).await.unwrap();
                    }
                }
            }
        };
        let clock = Clock::start();
        let mut hub = Hub::new(clock, None);
        let mut client = Client::new(vec![(Channel::Chat, b"overheard".to_vec())]);
        hub.add(locator.dial(clock.now(), key, &hello()).await.unwrap());
        tokio::select! {
            done = hub.run(&mut client) => done.unwrap(),
            () = forward => {}
        }
        assert_eq!(client.got.len(), 1, "{server}: {:?}", client.ended);
        Overheard { packets, way: Stranger::at(back.into_std().unwrap()) }
    })
}

/// A client that runs code between messages. The answer to each message shows that its server has read all earlier
/// packets of that socket.
pub struct Between<F> {
    each: F,
    round: usize,
    pub ended: Option<Ended>,
}

impl<F: FnMut(usize) -> bool> App for Between<F> {
    fn admit(&mut self, _: Time, _: Key, _: SocketAddr, _: &Proven) -> Result<(), Refusal> {
        unreachable!("nobody calls a client")
    }

    fn handle(&mut self, _: Time, links: &mut Links, event: Event<'_>) {
        match event {
            Event::Opened(key) | Event::Message(key, ..) => {
                if (self.each)(self.round) {
                    links.send(key, Channel::Control, b"have you read that?").unwrap();
                } else {
                    links.close(key, 0, "done");
                }
                self.round += 1;
            }
            Event::Ended(_, ended, _) => self.ended = Some(ended.clone()),
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

/// Calls `each` with 0, 1, 2, … until it says that it is done, with a message and its answer between two calls.
pub fn between(to: &Locator, key: &AccessKey, each: impl FnMut(usize) -> bool) {
    let mut app = Between { each, round: 0, ended: None };
    block_on(async {
        let clock = Clock::start();
        let mut hub = Hub::new(clock, None);
        hub.add(to.dial(clock.now(), key, &hello()).await.unwrap());
        hub.run(&mut app).await.unwrap();
    });
    assert_eq!(app.ended, Some(Ended::Link(sametick_wire::Closed::Here)), "{to}");
}

/// Flips one to eight bits.
pub fn flip(rng: &mut Rng, packet: &mut [u8]) {
    for _ in 0..=rng.below(8) {
        let bit = rng.below(packet.len() as u64 * 8) as usize;
        packet[bit / 8] ^= 1 << (bit % 8);
    }
}

pub fn fill(rng: &mut Rng, bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(8) {
        let random = rng.next_u64().to_le_bytes();
        chunk.copy_from_slice(&random[..chunk.len()]);
    }
}
