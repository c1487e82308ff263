//! Raw WebSockets: whole messages for the application.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use sametick_transport::clock::Clock;
use sametick_transport::endpoint::{Endpoint, Gone, RawEvent, RawMessage};
use sametick_transport::hub::{App, Event, Hub, Key, Links};
use sametick_transport::site::{Bytes, Pages, Request, Response, Site, StatusCode, Upgrade};
use sametick_transport::websocket::{self, MAX_MESSAGE};
use sametick_wire::Time;
use sametick_wire::hello::{Proven, Refusal};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::echo::{LOCALHOST, block_on};

const IN_VAIN: Duration = Duration::from_secs(10);

pub struct Rooms;

impl Pages for Rooms {
    fn answer(&self, _: &Request<()>) -> Response<Bytes> {
        Response::new("a page".into())
    }

    fn upgrade(&self, request: &Request<()>) -> Upgrade {
        match request.uri().path() {
            "/talk" => Upgrade::Raw,
            "/closed" => {
                let mut response = Response::new("not today".into());
                *response.status_mut() = StatusCode::UNAUTHORIZED;
                Upgrade::Refused(response)
            }
            _ => Upgrade::Link,
        }
    }
}

/// Echoes every message, and reports events to the test.
struct Parrot {
    heard: mpsc::Sender<RawEvent>,
}

impl App for Parrot {
    fn admit(&mut self, _: Time, _: Key, _: SocketAddr, _: &Proven) -> Result<(), Refusal> {
        Err(Refusal::Other("there are no links here".into()))
    }

    fn handle(&mut self, _: Time, _: &mut Links, _: Event<'_>) {}

    fn on_raw(&mut self, _: Time, links: &mut Links, key: Key, event: RawEvent) {
        match &event {
            RawEvent::Began { target, .. } => links.say(key, RawMessage::Text(target.clone())),
            RawEvent::Said(RawMessage::Text(text)) if text == "bye" => {
                links.say(key, RawMessage::Text("good bye".into()));
                links.hang_up(key);
                links.say(key, RawMessage::Text("nobody hears this".into()));
            }
            RawEvent::Said(RawMessage::Text(text)) if text == "talk on" => {
                (0..20_000).for_each(|_| links.say(key, RawMessage::Binary(vec![7; 1_000])));
            }
            RawEvent::Said(words) => links.say(key, words.clone()),
            RawEvent::TooLong | RawEvent::NoText => {
                links.say(key, RawMessage::Text(format!("{event:?}")));
                links.hang_up(key);
            }
            RawEvent::Ended(_) => {}
        }
        let _ = self.heard.send(event);
    }

    fn wake_at(&self) -> Option<Time> {
        None
    }
}

struct Listener {
    addr: SocketAddr,
    heard: mpsc::Receiver<RawEvent>,
    _stop: oneshot::Sender<()>,
}

fn listen() -> Listener {
    let (ready, started) = mpsc::channel();
    let (heard, hears) = mpsc::channel();
    let (_stop, stopped) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        block_on(async move {
            let site = Site { pages: Some(Arc::new(Rooms)), ..Site::default() };
            let endpoint = websocket::listen(LOCALHOST.parse().unwrap(), None, site).await.unwrap();
            ready.send(endpoint.local_addr().unwrap()).unwrap();
            let mut hub = Hub::new(Clock::start(), None);
            hub.add(Box::new(endpoint));
            let mut parrot = Parrot { heard };
            tokio::select! {
                _ = stopped => {}
                run = hub.run(&mut parrot) => run.unwrap(),
            }
        });
    });
    Listener { addr: started.recv().unwrap(), heard: hears, _stop }
}

impl Listener {
    async fn open(&self, path: &str) -> Result<WebSocketStream<TcpStream>, Error> {
        self.open_from(path, None).await
    }

    async fn open_from(&self, path: &str, origin: Option<&str>) -> Result<WebSocketStream<TcpStream>, Error> {
        let stream = TcpStream::connect(self.addr).await.unwrap();
        let mut request = format!("ws://{}{path}", self.addr).into_client_request().unwrap();
        if let Some(origin) = origin {
            request.headers_mut().insert("origin", origin.parse().unwrap());
        }
        Ok(tokio_tungstenite::client_async(request, stream).await?.0)
    }

