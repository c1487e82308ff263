//! The HUD of arena.

use sametick_arena::build::MAX_BUILT;
use sametick_arena::kept::CHARACTERS;
use sametick_arena::projectile::FIRE_TICKS;
use sametick_arena::{Arena, Ground, Own, Player};
use sametick_sim::{Game, Seat};
use serde::Serialize;

use super::Sight;
use super::ears::Kill;

/// The HUD, as the page gets it.
#[derive(Debug, Serialize)]
pub struct Hud {
    game: &'static str,
    mode: &'static str,
    phase: &'static str,
    seat: Option<u16>,
    health: u8,
    score: u16,
    deaths: u16,
    #[serde(rename = "respawnIn")]
    respawn_in: Option<f32>,
    /// Seconds for which nothing can hurt the own avatar.
    shield: Option<f32>,
    builds: Builds,
    /// The rest of the time between two shots, as a fraction.
    cooldown: f32,
    size: u16,
    /// The score that wins; zero if there is none.
    points: u16,
    /// The winner's seat.
    winner: Option<u16>,
    /// The number of the round, from 1 on.
    round: u16,
    /// Seconds until the round starts; zero while one is played, and after the last.
    wait: u8,
    players: Vec<Standing>,
    feed: Vec<Killed>,
}

#[derive(Debug, Serialize)]
struct Builds {
    used: u8,
    limit: u8,
}

/// One row of the score table.
#[derive(Debug, Serialize)]
struct Standing {
    seat: u16,
    name: Option<String>,
    score: u16,
    deaths: u16,
    alive: bool,
    you: bool,
    bot: bool,
    /// The character's name.
    character: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct Killed {
    killer: Option<u16>,
    victim: u16,
    ago: u64,
}

/// The score table, and the size of the map.
pub struct Standings {
    ground: Ground,
    players: Vec<Standing>,
}

impl Standings {
    /// As far as the players are known; the best first.
    pub(super) fn of(
        sight: &impl Sight,
        own: Option<Seat>,
        name: impl Fn(Seat) -> Option<String>,
    ) -> Standings {
        let unknown = Ground { size: 0, points: 0, won: None, round: 1, wait: 0 };
        let ground = sight.each::<Ground>().next().map_or(unknown, |(_, ground)| ground);
        let standing = |(number, player): (u32, Player)| {
            let Player { score, deaths, alive, bot, character } = player;
            let seat = Seat(u16::try_from(number).ok()?);
            Some(Standing {
                seat: seat.0,
                name: name(seat),
                score,
                deaths,
                alive,
                you: own == Some(seat),
                bot,
                character: CHARACTERS.get(usize::from(character)).copied(),
            })
        };
        let mut players: Vec<Standing> = sight.each().filter_map(standing).collect();
        players.sort_by_key(|player| (core::cmp::Reverse(player.score), player.deaths, player.seat));
        Standings { ground, players }
    }
}

impl Hud {
    /// The HUD of a player, or of a spectator.
    pub fn new(
        mode: &'static str,
        seat: Option<Seat>,
        own: Option<Own>,
        standings: Standings,
        feed: impl Iterator<Item = (Kill, u64)>,
    ) -> Hud {
        let Standings { ground, players } = standings;
        let Ground { size, points, won: winner, round, wait } = ground;
        let (score, deaths) =
            players.iter().find(|player| player.you).map_or((0, 0), |you| (you.score, you.deaths));
        // In tenths, so that it does not change with every tick.
        let seconds = |ticks: u8| (10 * u32::from(ticks) / Arena::RATE.per_second()) as f32 / 10.0;
        Hud {
            game: Arena::NAME,
            mode,
            phase: match own {
                Some(own) if own.is_alive() => "playing",
                Some(_) => "dead",
                None => "watching",
            },
            seat: seat.map(|seat| seat.0),
            health: own.map_or(0, |own| own.health),
            score,
            deaths,
            respawn_in: own.filter(|own| !own.is_alive()).map(|own| seconds(own.respawn)),
            shield: own.filter(Own::is_shielded).map(|own| seconds(own.shield)),
            builds: Builds { used: own.map_or(0, |own| own.built), limit: MAX_BUILT },
            cooldown: own.map_or(0.0, |own| f32::from(own.cooldown) / f32::from(FIRE_TICKS)),
            size,
            points,
            winner,
            round,
            wait,
            players,
            feed: feed.map(|(Kill { killer, victim, .. }, ago)| Killed { killer, victim, ago }).collect(),
        }
    }
}
