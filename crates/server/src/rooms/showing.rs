//! Computes the snapshot or delta that a script needs, from what it has been sent.

use std::collections::BTreeMap;

use sametick_sim::replica::{Kind, Plain, Scene};
use serde::{Serialize, Serializer};

use super::outgoing::{Feature, Mode, Player};

/// The fields of an entity, in the order of their declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Fields(Vec<(&'static str, Plain)>);

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl Fields {
    /// The visible fields of an entity in a zone.
    pub fn seen(kind: &Kind, zone: u8, slots: &[i32]) -> Fields {
        let is_seen = |name: &str| {
            let field = kind.fields.iter().find(|field| field.name == name);
            kind.zones.is_empty() || field.is_some_and(|field| zone < field.zones)
        };
        Fields(kind.plain(slots).filter(|(name, _)| is_seen(name)).collect())
    }
}

/// The visible state.
pub struct Sight<'a> {
    /// The entities.
    pub scene: &'a Scene,
    /// Their zones, by kind.
    pub zones: Vec<Vec<u8>>,
    /// The script's private fields, if they have changed.
    pub own: Option<Fields>,
    /// The players.
    pub players: Vec<Player>,
}

/// The content of the next snapshot.
pub struct News {
    /// Whether it is full or a delta.
    pub mode: Mode,
    /// The players, if they have changed.
    pub players: Option<Vec<Player>>,
    /// The script's private fields, if they have changed.
    pub own: Option<Option<Fields>>,
    /// The changes of each feature.
    pub features: BTreeMap<&'static str, Feature<Fields>>,
}

/// The state that the script knows.
#[derive(Default)]
pub struct Showing {
    told: Option<Told>,
}

struct Told {
    /// The entities of each kind, by number.
    tables: Vec<BTreeMap<u32, (u8, Vec<i32>)>>,
    own: Option<Fields>,
    players: Vec<Player>,
}

impl Showing {
    /// Makes the next snapshot a full one.
    pub fn forget(&mut self) {
        self.told = None;
    }

    /// Returns the next snapshot of this state, and notes it as sent.
    pub fn tell(&mut self, sight: Sight<'_>) -> News {
        let Sight { scene, zones, own, players } = sight;
        let mode = if self.told.is_some() { Mode::Delta } else { Mode::Full };
        let mut features = BTreeMap::new();
        if mode == Mode::Full {
            features.extend(scene.kinds().iter().map(|kind| (kind.feature, Feature::default())));
        }
        let told = self.told.get_or_insert_with(|| Told {
            tables: scene.kinds().iter().map(|_| BTreeMap::new()).collect(),
            own: None,
            players: Vec::new(),
        });
        let tables = scene.kinds().iter().zip(scene.tables()).zip(&zones).zip(&mut told.tables);
        for (((kind, table), zones), told) in tables {
            let rows = table.iter().zip(zones).map(|((row, slots), zone)| (row.id, *zone, slots));
            compare(kind, &rows.collect::<Vec<_>>(), told, &mut features);
        }
        let is_new = |changed: bool| changed || mode == Mode::Full;
        let news = News {
            mode,
            players: is_new(told.players != players).then(|| players.clone()),
            own: is_new(told.own != own).then(|| own.clone()),
            features,
        };
        (told.own, told.players) = (own, players);
        news
    }
}

/// Collects new, changed and removed entities.
fn compare(
    kind: &Kind,
    rows: &[(u32, u8, &[i32])],
    told: &mut BTreeMap<u32, (u8, Vec<i32>)>,
    features: &mut BTreeMap<&'static str, Feature<Fields>>,
) {
    for &(id, zone, slots) in rows {
        if told.get(&id).is_some_and(|(before, codes)| *before == zone && codes == slots) {
            continue;
        }
        told.insert(id, (zone, slots.to_vec()));
        let entities = features.entry(kind.feature).or_default().kinds.entry(kind.name).or_default();
        entities.insert(id.to_string(), Fields::seen(kind, zone, slots));
    }
    let mut gone = Vec::new();
    told.retain(|id, _| {
        let stays = rows.binary_search_by_key(id, |(id, ..)| *id).is_ok();
        if !stays {
            gone.push(*id);
        }
        stays
    });
    if !gone.is_empty() {
        features.entry(kind.feature).or_default().removed.insert(kind.name, gone);
    }
}

#[cfg(test)]
mod tests {
    use sametick_sim::replica::Entity;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Clone, Debug, PartialEq, Entity)]
    #[entity(name = "ship", feature = "sea", zone(near within 10.0 at 10 hz), zone(far within 50.0 at 2 hz))]
    struct Ship {
        #[entity(place)]
        at: [i32; 2],
        #[entity(zones = "near")]
        crew: u8,
    }

    #[derive(Clone, Debug, PartialEq, Entity)]
    #[entity(name = "flag", feature = "land")]
    struct Flag {
        up: bool,
    }

    static KINDS: &[Kind] = &[Ship::KIND, Flag::KIND];

    fn tell(showing: &mut Showing, ships: &[(u32, u8, i32)], own: Option<u8>, names: &[&str]) -> Value {
        let mut scene = Scene::new(KINDS);
        for (id, _, x) in ships {
            scene.put(*id, None, &Ship { at: [*x, 0], crew: 7 });
        }
        let zones = vec![ships.iter().map(|(_, zone, _)| *zone).collect(), Vec::new()];
        let own = own.map(|crew| Fields(vec![("crew", Plain::Whole(crew.into()))]));
        let players = (0..).zip(names).map(|(seat, name)| Player { seat, name: (*name).into() }).collect();
        let news = showing.tell(Sight { scene: &scene, zones, own, players });
        json!({"mode": news.mode, "players": news.players, "own": news.own, "features": news.features})
    }

    #[test]
    fn the_first_snapshot_is_full_and_later_ones_are_deltas() {
        let mut showing = Showing::default();
        let full = tell(&mut showing, &[(3, 0, 1), (5, 1, 2)], Some(1), &["ada"]);
        assert_eq!(
            full,
            json!({"mode": "full", "players": [{"seat": 0, "name": "ada"}], "own": {"crew": 1}, "features":
                {"sea": {"ship": {"3": {"at": [1, 0], "crew": 7}, "5": {"at": [2, 0]}}}, "land": {}}}),
            "what a zone does not show is left out"
        );
        let same = tell(&mut showing, &[(3, 0, 1), (5, 1, 2)], Some(1), &["ada"]);
        assert_eq!(same, json!({"mode": "delta", "players": null, "own": null, "features": {}}));
        let moved = tell(&mut showing, &[(4, 0, 9), (5, 0, 2), (6, 0, 3)], None, &["ada", "bob"]);
        assert_eq!(
            moved["features"],
            json!({"sea": {"ship": {"4": {"at": [9, 0], "crew": 7}, "5": {"at": [2, 0], "crew": 7},
                "6": {"at": [3, 0], "crew": 7}}, "removed": {"ship": [3]}}})
        );
        assert_eq!(moved["players"][1]["name"], "bob");
        let gone = tell(&mut showing, &[], None, &["ada", "bob"]);
        assert_eq!(gone["features"], json!({"sea": {"removed": {"ship": [4, 5, 6]}}}));
        showing.forget();
        assert_eq!(tell(&mut showing, &[], None, &[])["mode"], "full");
    }
}
