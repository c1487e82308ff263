//! Extra sockets: the datagrams of WebSocket links, and their misuse.

use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use sametick_transport::dial::Scheme;
use sametick_transport::hub::{App, Ended, Event, Key, Links};
use sametick_wire::access::AccessKey;
use sametick_wire::hello::{Proven, Refusal};
use sametick_wire::link::EXTRA_SOCKETS;
use sametick_wire::{Channel, Closed, LinkStats, Time};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::echo::{Server, block_on, hello, run_app};
use crate::limits::{next_end, others_are_served};
use crate::raw::RawWebSocket;

/// Sends inputs, one after the other, until so many came back by datagrams.
struct Player {
    datagrams: u64,
    sent: u8,
    got: Vec<u8>,
    ended: Option<(Ended, Option<LinkStats>)>,
}

impl App for Player {
    fn admit(&mut self, _: Time, _: Key, _: SocketAddr, _: &Proven) -> Result<(), Refusal> {
        unreachable!("nobody calls a client")
    }

    fn handle(&mut self, _: Time, links: &mut Links, event: Event<'_>) {
        match event {
            Event::Opened(key) => links.send(key, Channel::Input, &[0]).unwrap(),
            Event::Message(key, _, bytes) => {
                self.got.extend_from_slice(bytes);
                if links.stats(key).unwrap().packets_received >= self.datagrams {
                    return links.close(key, 0, "done");
                }
                self.sent = self.sent.wrapping_add(1);
                links.send(key, Channel::Input, &[self.sent]).unwrap();
            }
            Event::Ended(_, ended, stats) => self.ended = Some((ended.clone(), stats)),
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

#[test]
fn a_websocket_link_has_datagrams_on_extra_sockets() {
    let server = Server::open();
    for scheme in [Scheme::Ws, Scheme::Wss] {
        let mut player = Player { datagrams: 100, sent: 0, got: vec![], ended: None };
        run_app(server.locator(scheme), &AccessKey::open(), &hello(), &mut player);
        let (ended, stats) = player.ended.unwrap();
        assert_eq!(ended, Ended::Link(Closed::Here), "{scheme:?}");
        assert!(stats.unwrap().packets_received >= 100, "{scheme:?}: {stats:?}");
        // One input at a time is in flight, so none overtakes another, whichever socket it takes.
        assert!(player.got.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)), "{scheme:?}");
        assert!(matches!(next_end(&server), Ended::Link(Closed::There(_))));
    }
}

const NAME: &str = "00112233445566778899aabbccddeeff";

async fn ask_for_extra(server: &Server) -> Result<WebSocketStream<TcpStream>, Error> {
    RawWebSocket::ask(server, &format!("extra={NAME}")).await
}

/// The status and the sentence with which an extra socket is refused.
async fn refusal(server: &Server) -> (u16, String) {
    let Err(Error::Http(response)) = ask_for_extra(server).await else { panic!("it is let in") };
    let why = String::from_utf8_lossy(response.body().as_deref().unwrap_or_default()).into_owned();
    (response.status().as_u16(), why)
}

#[test]
fn an_extra_socket_belongs_to_a_link_that_is_open() {
    let server = Server::open();
    block_on(async {
        assert_eq!(refusal(&server).await.0, 404, "there is no such link");
        let asked = RawWebSocket::ask(&server, &format!("link={NAME}")).await.unwrap();
        assert_eq!(refusal(&server).await.0, 404, "who has said no hello has no link");
        drop(asked);
        let mut raw = RawWebSocket::open_with(&server, &format!("link={NAME}")).await;
        let mut extra = vec![];
        for _ in 0..EXTRA_SOCKETS {
            extra.push(ask_for_extra(&server).await.unwrap());
        }
        let (status, why) = refusal(&server).await;
        assert_eq!((status, why.trim()), (404, "there is no such link, or it has enough sockets"));
        raw.socket.close(None).await.unwrap();
        while raw.socket.next().await.is_some() {}
        next_end(&server);
        for mut socket in extra {
            // It ends with its link, whatever was sent on it.
            while let Some(Ok(_)) = socket.next().await {}
        }
        assert_eq!(refusal(&server).await.0, 404, "the link has ended");
    });
    others_are_served(&server, Scheme::Ws);
}

#[test]
fn a_link_whose_extra_sockets_are_gone_goes_on_without_them() {
    let server = Server::open();
    block_on(async {
        let mut raw = RawWebSocket::open_with(&server, &format!("link={NAME}")).await;
        let mut extra = ask_for_extra(&server).await.unwrap();
        raw.send(Channel::Input, b"one").await.unwrap();
        let Message::Binary(_) = extra.next().await.unwrap().unwrap() else { panic!("no datagram") };
        extra.close(None).await.unwrap();
        while let Some(Ok(_)) = extra.next().await {}
        // Datagrams that were not acknowledged on the extra socket are repeated on the link's own.
        let mut came = 0;
        raw.send(Channel::Input, b"two").await.unwrap();
        while came < 2 {
            came += raw.receive().await;
        }
        raw.socket.close(None).await.unwrap();
        next_end(&server);
    });
    others_are_served(&server, Scheme::Ws);
}

#[test]
fn garbage_on_an_extra_socket_ends_its_link_and_no_other() {
    let server = Server::open();
    for garbage in [vec![0xff; 2_000], vec![0xff; 40], vec![]] {
        block_on(async {
            let _raw = RawWebSocket::open_with(&server, &format!("link={NAME}")).await;
            let mut extra = ask_for_extra(&server).await.unwrap();
            extra.send(Message::binary(garbage)).await.unwrap();
            assert!(matches!(next_end(&server), Ended::Link(Closed::Violation(_))));
        });
        others_are_served(&server, Scheme::Ws);
    }
}
