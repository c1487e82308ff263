//! Serves the files of the web app, which the build embeds in this program in compressed forms.

use sametick_transport::site::{Bytes, HeaderMap, Response, StatusCode, header};

use super::{error, set};

/// A file as the build made it.
struct File {
    /// The URL path, with the first slash.
    path: &'static str,
    content_type: &'static str,
    /// The ETag: a hash of the content.
    tag: &'static str,
    /// Whether the name contains a hash of the content, so that it may be cached for ever.
    is_immutable: bool,
    plain: &'static [u8],
    gzip: Option<&'static [u8]>,
    brotli: Option<&'static [u8]>,
}

// `FILES`, sorted by path.
include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The page for every app path that is no file: the app does the routing.
const INDEX: &str = "/index.html";

/// The file at a path, or the app's page. Where the app has no page either (`is_place`), the page is sent with status
/// 404.
pub fn answer(path: &str, is_place: bool, headers: &HeaderMap) -> Response<Bytes> {
    match (find(path), find(INDEX)) {
        (Some(file), _) => file.answer(headers),
        (None, Some(app)) if is_place => app.answer(headers),
        (None, Some(app)) if !is_file(path) => app.answer_nowhere(headers),
        _ => error(StatusCode::NOT_FOUND, "there is no such file"),
    }
}

fn find(path: &str) -> Option<&'static File> {
    let path = if path == "/" { INDEX } else { path };
    FILES.binary_search_by(|file| file.path.cmp(path)).ok().and_then(|at| FILES.get(at))
}

/// Whether a path means a file: its name has a dot and is no session's name. A request for a missing script must not be
/// answered with the app's page.
fn is_file(path: &str) -> bool {
    let has_dot = path.rsplit('/').next().unwrap_or_default().contains('.');
    path.starts_with("/assets/") || has_dot && !path.starts_with("/play/")
}

impl File {
    /// The app's page with status 404. It is never answered as unchanged.
    fn answer_nowhere(&self, headers: &HeaderMap) -> Response<Bytes> {
        let mut asked = headers.clone();
        asked.remove(header::IF_NONE_MATCH);
        let mut response = self.answer(&asked);
        response.headers_mut().remove(header::ETAG);
        *response.status_mut() = StatusCode::NOT_FOUND;
        response
    }

    fn answer(&self, headers: &HeaderMap) -> Response<Bytes> {
        let accepts = |coding| accepts(headers, coding);
        let (body, coding) = match (self.brotli, self.gzip) {
            (Some(brotli), _) if accepts("br") => (brotli, Some("br")),
            (_, Some(gzip)) if accepts("gzip") => (gzip, Some("gzip")),
            _ => (self.plain, None),
        };
        // Each content coding has its own ETag.
        let tag =
            format!("\"{}{}\"", self.tag, coding.map(|coding| format!("-{coding}")).unwrap_or_default());
        let mut response = Response::new(Bytes::new());
        let told = response.headers_mut();
        let kept = if self.is_immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
        set(told, header::CACHE_CONTROL.as_str(), kept);
        set(told, header::ETAG.as_str(), &tag);
        set(told, header::VARY.as_str(), "accept-encoding");
        if is_known(headers, &tag) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        set(told, header::CONTENT_TYPE.as_str(), self.content_type);
        if let Some(coding) = coding {
            set(told, header::CONTENT_ENCODING.as_str(), coding);
        }
        *response.body_mut() = Bytes::from_static(body);
        response
    }
}

/// Whether the client accepts a coding: it is named with a weight above zero.
fn accepts(headers: &HeaderMap, coding: &str) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|offer| {
        let (name, weight) = offer.split_once(';').unwrap_or((offer, ""));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case(coding) && weight != Some(0.0)
    })
}

/// Whether the client has this content in its cache.
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let values = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|known| {
        let known = known.trim();
        known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: File = File {
        path: "/assets/app-0123abcd.js",
        content_type: "text/javascript; charset=utf-8",
        tag: "77",
        is_immutable: true,
        plain: b"plain",
        gzip: Some(b"gz"),
        brotli: Some(b"b"),
    };

    fn ask(file: &File, asked: &[(header::HeaderName, &str)]) -> (u16, Vec<u8>, HeaderMap) {
        let headers: HeaderMap =
            asked.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        let (head, body) = file.answer(&headers).into_parts();
        (head.status.as_u16(), body.to_vec(), head.headers)
    }

    #[test]
    fn the_smallest_accepted_coding_is_sent() {
        for (accepted, body, coding) in [
            ("gzip, deflate, br", &b"b"[..], Some("br")),
            ("gzip", b"gz", Some("gzip")),
            ("br;q=0, GZIP;q=0.5", b"gz", Some("gzip")),
            ("deflate, broken", b"plain", None),
        ] {
            let (status, sent, headers) = ask(&SCRIPT, &[(header::ACCEPT_ENCODING, accepted)]);
            assert_eq!((status, &sent[..]), (200, body), "{accepted}");
            assert_eq!(headers.get("content-encoding").map(|value| value.to_str().unwrap()), coding);
            assert_eq!(headers["vary"], "accept-encoding");
            assert_eq!(headers["cache-control"], "public, max-age=31536000, immutable");
            // The tag of the coding that was sent means not modified; that of another coding does not.
            let tag = headers["etag"].to_str().unwrap();
            let known = [(header::ACCEPT_ENCODING, accepted), (header::IF_NONE_MATCH, tag)];
            let (status, sent, _) = ask(&SCRIPT, &known);
            assert_eq!((status, sent.len()), (304, 0));
            let known =
                [(header::ACCEPT_ENCODING, accepted), (header::IF_NONE_MATCH, "\"other\", W/\"77-x\"")];
            assert_eq!(ask(&SCRIPT, &known).0, 200);
        }
        assert_eq!(ask(&SCRIPT, &[(header::IF_NONE_MATCH, "\"1\", W/\"77\"")]).0, 304);
        assert_eq!(ask(&SCRIPT, &[(header::IF_NONE_MATCH, "*")]).0, 304);
    }

    #[test]
    fn app_paths_get_the_app_and_unknown_paths_are_not_found() {
        assert!(FILES.is_sorted_by_key(|file| file.path));
        let known: HeaderMap = [(header::IF_NONE_MATCH, "*".parse().unwrap())].into_iter().collect();
        for path in ["/", "/index.html", "/play/pong/amber-otter-4821", "/play/pong/v1.2"] {
            let response = answer(path, true, &HeaderMap::new());
            assert_eq!(response.status(), 200, "{path}");
            assert_eq!(response.headers()["content-type"], "text/html; charset=utf-8");
            assert_eq!(response.headers()["cache-control"], "no-cache");
            assert_eq!(answer(path, true, &known).status(), 304);
        }
        for path in ["/nonsense", "/play/chess/v1.2", "//etc"] {
            let response = answer(path, false, &known);
            assert_eq!(response.status(), 404, "{path}");
            assert_eq!(response.body(), answer("/", true, &HeaderMap::new()).body());
            assert_eq!(response.headers()["content-type"], "text/html; charset=utf-8");
            assert!(!response.headers().contains_key("etag"));
        }
        for path in ["/missing.js", "/assets/missing", "/../Cargo.toml", "/..%2fCargo.toml", "//etc/x.y"] {
            let response = answer(path, false, &HeaderMap::new());
            assert_eq!(response.status(), 404, "{path}");
            assert_eq!(response.headers()["content-type"], "application/json");
        }
    }
}
