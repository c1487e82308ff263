//! A player's identity, as pages get it.

use sametick_room::View;
use sametick_sim::replica::Hosted;
use serde::Serialize;

/// A player's identity. It holds a secret, so it is never shown as a whole.
#[derive(Clone, PartialEq, Serialize)]
pub struct Persona {
    token: Option<String>,
    bad_token: Option<String>,
    /// The active character; empty where there are none.
    active: String,
    characters: Vec<Character>,
}

#[derive(Clone, PartialEq, Serialize)]
struct Character {
    name: String,
    life: serde_json::Value,
}

impl Persona {
    /// The identity that a view knows. The game decodes what is stored of a character.
    pub fn of_view<G: Hosted, L: Serialize>(view: &View<G>, life: impl Fn(&[u8]) -> L) -> Persona {
        let characters = view.characters();
        let all = characters.all.iter().map(|(name, kept)| Character {
            name: name.clone(),
            life: serde_json::to_value(life(kept)).unwrap_or_default(),
        });
        Persona {
            token: view.token().map(|token| token.to_hex()),
            bad_token: view.bad_token().map(Into::into),
            active: characters.active.clone(),
            characters: all.collect(),
        }
    }
}
