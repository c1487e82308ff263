//! The settings of a listener for browsers: its host names, the origins that may connect, and the pages it serves.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

pub use bytes::Bytes;
pub use hyper::{HeaderMap, Method, Request, Response, StatusCode, header};

use crate::connection_slots::ConnectionSlots;

/// Answers requests that do not open a link. It is called on the thread that runs the links, so it must be quick.
pub trait Pages: Send + Sync + 'static {
    /// The answer to one request; a body of the request is not read.
    fn answer(&self, request: &Request<()>) -> Response<Bytes>;

    /// The future of an answer that needs another server, if this is such a request: then [`Pages::answer`] is not
    /// called. The work begins when it is polled, which the visitor's rate limit may delay; it is dropped if the
    /// visitor disconnects.
    fn answer_later(&self, request: &Request<()>, visitor: &Visitor) -> Option<Later> {
        let _ = (request, visitor);
        None
    }

    /// The purpose of a WebSocket request, if it is allowed.
    fn upgrade(&self, request: &Request<()>) -> Upgrade {
        let _ = request;
        Upgrade::Link
    }
}

/// An answer that takes time; links and other requests go on meanwhile.
pub type Later = Pin<Box<dyn Future<Output = Response<Bytes>> + Send>>;

/// The client of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visitor {
    /// Its address; behind a proxy, the one the proxy names.
    pub ip: IpAddr,
    /// Whether it is not a page, or a page whose origin may open a link.
    pub is_welcome: bool,
}

/// The purpose of a WebSocket.
#[derive(Debug)]
pub enum Upgrade {
    /// A link.
    Link,
    /// A [raw WebSocket](crate::endpoint::RawEvent): its messages are the application's.
    Raw,
    /// None: this is the answer to the request.
    Refused(Response<Bytes>),
}

/// The settings of a TCP listener.
#[derive(Clone, Default)]
pub struct Site {
    /// The origins that may open a link.
    pub origins: Origins,
    /// The pages for other requests; without them the answer is to upgrade.
    pub pages: Option<Arc<dyn Pages>>,
    /// Whether a proxy stands before it, which names the client (`X-Forwarded-For`) and the host. Only where the port
    /// is reachable through the proxy alone: other clients could forge these headers.
    pub behind_proxy: bool,
    /// The limits on connections.
    pub places: ConnectionSlots,
}

impl From<Origins> for Site {
    /// A site for links only.
    fn from(origins: Origins) -> Site {
        Site { origins, ..Site::default() }
    }
}

/// The origins that may connect. Programs other than browsers send no origin and are not checked.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// Allowed origins besides those of the host that is connected to: `https://example.org`.
    pub allowed: Vec<String>,
    /// Pages from this port of the host that is connected to are allowed as well.
    pub pages_port: Option<u16>,
    /// Names of this server besides those of the origins above.
    pub names: Vec<String>,
}

/// The machine's host name, if it has one.
static OWN_NAME: LazyLock<Option<String>> = LazyLock::new(|| {
    #[cfg(target_os = "linux")]
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    #[cfg(not(target_os = "linux"))]
    let name = std::env::var("COMPUTERNAME").or_else(|_| std::env::var("HOSTNAME")).ok();
    name.filter(|name| !name.is_empty())
});

impl Origins {
    /// Whether this is a name of this server, with or without a port. A page of another site can point its own name at
    /// this machine (DNS rebinding); to the browser it is then a page of this server, and only the name tells them
    /// apart. So only names pass that no other site can have: addresses, names of this machine and its local network,
    /// and configured ones.
    pub fn knows(&self, host: &str) -> bool {
        let (name, _) = split_port(host);
        let is_address = name.parse::<Ipv4Addr>().is_ok()
            || name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).is_some_and(is_ipv6);
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let is_within = |name: &str, zone| name.strip_suffix(zone).is_some_and(|name| name.ends_with('.'));
        let of_origins = self.allowed.iter().filter_map(|origin| origin.split_once("://"));
        let mut own = { of_origins }
            .map(|(_, host)| split_port(host).0)
            .chain(self.names.iter().map(String::as_str))
            .chain(OWN_NAME.as_deref());
        let is_local = name == "localhost" || is_within(&name, "localhost") || is_within(&name, "local");
        is_address || is_local || own.any(|own| !own.is_empty() && own.eq_ignore_ascii_case(&name))
    }
}

fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
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

/// Compares hosts; a machine's names for itself are equal: a browser may use different ones for page and connection.
fn same_host(one: &str, other: &str) -> bool {
    let is_own = |name| matches!(name, "localhost" | "127.0.0.1" | "[::1]");
    !one.is_empty() && (one == other || is_own(one) && is_own(other))
}

/// The name and the port of `name:port` or `[v6]:port`; all of it is a name if there is no valid port.
fn split_port(authority: &str) -> (&str, Option<u16>) {
    let split = authority.rsplit_once(':').and_then(|(name, port)| Some((name, port.parse().ok()?)));
    split.map_or((authority, None), |(name, port)| (name, Some(port)))
}

/// The client and the host of a request, by its headers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Caller<'a> {
    /// The client's address, if a proxy names it.
    pub ip: Option<IpAddr>,
    /// The host that was asked for.
    pub host: &'a str,
}

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadHost<'a> {
    /// It names no host.
    Missing,
    /// It names several: proxies and servers may each use another one.
    Several,
    /// It names one that this server is not.
    Unknown(&'a str),
}

