//! Decides which paths the app has a page for. `web/app/src/place.ts` parses them in the same way.

use crate::games::Games;
use crate::rooms::entrance::{check_code, decode};

/// Whether the app has a page for this path; elsewhere it shows "not found".
pub fn is_place(path: &str, games: &Games) -> bool {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match parts.as_slice() {
        [""] | ["lobby"] => true,
        ["s", session] => is_id(session),
        ["play", game, name] | ["play", game, name, ""] => games.named(game).is_some() && is_name(name),
        _ => false,
    }
}

/// Whether a text has the form of a session id. Which sessions exist is not revealed here.
fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a text is a percent-encoded session name. In a path a plus is a plus.
fn is_name(text: &str) -> bool {
    decode(&text.replace('+', "%2B")).is_some_and(|name| {
        check_code(&name).is_ok() && !name.contains(|letter: char| letter == '/' || letter.is_whitespace())
    })
}

#[cfg(test)]
mod tests {
    use sametick_arena::Arena;
    use sametick_pong::Pong;

    use super::*;

    #[test]
    fn the_app_has_pages_only_for_its_own_paths() {
        let games = crate::games![Pong, Arena];
        let id = "0123456789abcdef".repeat(2);
        for path in
            ["/", "/lobby", "/play/pong/amber-otter-4821", "/play/arena/v1.2/", "/play/pong/gr%C3%BCn+1"]
        {
            assert!(is_place(path, &games), "{path}");
        }
        assert!(is_place(&format!("/s/{id}"), &games));
        let long = format!("/play/pong/{}", "x".repeat(65));
        let upper = format!("/s/{}", id.to_uppercase());
        let deep = format!("/s/{id}/x");
        for path in
            ["/admin", "/lobby/", "/lobby/x", "/s", "/s/", "/s/unknown", "/play", "/play/pong", "/play/pong/"]
        {
            assert!(!is_place(path, &games), "{path}");
        }
        for path in ["/play/chess/den", "/play//den", "/play/pong/a/b", "/play/pong/%zz", "/play/pong/a%2fb"]
        {
            assert!(!is_place(path, &games), "{path}");
        }
        for path in ["/play/pong/a%20b", "/play/pong/a%00", "//", "", &long, &upper, &deep] {
            assert!(!is_place(path, &games), "{path}");
        }
    }
}
