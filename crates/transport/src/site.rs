//! What a listener for browsers is told: whose pages may connect, and what it shows to those who only look.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

pub use bytes::Bytes;
pub use hyper::{HeaderMap, Method, Request, Response, StatusCode, header};

/// Answers requests that do not ask for a link. It is called on the thread that runs the links, so it looks things up and
/// does not work them out.
pub trait Pages: Send + Sync + 'static {
    /// The answer to one request, whose body, if it has one, nobody reads.
    fn answer(&self, request: &Request<()>) -> Response<Bytes>;

    /// The answer to a request that has to ask somebody else first, if this is one: then [`Pages::answer`] is not asked.
    /// The work begins when it is polled, which may be later, at the visitor's pace; it is dropped if they go away.
    fn answer_later(&self, request: &Request<()>, visitor: &Visitor) -> Option<Later> {
        let _ = (request, visitor);
        None
    }

    /// What a request for a WebSocket is for, if it may be had.
    fn upgrade(&self, request: &Request<()>) -> Upgrade {
        let _ = request;
        Upgrade::Link
    }
}

/// An answer that takes its time; links and other requests go on meanwhile.
pub type Later = Pin<Box<dyn Future<Output = Response<Bytes>> + Send>>;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visitor {
    /// From where; behind a proxy, from where it says.
    pub ip: IpAddr,
    /// Whether it is no page, or one that could open a link.
    pub is_welcome: bool,
}

/// What a WebSocket is for.
#[derive(Debug)]
pub enum Upgrade {
    /// A link.
    Link,
    /// A [talk](crate::endpoint::Talk): its messages are the application's.
    Talk,
    /// Nothing: whoever asks is answered this.
    Refused(Response<Bytes>),
}

/// What a TCP listener is for, besides links.
#[derive(Clone, Default)]
pub struct Site {
    /// Whose pages may open a link.
    pub origins: Origins,
    /// What others see; without it they are told to upgrade.
    pub pages: Option<Arc<dyn Pages>>,
    /// Whether a proxy stands before it, which says who really asks (`X-Forwarded-For`) and for which host. Only where
    /// nobody else reaches the port: whoever does could say anything.
    pub behind_proxy: bool,
}

impl From<Origins> for Site {
    /// Links only.
    fn from(origins: Origins) -> Site {
        Site { origins, ..Site::default() }
    }
}

/// Which pages may open a connection. Programs other than browsers send no origin and are not asked.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// Besides pages that came from the host they connect to: `https://example.org`.
    pub allowed: Vec<String>,
    /// Pages that came from this port of the host they connect to are welcome as well.
    pub pages_port: Option<u16>,
}

impl Origins {
    /// Whether a page of this origin may connect to this host.
    pub fn admit(&self, origin: Option<&str>, host: Option<&str>) -> bool {
        let Some(origin) = origin else { return true };
        if self.allowed.iter().any(|allowed| allowed == origin) {
            return true;
        }
        let (Some((scheme, from)), Some(host)) = (origin.split_once("://"), host) else { return false };
        let ((from_name, from_port), (name, port)) = (split_port(from), split_port(host));
        let default_port = if scheme == "https" { 443 } else { 80 };
        let is_pages_port = self.pages_port == Some(from_port.unwrap_or(default_port));
        same_host(from_name, name) && (from_port == port || is_pages_port)
    }
}

/// A machine's names for itself are one: a browser may know it by one and reach it by another.
fn same_host(one: &str, other: &str) -> bool {
    let is_own = |name| matches!(name, "localhost" | "127.0.0.1" | "[::1]");
    !one.is_empty() && (one == other || is_own(one) && is_own(other))
}

/// The name and the port of `name:port` or `[v6]:port`; all of it is a name if the port is none.
fn split_port(authority: &str) -> (&str, Option<u16>) {
    let split = authority.rsplit_once(':').and_then(|(name, port)| Some((name, port.parse().ok()?)));
    split.map_or((authority, None), |(name, port)| (name, Some(port)))
}

/// Who asks and for which host, as far as the headers say.
pub(crate) struct Caller<'a> {
    /// Named by a proxy.
    pub ip: Option<IpAddr>,
    /// The host that was asked for.
    pub host: Option<&'a str>,
}

impl Site {
    /// Reads the headers, those of a proxy only if there is one.
    pub(crate) fn caller<'a>(&self, headers: &'a HeaderMap) -> Caller<'a> {
        let host = text(headers, header::HOST.as_str());
        if !self.behind_proxy {
            return Caller { ip: None, host };
        }
        // A list grows at its end, so only its last entry was written by the proxy that called us.
        let last = |name| {
            let value = headers.get_all(name).iter().next_back()?.to_str().ok()?;
            value.rsplit(',').next().map(str::trim)
        };
        let ip = last("x-forwarded-for").and_then(|ip| ip.trim_matches(['[', ']']).parse().ok());
        Caller { ip, host: last("x-forwarded-host").or(host) }
    }
}

/// A header's value. What is no text is not nothing: it must not pass for a header that is missing.
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_the_same_host_may_connect_and_of_another_port_only_if_it_is_theirs() {
        let origins = Origins { allowed: vec!["https://friend.example".into()], pages_port: None };
        let admit = |origins: &Origins, origin, host| origins.admit(Some(origin), Some(host));
        assert!(origins.admit(None, None));
        assert!(!origins.admit(Some("http://a"), None));
        assert!(admit(&origins, "http://a:8080", "a:8080"));
        assert!(!admit(&origins, "http://a:8080", "a:9000"));
        assert!(!admit(&origins, "null", "null"));
        assert!(!admit(&origins, "http://", ""));
        assert!(admit(&origins, "http://localhost:8080", "127.0.0.1:8080"));
        assert!(!admit(&origins, "http://localhost:3000", "127.0.0.1:8080"));
        assert!(!admit(&origins, "http://a", "127.0.0.1:8080"));
        assert!(!admit(&origins, "http://a:x", "a:y"), "a port that is none");
        assert!(admit(&origins, "https://friend.example", "a"));
        let beside = Origins { pages_port: Some(8080), ..Origins::default() };
        assert!(admit(&beside, "http://a:8080", "a:9000"));
        assert!(admit(&beside, "http://[::1]:8080", "[::1]:9000"));
        assert!(!admit(&beside, "http://b:8080", "a:9000"));
        assert!(!admit(&beside, "http://a", "a:9000"));
        let standard = Origins { pages_port: Some(443), ..Origins::default() };
        assert!(admit(&standard, "https://a", "a:9000"));
        assert!(admit(&standard, "https://[::1]", "[::1]:9000"));
        assert!(!admit(&standard, "http://a", "a:9000"));
    }

    #[test]
    fn only_the_proxys_own_word_counts_and_only_where_there_is_one() {
        let mut headers = HeaderMap::new();
        headers.insert("host", "inside:8080".parse().unwrap());
        headers.append("x-forwarded-for", "6.6.6.6".parse().unwrap());
        headers.append("x-forwarded-for", "7.7.7.7, 2001:db8::1".parse().unwrap());
        headers.insert("x-forwarded-host", "evil.example, example.org".parse().unwrap());
        let site = Site::default();
        let caller = site.caller(&headers);
        assert_eq!((caller.ip, caller.host), (None, Some("inside:8080")));
        let site = Site { behind_proxy: true, ..Site::default() };
        let caller = site.caller(&headers);
        assert_eq!((caller.ip, caller.host), ("2001:db8::1".parse().ok(), Some("example.org")));
        headers.append("x-forwarded-for", "unknown".parse().unwrap());
        assert_eq!(site.caller(&headers).ip, None);
    }
}
