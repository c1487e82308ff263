//! The HTTP client: its requests, and the answers it refuses.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use sametick_transport::endpoint::Endpoint;
use sametick_transport::fetch::{FetchError, Fetched, Fetcher, Limits, Url};
use sametick_transport::site::Site;
use sametick_transport::tls::{Certificate, Purpose, Trust};
use sametick_transport::websocket;

use crate::echo::{LOCALHOST, block_on};
use crate::http::Poster;

const LIMITS: Limits = Limits { time: Duration::from_secs(10), body: 100 };

fn get(trust: Trust, url: &str, key: Option<&str>, limits: Limits) -> Result<Fetched, FetchError> {
    let (fetcher, url): (_, Url) = (Fetcher::new(trust).unwrap(), url.parse().unwrap());
    block_on(async { fetcher.get(&url, key, limits).await })
}

/// The result for a server with this answer, and the request that the server got.
fn said(answer: String, key: Option<&str>) -> (Result<Fetched, FetchError>, String) {
    let listener = TcpListener::bind(LOCALHOST).unwrap();
    let url = format!("http://{}/x?y=z", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = Vec::new();
        let mut byte = [0];
        while !asked.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
            asked.push(byte[0]);
        }
        // The client hangs up once it has read enough.
        let _ = stream.write_all(answer.as_bytes());
        String::from_utf8(asked).unwrap()
    });
    (get(Trust::Public, &url, key, LIMITS), server.join().unwrap())
}

#[test]
fn an_answer_has_a_status_and_a_body_of_bounded_length() {
    let (fetched, asked) = said("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".into(), Some("key"));
    assert_eq!(fetched.unwrap(), Fetched { status: 200, body: "hi".into() });
    assert!(asked.starts_with("GET /x?y=z HTTP/1.1\r\n") && asked.contains("authorization: Bearer key\r\n"));
    let (fetched, asked) = said("HTTP/1.1 302 Found\r\nLocation: http://a/\r\n\r\nto the end".into(), None);
    assert_eq!(fetched.unwrap(), Fetched { status: 302, body: "to the end".into() });
    assert!(!asked.contains("authorization"), "{asked}");
    for long in [
        format!("HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n{}", "x".repeat(101)),
        format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(1_000_000)),
        format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n{}\r\n0\r\n\r\n",
            "x".repeat(101)
        ),
    ] {
        assert!(matches!(said(long, None).0, Err(FetchError::TooLong)));
    }
    for short in ["", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi"] {
        assert!(matches!(said(short.into(), None).0, Err(FetchError::Http(_))), "{short}");
    }
}

#[test]
fn a_server_that_does_not_answer_times_out() {
    let listener = TcpListener::bind(LOCALHOST).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let soon = Limits { time: Duration::from_millis(50), ..LIMITS };
    assert!(matches!(get(Trust::Public, &url, None, soon), Err(FetchError::TooSlow)));
    drop(listener);
    assert!(matches!(get(Trust::Public, &url, None, LIMITS), Err(FetchError::Connect(_))));
    assert!(matches!(get(Trust::Public, &url, Some("a\nb"), LIMITS), Err(FetchError::Unspeakable)));
}

#[test]
fn over_tls_only_the_right_server_is_trusted() {
    let certificate = Certificate::self_signed(&["localhost".into()], Purpose::Native).unwrap();
    let hash = certificate.hash();
    block_on(async {
        let site = Site { pages: Some(Arc::new(Poster("hello".into()))), ..Site::default() };
        let listening =
            websocket::listen(LOCALHOST.parse().unwrap(), Some(&certificate), site).await.unwrap();
        let url = format!("https://{}/", listening.local_addr().unwrap()).parse().unwrap();
        let fetched = Fetcher::new(Trust::Pinned(hash)).unwrap().get(&url, None, LIMITS).await.unwrap();
        assert_eq!((fetched.status, &*fetched.body), (200, &b"hello"[..]));
        let stranger = Fetcher::new(Trust::Public).unwrap().get(&url, None, LIMITS).await;
        assert!(matches!(stranger, Err(FetchError::Tls(_))), "{stranger:?}");
    });
}
