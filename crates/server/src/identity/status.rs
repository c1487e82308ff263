//! Session status at the issuer: whether a session is still active.

use sametick_transport::fetch::{Fetched, NoUrl, Url};
use serde::Deserialize;

/// The placeholder for the session id in a status URL.
const PLACEHOLDER: &str = "{sid}";

/// The longest status answer that is read.
pub const MAX_STATUS_LEN: usize = 64 << 10;

/// A status URL with a placeholder for the session id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusUrl(String);

/// Why a text is no status URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoStatusUrl {
    /// It is no URL.
    #[error(transparent)]
    NoUrl(#[from] NoUrl),
    /// It has no placeholder.
    #[error("it has to hold {PLACEHOLDER}, where the name of the session goes")]
    NoPlaceholder,
}

impl StatusUrl {
    /// Parses a status URL.
    pub fn parse(text: &str) -> Result<StatusUrl, NoStatusUrl> {
        // With a placeholder before the path, a token could choose the host.
        let path = text.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
        if !path.is_some_and(|(_, path)| path.contains(PLACEHOLDER)) {
            return Err(NoStatusUrl::NoPlaceholder);
        }
        let url = StatusUrl(text.to_owned());
        url.of("x")?;
        Ok(url)
    }

    /// The status URL of one session.
    pub fn of(&self, session: &str) -> Result<Url, NoUrl> {
        self.0.replace(PLACEHOLDER, &encoded(session)).parse()
    }
}

/// A text percent-encoded as one path segment.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~');
    let encode = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}

/// The status of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The session is active.
    Active,
    /// The session is revoked.
    Revoked,
}

#[derive(Deserialize)]
struct Said {
    status: String,
}

/// The status in an answer; `None` if the answer has none.
pub fn standing(answer: &Fetched) -> Option<Standing> {
    match answer.status {
        404 | 410 => Some(Standing::Revoked),
        200..300 => {
            let said: Said = serde_json::from_slice(&answer.body).ok()?;
            Some(if said.status == "active" { Standing::Active } else { Standing::Revoked })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_active_only_if_the_issuer_says_so() {
        let said = |status, body: &'static str| standing(&Fetched { status, body: body.into() });
        assert_eq!(said(200, r#"{"id":"sess_1","status":"active"}"#), Some(Standing::Active));
        for over in ["revoked", "ended", "expired", "removed", "", "ACTIVE"] {
            let body = format!(r#"{{"status":"{over}"}}"#);
            assert_eq!(
                standing(&Fetched { status: 200, body: body.into() }),
                Some(Standing::Revoked),
                "{over}"
            );
        }
        assert_eq!((said(404, ""), said(410, "x")), (Some(Standing::Revoked), Some(Standing::Revoked)));
        for (status, body) in
            [(200, ""), (200, "{}"), (200, r#"{"status":1}"#), (401, ""), (500, ""), (302, "")]
        {
            assert_eq!(said(status, body), None, "{status} {body}");
        }
    }

    #[test]
    fn a_session_id_stays_within_its_path_segment() {
        let url = StatusUrl::parse("https://api.example/v1/sessions/{sid}?x={sid}").unwrap();
        assert_eq!(url.of("sess_1a-B"), "https://api.example/v1/sessions/sess_1a-B?x=sess_1a-B".parse());
        for odd in ["../users", "a/b", "a?b", "a#b", "%2e", "é\r\n", "."] {
            let url = StatusUrl::parse("https://a/{sid}").unwrap().of(odd);
            assert_eq!(url, format!("https://a/{}", encoded(odd)).parse(), "{odd}");
            assert!(!encoded(odd).contains(['/', '?', '#', '.', '\r']), "{odd}");
        }
        assert_eq!(StatusUrl::parse("https://a/x"), Err(NoStatusUrl::NoPlaceholder));
        assert_eq!(StatusUrl::parse("https://{sid}/x"), Err(NoStatusUrl::NoPlaceholder));
        assert_eq!(StatusUrl::parse("ftp://a/{sid}"), Err(NoStatusUrl::NoUrl(NoUrl)));
    }
}
