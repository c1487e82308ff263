//! Whether a session goes on, as its issuer says where that can be asked.

use sametick_transport::fetch::{Fetched, NoUrl, Url};
use serde::Deserialize;

/// What stands in a status URL for the session's name.
const PLACEHOLDER: &str = "{sid}";

/// The longest answer that is read.
pub const MAX_STATUS_LEN: usize = 64 << 10;

/// Where the status of any session is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusUrl(String);

/// Why a text is no such URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoStatusUrl {
    /// It is none.
    #[error(transparent)]
    NoUrl(#[from] NoUrl),
    /// It asks for one and the same.
    #[error("it has to hold {PLACEHOLDER}, where the name of the session goes")]
    NoPlaceholder,
}

impl StatusUrl {
    /// Reads one.
    pub fn parse(text: &str) -> Result<StatusUrl, NoStatusUrl> {
        // A placeholder before the path would have tokens choose the host.
        let path = text.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
        if !path.is_some_and(|(_, path)| path.contains(PLACEHOLDER)) {
            return Err(NoStatusUrl::NoPlaceholder);
        }
        let url = StatusUrl(text.to_owned());
        url.of("x")?;
        Ok(url)
    }

    /// Where that of one session is.
    pub fn of(&self, session: &str) -> Result<Url, NoUrl> {
        self.0.replace(PLACEHOLDER, &encoded(session)).parse()
    }
}

/// A text as one part of a path: whatever has a meaning there has none any more.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~');
    let encode = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}

/// How a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It goes on.
    Active,
    /// It is over.
    Revoked,
}

#[derive(Deserialize)]
struct Said {
    status: String,
}

/// What an answer means. `None` if it means nothing: then nobody knows.
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
    fn a_session_goes_on_only_if_it_is_said_to() {
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
    fn the_name_of_a_session_stays_in_its_place() {
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