impl Site {
    /// Reads the headers, those of a proxy only if there is one. Every named host has to be known.
    pub(crate) fn caller<'a>(&self, request: &'a Request<()>) -> Result<Caller<'a>, BadHost<'a>> {
        let headers = request.headers();
        let mut hosts = headers.get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or("?"));
        let host = hosts.next().ok_or(BadHost::Missing)?;
        if hosts.next().is_some() {
            return Err(BadHost::Several);
        }
        // A list grows at its end, so only its last entry was written by our own proxy.
        let last = |name| {
            let value = headers.get_all(name).iter().next_back()?.to_str().ok()?;
            value.rsplit(',').next().map(str::trim).filter(|_| self.behind_proxy)
        };
        let forwarded = last("x-forwarded-host");
        let in_target = request.uri().authority().map(hyper::http::uri::Authority::as_str);
        let mut named = [Some(host), forwarded, in_target].into_iter().flatten();
        if let Some(unknown) = named.find(|host| !self.origins.knows(host)) {
            return Err(BadHost::Unknown(unknown));
        }
        let ip = last("x-forwarded-for").and_then(|ip| ip.trim_matches(['[', ']']).parse().ok());
        Ok(Caller { ip, host: forwarded.unwrap_or(host) })
    }
}

/// A header's value. Invalid text is not treated as a missing header.
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_may_connect_to_their_host_from_its_known_ports() {
        let origins = Origins { allowed: vec!["https://friend.example".into()], ..Origins::default() };
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
    fn a_server_answers_to_addresses_local_names_and_its_own() {
        let origins = Origins {
            allowed: vec!["https://play.example.org".into(), "http://Games.example:8080".into()],
            names: vec!["host1.example.net".into()],
            ..Origins::default()
        };
        let own = OWN_NAME.clone().unwrap_or_else(|| "localhost".into());
        for known in [
            "127.0.0.1",
            "192.168.1.7:8080",
            "[::1]:8080",
            "[2001:db8::7]",
            "localhost",
            "LocalHost:8080",
            "localhost.",
            "app.localhost:1",
            "box.local",
            "box.local.:8080",
            "play.example.org",
            "PLAY.example.org:8443",
            "games.example:9",
            "host1.example.net:8081",
            &own,
            &format!("{own}:8080"),
        ] {
            assert!(origins.knows(known), "{known}");
        }
        for foreign in [
            "",
            ":8080",
            "evil.example",
            "evil.example:8080",
            "play.example.org.evil.example",
            "xplay.example.org",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evillocalhost",
            ".",
            "local",
            "mylocal",
            "[::1",
            "::1",
            "1.2.3",
            "play.example.org:x",
            "127.0.0.1:x",
            "?",
            "a b",
            "127.0.0.1@evil.example",
            "[evil]",
        ] {
            assert!(!origins.knows(foreign), "{foreign}");
        }
    }

    /// A request with these headers.
    fn request(target: &str, headers: &[(&'static str, &str)]) -> Request<()> {
        let mut request = Request::builder().uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn a_request_names_one_host_and_it_is_this_one() {
        let site = Site::default();
        let caller = |target: &str, headers: &[(&'static str, &str)]| {
            site.caller(&request(target, headers))
                .map(|caller| caller.host.to_owned())
                .map_err(|bad| format!("{bad:?}"))
        };
        assert_eq!(caller("/", &[("host", "localhost:80")]), Ok("localhost:80".into()));
        assert_eq!(caller("/", &[]), Err("Missing".into()));
        assert_eq!(caller("/", &[("host", "localhost"), ("host", "localhost")]), Err("Several".into()));
        assert_eq!(caller("/", &[("host", "evil.example")]), Err("Unknown(\"evil.example\")".into()));
        let absolute = caller("http://evil.example/", &[("host", "localhost")]);
        assert_eq!(absolute, Err("Unknown(\"evil.example\")".into()));
        assert!(caller("http://localhost/", &[("host", "localhost")]).is_ok());
    }

    #[test]
    fn proxy_headers_count_only_behind_a_proxy() {
        let origins = Origins { allowed: vec!["https://example.org".into()], ..Origins::default() };
        let site = Site { origins, ..Site::default() };
        let asked = request(
            "/",
            &[
                ("host", "127.0.0.1:8080"),
                ("x-forwarded-for", "6.6.6.6"),
                ("x-forwarded-for", "7.7.7.7, 2001:db8::1"),
                ("x-forwarded-host", "evil.example, example.org"),
            ],
        );
        assert_eq!(site.caller(&asked), Ok(Caller { ip: None, host: "127.0.0.1:8080" }));
        let site = Site { behind_proxy: true, ..site };
        let ip = "2001:db8::1".parse().ok();
        assert_eq!(site.caller(&asked), Ok(Caller { ip, host: "example.org" }));
        let unnamed = request("/", &[("host", "example.org"), ("x-forwarded-for", "unknown")]);
        assert_eq!(site.caller(&unnamed), Ok(Caller { ip: None, host: "example.org" }));
        // A proxy that passes on a header of its clients does not make it trustworthy.
        let own_word = request("/", &[("host", "evil.example"), ("x-forwarded-host", "example.org")]);
        assert_eq!(site.caller(&own_word), Err(BadHost::Unknown("evil.example")));
        let own_word = request("/", &[("host", "example.org"), ("x-forwarded-host", "evil.example")]);
        assert_eq!(site.caller(&own_word), Err(BadHost::Unknown("evil.example")));
    }
}
