//! A small HTTP client: one `GET` over HTTP/1.1, bounded in time and size. It follows no redirects, and keeps no
//! cookies and no connections.

use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper::{Request, Response, Uri, header};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::tls::{Trust, client_config};
use crate::websocket::Io;

/// The user agent.
const AGENT: &str = concat!("sametick/", env!("CARGO_PKG_VERSION"));

/// A URL: `https://host[:port]/path?query`, or the same with `http`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    is_secure: bool,
    /// As in the URL; an IPv6 address has its brackets.
    host: String,
    port: Option<u16>,
    /// Path and query.
    target: String,
}

/// Why a text is no [`Url`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a URL such as https://example.org/path, without a name or password in it")]
pub struct NoUrl;

impl Url {
    /// Whether the request is encrypted, or does not leave this machine.
    pub fn is_private(&self) -> bool {
        let is_loopback = |ip: IpAddr| ip.is_loopback();
        self.is_secure || self.host == "localhost" || self.name().parse().is_ok_and(is_loopback)
    }

    /// The host without brackets.
    fn name(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    fn authority(&self) -> String {
        self.port.map_or_else(|| self.host.clone(), |port| format!("{}:{port}", self.host))
    }
}

impl FromStr for Url {
    type Err = NoUrl;

    fn from_str(text: &str) -> Result<Url, NoUrl> {
        let uri: Uri = text.parse().map_err(|_| NoUrl)?;
        let is_secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(NoUrl),
        };
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or(NoUrl)?;
        let host = authority.host().to_owned();
        // `host:` and `host:70000` have no readable port, but are not without one either.
        let is_whole = authority.port_u16().is_some() || authority.as_str() == host;
        if host.is_empty() || !is_whole || text.contains('#') {
            return Err(NoUrl);
        }
        let target = uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
        Ok(Url { is_secure, host, port: authority.port_u16(), target })
    }
}

/// The limits of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The total time.
    pub time: Duration,
    /// Bytes of the answer's body.
    pub body: usize,
}

/// The answer of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Bytes,
}

/// Why there is no answer. The text contains nothing of the request.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No server accepts the connection.
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    /// The server's certificate is wrong, or it does not speak TLS.
    #[error("no TLS: {0}")]
    Tls(io::Error),
    /// The server does not speak HTTP, or stopped in the middle.
    #[error("no HTTP: {0}")]
    Http(#[from] hyper::Error),
    /// The request has invalid characters.
    #[error("the key or the URL has characters that HTTP does not allow")]
    Unspeakable,
    /// The answer is too long.
    #[error("the answer is too long")]
    TooLong,
    /// It took too long.
    #[error("no answer in time")]
    TooSlow,
}

/// The HTTP client.
#[derive(Clone)]
pub struct Fetcher {
    tls: TlsConnector,
}

impl Fetcher {
    /// A client that trusts servers according to `trust`.
    pub fn new(trust: Trust) -> Result<Fetcher, rustls::Error> {
        Ok(Fetcher { tls: TlsConnector::from(Arc::new(client_config(trust, &[b"http/1.1"])?)) })
    }

    /// Requests a URL; with a key, as its bearer token.
    pub async fn get(&self, url: &Url, key: Option<&str>, limits: Limits) -> Result<Fetched, FetchError> {
        let request = request(url, key)?;
        let asking = async {
            let port = url.port.unwrap_or(if url.is_secure { 443 } else { 80 });
            let stream = TcpStream::connect((url.name(), port)).await.map_err(FetchError::Connect)?;
            if !url.is_secure {
                return ask(stream, request, limits.body).await;
            }
            let name = ServerName::try_from(url.name().to_owned())
                .map_err(|error| FetchError::Tls(io::Error::other(error)))?;
            let stream = self.tls.connect(name, stream).await.map_err(FetchError::Tls)?;
            ask(stream, request, limits.body).await
        };
        tokio::time::timeout(limits.time, asking).await.unwrap_or(Err(FetchError::TooSlow))
    }
}

fn request(url: &Url, key: Option<&str>) -> Result<Request<Empty<Bytes>>, FetchError> {
    let mut request = Request::get(&url.target)
        .header(header::HOST, url.authority())
        .header(header::USER_AGENT, AGENT)
        .header(header::ACCEPT, "application/json")
        .header(header::CONNECTION, "close");
    if let Some(key) = key {
        let bearer = header::HeaderValue::from_str(&format!("Bearer {key}"));
        let mut bearer = bearer.map_err(|_| FetchError::Unspeakable)?;
        bearer.set_sensitive(true);
        request = request.header(header::AUTHORIZATION, bearer);
    }
    request.body(Empty::new()).map_err(|_| FetchError::Unspeakable)
}

async fn ask<S: Io>(
    stream: S,
    request: Request<Empty<Bytes>>,
    max_body: usize,
) -> Result<Fetched, FetchError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let mut connection = pin!(connection);
    let mut reading = pin!(async { read(sender.send_request(request).await?, max_body).await });
    let read = tokio::select! {
        read = &mut reading => Some(read),
        // The server has closed; bytes it sent before may still wait to be read.
        _ = &mut connection => None,
    };
    match read {
        Some(read) => read,
        None => reading.await,
    }
}

async fn read(response: Response<hyper::body::Incoming>, max: usize) -> Result<Fetched, FetchError> {
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), max).collect().await;
    let body = body.map_err(|error| match error.downcast::<hyper::Error>() {
        Ok(error) => FetchError::Http(*error),
        Err(other) => {
            debug_assert!(other.is::<LengthLimitError>());
            FetchError::TooLong
        }
    })?;
    Ok(Fetched { status, body: body.to_bytes() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed_strictly() {
        let url: Url = "https://example.org/.well-known/jwks.json?a=b".parse().unwrap();
        assert_eq!((url.authority(), url.name()), ("example.org".into(), "example.org"));
        assert_eq!((url.is_private(), url.port, &*url.target), (true, None, "/.well-known/jwks.json?a=b"));
        let url: Url = "http://[::1]:81".parse().unwrap();
        assert_eq!((url.authority(), url.name(), &*url.target), ("[::1]:81".into(), "::1", "/"));
        for (text, is_private) in [
            ("http://localhost:9/x", true),
            ("http://127.8.0.1/", true),
            ("http://example.org/", false),
            ("http://localhost.example.org/", false),
            ("http://192.168.0.1/", false),
        ] {
            assert_eq!(text.parse::<Url>().map(|url| url.is_private()), Ok(is_private), "{text}");
        }
        for bad in [
            "",
            "/",
            "example.org",
            "ftp://a/",
            "https://",
            "https://u:p@a/",
            "https://a:/",
            "https://a:70000/",
            "https://a b/",
            "https://a/#x",
        ] {
            assert_eq!(bad.parse::<Url>(), Err(NoUrl), "{bad}");
        }
    }
}
