//! The HTTP side of a WebSocket listener, and its time-outs.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use futures_util::SinkExt;
use sametick_transport::dial::Scheme;
use sametick_transport::endpoint::{Arrival, Endpoint};
use sametick_transport::site::{Bytes, Later, Origins, Pages, Request, Response, Site, Visitor};
use sametick_transport::websocket;
use sametick_wire::Time;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::echo::{LOCALHOST, Server, block_on};
use crate::raw::first_message;

const IN_VAIN: Duration = Duration::from_secs(10);

/// The server's answer to these bytes until it closes the connection.
fn answer(to: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(IN_VAIN)).unwrap();
    // The server may have closed before the end.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into()
}

const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

#[test]
fn a_request_without_an_upgrade_is_refused_and_closed() {
    let server = Server::open();
    let to = server.addr(Scheme::Ws);
    let status = |request: &str, status: &str| {
        let answer = answer(to, request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request}: {answer}");
        answer
    };
    let told = status("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "426");
    assert!(told.contains("upgrade: websocket") && told.contains("connection: close"), "{told}");
    let old =
        format!("GET /ws HTTP/1.1\r\nHost: localhost\r\n{UPGRADE}{KEY}Sec-WebSocket-Version: 8\r\n\r\n");
    assert!(status(&old, "426").contains("sec-websocket-version: 13"));
    let keyless =
        format!("GET /ws HTTP/1.1\r\nHost: localhost\r\n{UPGRADE}Sec-WebSocket-Version: 13\r\n\r\n");
    status(&keyless, "400");
    let posted =
        format!("POST /ws HTTP/1.1\r\nHost: localhost\r\n{UPGRADE}{KEY}Sec-WebSocket-Version: 13\r\n\r\n");
    status(&posted, "400");
    status(&format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(20_000)), "431");
    status(&format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X: x\r\n".repeat(200)), "431");
    status("nonsense\r\n\r\n", "400");
}

/// Serves the same large page to every visitor.
pub struct Poster(pub Bytes);

impl Pages for Poster {
    fn answer(&self, _: &Request<()>) -> Response<Bytes> {
        Response::new(self.0.clone())
    }
}

/// A listener with pages, in a thread of its own until this is dropped.
struct Listener {
    addr: SocketAddr,
    /// The source address of each hello.
    hellos: mpsc::Receiver<IpAddr>,
    _stop: oneshot::Sender<()>,
}

fn start(site: Site) -> Listener {
    let (ready, started) = mpsc::channel();
    let (came, hellos) = mpsc::channel();
    let (_stop, stopped) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        block_on(async move {
            let mut endpoint = websocket::listen(LOCALHOST.parse().unwrap(), None, site).await.unwrap();
            ready.send(endpoint.local_addr().unwrap()).unwrap();
            let run = async {
                loop {
                    let arrived = poll_fn(|cx| {
                        endpoint.poll(cx, Time::ZERO, &mut |arrival| {
                            if let Arrival::Hello { from, .. } = arrival {
                                let _ = came.send(from.ip());
                            }
                        })
                    });
                    arrived.await.unwrap();
                }
            };
            tokio::select! {
                _ = stopped => {}
                () = run => {}
            }
        });
    });
    Listener { addr: started.recv().unwrap(), hellos, _stop }
}

