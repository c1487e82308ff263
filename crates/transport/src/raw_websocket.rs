//! Raw WebSockets: their whole messages, text or binary, are the application's own protocol.
//!
//! The limits are those of links. A peer that exceeds one is not cut off at once: the application sends the reason, and
//! closes.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::connection_slots::ConnectionSlot;
use crate::endpoint::{Gone, LinkId, RawEvent, RawMessage};
use crate::rate_limit::RateLimiter;
use crate::tasks::{Event, LAST_WORDS, Reporter, Running};
use crate::websocket::{
    IDLE, Io, MAX_MESSAGE, MESSAGE_BURST, MESSAGES_PER_SECOND, Reader, config, failed, open, write,
};

/// Messages of up to this length are read to their end, so that a refusal with a reason arrives; longer ones are not.
const MAX_READ: usize = 4 * MAX_MESSAGE;

/// How long a peer may go on sending after the close. Cut off earlier it might not read the reason.
const MAX_DEAF: Duration = LAST_WORDS;

/// Runs an upgraded connection until either side ends it. It has proven nothing, so it keeps its slot among those of
/// its address.
pub(crate) async fn serve_talk<S: Io>(
    stream: S,
    early: Bytes,
    from: SocketAddr,
    target: String,
    _place: ConnectionSlot,
    reporter: &Reporter,
) -> Option<()> {
    let config = config().max_message_size(Some(MAX_READ)).max_frame_size(Some(MAX_READ));
    let (writer, reader) = open(stream, early, config).await;
    let (outbox, mut inbox) = reporter.connection();
    let link = reporter.new_link();
    let event = RawEvent::Began { from, target };
    reporter.report(Event::Raw { link, event, outbox: Some(outbox) }).await.then_some(())?;
    let mut reading = Running::spawn(read(link, reader, reporter.clone()));
    let end = inbox.end();
    let why = tokio::select! {
        why = write(writer, inbox) => why,
        () = end => Gone::Limit("the last words were not taken"),
    };
    let _ = tokio::time::timeout(MAX_DEAF, reading.ended()).await;
    reporter.report(Event::Gone { link, why }).await;
    Some(())
}

/// Passes on messages, rate-limited; reports the end of the connection.
async fn read<S: Io>(link: LinkId, mut reader: Reader<S>, reporter: Reporter) {
    let mut limiter = RateLimiter::new(MESSAGES_PER_SECOND, MESSAGE_BURST);
    let why = loop {
        let (event, more) = match tokio::time::timeout(IDLE, reader.next()).await {
            Ok(Some(Ok(Message::Close(_))) | None) => break Gone::Closed,
            Ok(Some(Ok(message))) => (heard(message), true),
            // The stream is unusable, but its peer can still be sent the reason.
            Ok(Some(Err(WsError::Capacity(_)))) => (Some(RawEvent::TooLong), false),
            Ok(Some(Err(WsError::Utf8(_)))) => (Some(RawEvent::NoText), false),
            Ok(Some(Err(error))) => break failed(&error),
            Err(_) => break Gone::Limit("nothing came for too long"),
        };
        if let Some(event) = event {
            let is_heard = reporter.report(Event::Raw { link, event, outbox: None }).await;
            if !is_heard || !more {
                return;
            }
        }
        if let Some(wait) = limiter.take(Instant::now(), 1) {
            tokio::time::sleep(wait).await;
        }
    };
    reporter.report(Event::Gone { link, why }).await;
}

fn heard(message: Message) -> Option<RawEvent> {
    match message {
        message if message.len() > MAX_MESSAGE => Some(RawEvent::TooLong),
        Message::Text(text) => Some(RawEvent::Said(RawMessage::Text(text.as_str().to_owned()))),
        Message::Binary(bytes) => Some(RawEvent::Said(RawMessage::Binary(bytes.into()))),
        // The library handles pings and pongs.
        _ => None,
    }
}

/// A raw WebSocket client, for programs that speak another server's protocol.
pub struct Call(WebSocketStream<TcpStream>);

impl Call {
    /// Connects to `authority` (a name or address with a port) at a path, without TLS.
    pub async fn open(authority: &str, path: &str) -> io::Result<Call> {
        let stream = TcpStream::connect(authority).await?;
        stream.set_nodelay(true)?;
        let called = client_async(format!("ws://{authority}{path}"), stream).await;
        called.map(|(socket, _)| Call(socket)).map_err(io::Error::other)
    }

    /// Sends a message.
    pub async fn say(&mut self, words: RawMessage) -> io::Result<()> {
        let message = match words {
            RawMessage::Text(text) => Message::text(text),
            RawMessage::Binary(bytes) => Message::binary(bytes),
        };
        self.0.send(message).await.map_err(io::Error::other)
    }

    /// Receives the next message; `None` once the peer has closed.
    pub async fn hear(&mut self) -> Option<RawMessage> {
        loop {
            match self.0.next().await?.ok()? {
                Message::Text(text) => return Some(RawMessage::Text(text.as_str().to_owned())),
                Message::Binary(bytes) => return Some(RawMessage::Binary(bytes.into())),
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }
}