    /// Opens a raw WebSocket that has begun.
    async fn on_raw(&self) -> WebSocketStream<TcpStream> {
        let mut socket = self.open("/talk?name=ada").await.unwrap();
        assert_eq!(next(&mut socket).await, Some(Message::text("/talk?name=ada")));
        assert!(matches!(self.hear(), RawEvent::Began { from, .. } if from.ip() == self.addr.ip()));
        socket
    }

    fn hear(&self) -> RawEvent {
        self.heard.recv_timeout(IN_VAIN).unwrap()
    }
}

/// The next message, or the end.
async fn next(socket: &mut WebSocketStream<TcpStream>) -> Option<Message> {
    match tokio::time::timeout(IN_VAIN, socket.next()).await.unwrap() {
        Some(Ok(Message::Close(_))) | None => None,
        Some(message) => message.ok(),
    }
}

#[test]
fn text_and_binary_messages_go_both_ways_until_a_close() {
    let listener = listen();
    block_on(async {
        let mut socket = listener.on_raw().await;
        for message in
            [Message::text("héllo"), Message::binary(vec![1, 2, 3]), Message::binary(vec![5; MAX_MESSAGE])]
        {
            socket.send(message.clone()).await.unwrap();
            assert_eq!(next(&mut socket).await, Some(message));
            assert!(matches!(listener.hear(), RawEvent::Said(_)));
        }
        socket.send(Message::text("bye")).await.unwrap();
        assert_eq!(next(&mut socket).await, Some(Message::text("good bye")));
        assert_eq!(next(&mut socket).await, None);
        assert!(matches!(listener.hear(), RawEvent::Said(_)));
        assert_eq!(listener.hear(), RawEvent::Ended(Gone::Closed));

        let mut socket = listener.on_raw().await;
        socket.close(None).await.unwrap();
        assert_eq!(listener.hear(), RawEvent::Ended(Gone::Closed));
    });
}

#[test]
fn too_long_messages_and_bad_text_are_answered_before_the_close() {
    let listener = listen();
    let no_text = Frame::message(vec![0xff, 0xfe], OpCode::Data(Data::Text), true);
    let broken = [
        (Message::binary(vec![0; MAX_MESSAGE + 1]), RawEvent::TooLong),
        (Message::text("x".repeat(5 * MAX_MESSAGE)), RawEvent::TooLong),
        (Message::Frame(no_text), RawEvent::NoText),
    ];
    block_on(async {
        for (message, heard) in broken {
            let mut socket = listener.on_raw().await;
            // It may be cut off while it sends, but not before it can read the reason.
            let _ = socket.send(message).await;
            assert_eq!(next(&mut socket).await, Some(Message::text(format!("{heard:?}"))));
            assert_eq!(listener.hear(), heard);
            assert_eq!(listener.hear(), RawEvent::Ended(Gone::Closed));
        }
    });
}

#[test]
fn a_peer_that_does_not_read_is_dropped_alone() {
    let listener = listen();
    block_on(async {
        let mut deaf = listener.on_raw().await;
        deaf.send(Message::text("talk on")).await.unwrap();
        assert!(matches!(listener.hear(), RawEvent::Said(_)));
        assert_eq!(listener.hear(), RawEvent::Ended(Gone::Limit("too much waits to be written")));
        let mut other = listener.on_raw().await;
        other.send(Message::text("still here?")).await.unwrap();
        assert_eq!(next(&mut other).await, Some(Message::text("still here?")));
    });
}

#[test]
fn other_origins_and_refused_visitors_get_no_raw_websocket() {
    let listener = listen();
    block_on(async {
        let status = |opened: Result<_, Error>| match opened.map(|_: WebSocketStream<TcpStream>| ()) {
            Err(Error::Http(response)) => response.status().as_u16(),
            other => panic!("{other:?}"),
        };
        assert_eq!(status(listener.open_from("/talk", Some("https://evil.example")).await), 403);
        assert_eq!(status(listener.open("/closed").await), 401);
        let own = format!("http://{}", listener.addr);
        assert!(listener.open_from("/talk", Some(&own)).await.is_ok());
        let mut link = listener.open("/ws").await.unwrap();
        link.send(Message::text("not a hello")).await.unwrap();
        assert_eq!(next(&mut link).await, None, "elsewhere there are links only");
    });
}