#[test]
fn a_connection_answers_rate_limited_requests_then_upgrades() {
    let listener = start(Site { pages: Some(Arc::new(Poster("hello".into()))), ..Site::default() });
    block_on(async {
        let mut stream = tokio::net::TcpStream::connect(listener.addr).await.unwrap();
        let begun = Instant::now();
        let mut page = [0; 1_000];
        for _ in 0..80 {
            stream.write_all(b"GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
            let len = stream.read(&mut page).await.unwrap();
            assert!(page[..len].starts_with(b"HTTP/1.1 200") && page[..len].ends_with(b"hello"));
        }
        // 60 at once, then 20 a second.
        assert!(begun.elapsed() >= Duration::from_millis(900), "{:?}", begun.elapsed());
        let url = format!("ws://{}/ws", listener.addr);
        let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        socket.send(Message::binary(first_message())).await.unwrap();
        assert_eq!(listener.hellos.recv_timeout(IN_VAIN), Ok(listener.addr.ip()));
    });
}

/// Answers at `/later` once the test sends the answer, which is in it.
struct Oracle(Mutex<Option<oneshot::Receiver<&'static str>>>);

impl Pages for Oracle {
    fn answer(&self, _: &Request<()>) -> Response<Bytes> {
        Response::new("now".into())
    }

    fn answer_later(&self, request: &Request<()>, visitor: &Visitor) -> Option<Later> {
        if request.uri().path() != "/later" {
            return None;
        }
        let (told, visitor) = (self.0.lock().unwrap().take()?, *visitor);
        Some(Box::pin(async move {
            let told = told.await.unwrap();
            Response::new(format!("{told} {} {}", visitor.ip, visitor.is_welcome).into())
        }))
    }
}

#[test]
fn a_delayed_answer_does_not_delay_other_requests() {
    for (origin, is_welcome) in [("", "true"), ("Origin: http://other.example\r\n", "false")] {
        let (tell, told) = oneshot::channel();
        let pages = Oracle(Mutex::new(Some(told)));
        let listener = start(Site { pages: Some(Arc::new(pages)), ..Site::default() });
        let ask =
            |path| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{origin}Connection: close\r\n\r\n");
        let to = listener.addr;
        let later = ask("/later");
        let later = std::thread::spawn(move || answer(to, &later));
        // The other request may not have arrived yet; it is not answered either way.
        assert!(answer(to, &ask("/")).ends_with("now"));
        tell.send("yes").unwrap();
        assert!(later.join().unwrap().ends_with(&format!("yes 127.0.0.1 {is_welcome}")));
    }
}

#[test]
fn a_disconnected_visitor_is_not_waited_for() {
    let (mut tell, told) = oneshot::channel();
    let listener = start(Site { pages: Some(Arc::new(Oracle(Mutex::new(Some(told))))), ..Site::default() });
    let mut stream = TcpStream::connect(listener.addr).unwrap();
    stream.write_all(b"GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    drop(stream);
    block_on(async { tokio::time::timeout(IN_VAIN, tell.closed()).await.unwrap() });
}

#[test]
fn behind_a_proxy_the_address_it_names_is_the_one_that_counts() {
    // Both ends of more than five hundred connections.
    sametick_transport::files::raise_limit();
    let origins = Origins { allowed: vec!["https://example.org".into()], ..Origins::default() };
    let site = Site { origins, behind_proxy: true, ..Site::default() };
    let listener = start(site);
    block_on(async {
        let stream = tokio::net::TcpStream::connect(listener.addr).await.unwrap();
        let mut request = format!("ws://{}/ws", listener.addr).into_client_request().unwrap();
        let headers = request.headers_mut();
        headers.insert("x-forwarded-for", "6.6.6.6, 203.0.113.7".parse().unwrap());
        headers.insert("x-forwarded-host", "example.org".parse().unwrap());
        headers.insert("origin", "https://example.org".parse().unwrap());
        let (mut socket, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
        socket.send(Message::binary(first_message())).await.unwrap();
        let named: IpAddr = "203.0.113.7".parse().unwrap();
        assert_eq!(listener.hellos.recv_timeout(IN_VAIN), Ok(named));
    });
    let from = |ip: &str| {
        format!(
            "GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: {ip}\r\n{UPGRADE}{KEY}Sec-WebSocket-Version: 13\r\n\r\n"
        )
    };
    let open = |ip: &str| {
        let mut stream = TcpStream::connect(listener.addr).unwrap();
        stream.set_read_timeout(Some(IN_VAIN)).unwrap();
        stream.write_all(from(ip).as_bytes()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        (stream, String::from_utf8_lossy(&status).into_owned())
    };
    let idle: Vec<_> = (0..512).map(|_| open("192.0.2.1")).collect();
    assert!(idle.iter().all(|(_, status)| status.ends_with("101")));
    assert!(open("192.0.2.1").1.ends_with("429"), "one address has so many places");
    assert!(open("192.0.2.2").1.ends_with("101"), "another has its own");
}

#[test]
fn a_slow_page_reader_holds_neither_memory_nor_connection() {
    let page = Bytes::from(vec![b'x'; 8 << 20]);
    let listener = start(Site { pages: Some(Arc::new(Poster(page))), ..Site::default() });
    let slow: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut stream = TcpStream::connect(listener.addr).unwrap();
            stream.write_all(&b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(20)).unwrap();
            stream
        })
        .collect();
    // Meanwhile another gets all of it.
    let whole = answer(listener.addr, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(whole.len() > 8 << 20);
    drop(slow);
}
