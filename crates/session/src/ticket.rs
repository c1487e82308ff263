//! Tickets to join once, and tokens to resume. Both are derived from a host's secret: neither has to be stored, and
//! neither can be guessed.

use alloc::string::String;
use core::fmt;

use sametick_sim::{Seat, Time};
use sametick_wire::identity::{PlayerId, Token};
use sametick_wire::{control, hex};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::id::{Incarnation, SessionId, player};

/// How long a ticket is valid: long enough to open a connection on a slow network.
pub const TICKET_US: u64 = 15_000_000;

/// The most valid tokens of one player: no more are made until one is used.
pub const MAX_TOKENS: u32 = 4;

/// The longest ticket that is parsed, in bytes: valid ones are shorter.
const MAX_TICKET: usize = 160;

const SEAL_LEN: usize = 16;

/// Separates the keys that are derived from one secret.
const TICKETS: &[u8] = b"tickets of this life";
const TOKENS: &[u8] = b"tokens of a session";
const SALTS: &[u8] = b"salts of a session";
const PASSES: &[u8] = b"passes of a host";

/// The bytes of a pass: session, player and a keyed hash of 128 bits.
pub const PASS_LEN: usize = 48;

/// Admits a player once: made by the host of a session. A ticket that was opened successfully was made by this
/// incarnation of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// The session.
    pub session: SessionId,
    /// The player.
    #[serde(with = "player")]
    pub player: PlayerId,
    /// The reserved seat, if there is one.
    pub seat: Option<Seat>,
    /// Tells it apart from all others of the session.
    pub nonce: u64,
    /// When it expires, in microseconds of the host's clock.
    until_us: u64,
}

impl Ticket {
    /// A ticket that is valid from now on.
    pub fn new(now: Time, session: SessionId, player: PlayerId, seat: Option<Seat>, nonce: u64) -> Ticket {
        let until_us = now.plus_micros(TICKET_US).as_micros();
        Ticket { session, player, seat, nonce, until_us }
    }

    /// When it expires.
    pub fn until(&self) -> Time {
        Time::from_micros(self.until_us)
    }
}

/// An encoded ticket. It is shown only to its player.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed(pub String);

/// A ticket and its player.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    /// The player.
    #[serde(with = "player")]
    pub player: PlayerId,
    /// The ticket.
    pub ticket: Sealed,
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealed(…)")
    }
}

/// Why a ticket is refused. For counters only: the client is told the same for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadTicket {
    /// It was changed, or not made by this incarnation of this host.
    Forged,
    /// It has expired.
    Expired,
    /// It was used, or its place was given up.
    Used,
}

/// The key that seals tickets in one incarnation of a host.
#[derive(Clone)]
pub struct Seal([u8; 32]);

impl Seal {
    /// The key of this incarnation of the host with this secret.
    pub fn new(secret: &[u8; 32], life: Incarnation) -> Seal {
        Seal(*keyed(secret, TICKETS, &life.0.to_le_bytes()).as_bytes())
    }

    /// Encodes and authenticates a ticket.
    pub fn seal(&self, ticket: &Ticket) -> Sealed {
        let mut bytes = control::to_bytes(ticket);
        let mac = blake3::keyed_hash(&self.0, &bytes);
        bytes.extend(mac.as_bytes().iter().take(SEAL_LEN));
        Sealed(hex::to_hex(&bytes))
    }

    /// Decodes and verifies a ticket. Only its session knows whether it was used.
    pub fn open(&self, now: Time, shown: &str) -> Result<Ticket, BadTicket> {
        let bytes = hex::read_hex(shown, MAX_TICKET).ok_or(BadTicket::Forged)?;
        let (said, mac) = bytes.split_last_chunk::<SEAL_LEN>().ok_or(BadTicket::Forged)?;
        let made = blake3::keyed_hash(&self.0, said);
        let is_ours = made.as_bytes().first_chunk::<SEAL_LEN>().is_some_and(|made| made.ct_eq(mac).into());
        if !is_ours {
            return Err(BadTicket::Forged);
        }
        let ticket: Ticket = control::from_bytes(said).map_err(|_| BadTicket::Forged)?;
        if ticket.until() <= now { Err(BadTicket::Expired) } else { Ok(ticket) }
    }
}

/// Derives the tokens and salts of one session.
#[derive(Clone)]
pub struct Tokens {
    tokens: [u8; 32],
    salts: [u8; 32],
}

impl Tokens {
    /// For a session of the host with this secret, in all incarnations.
    pub fn new(secret: &[u8; 32], session: SessionId) -> Tokens {
        let id = session.to_bytes();
        Tokens {
            tokens: *keyed(secret, TOKENS, &id).as_bytes(),
            salts: *keyed(secret, SALTS, &id).as_bytes(),
        }
    }

    /// A player's token with this serial number: 128 bits.
    pub fn of(&self, player: PlayerId, joined: u32, serial: u32) -> Token {
        let mut hasher = blake3::Hasher::new_keyed(&self.tokens);
        hasher.update(&player.to_bytes()).update(&joined.to_le_bytes()).update(&serial.to_le_bytes());
        Token::from_bytes(first(&hasher.finalize()))
    }

    /// Whether this is the player's token with this serial number. Takes constant time.
    pub fn is_good(&self, shown: &Token, player: PlayerId, joined: u32, serial: u32) -> bool {
        self.of(player, joined, serial).hash() == shown.hash()
    }

    /// The salt with this number.
    pub fn salt(&self, number: u32) -> [u8; 16] {
        first(&blake3::keyed_hash(&self.salts, &number.to_le_bytes()))
    }
}

/// Derives the passes with which members connect to their game: such a connection is not that of the session, and may
/// be opened many times. A pass is valid as long as its player is a member.
#[derive(Clone)]
pub struct Passes([u8; 32]);

impl Passes {
    /// For the host with this secret, in all incarnations.
    pub fn new(secret: &[u8; 32]) -> Passes {
        Passes(*blake3::keyed_hash(secret, PASSES).as_bytes())
    }

    /// A member's pass.
    pub fn of(&self, session: SessionId, player: PlayerId) -> [u8; PASS_LEN] {
        let mut bytes = [0; PASS_LEN];
        let who = session.to_bytes().into_iter().chain(player.to_bytes());
        let mac: [u8; SEAL_LEN] = self.mac(session, player);
        bytes.iter_mut().zip(who.chain(mac)).for_each(|(to, from)| *to = from);
        bytes
    }

    /// The session and player of a pass, if this host has made it.
    pub fn read(&self, shown: &[u8]) -> Option<(SessionId, PlayerId)> {
        let (session, rest) = shown.split_first_chunk::<16>()?;
        let (player, mac) = rest.split_first_chunk::<16>()?;
        let (session, player) = (SessionId::from_bytes(*session), PlayerId::from_bytes(*player));
        let is_ours: bool = self.mac(session, player).ct_eq(mac).into();
        is_ours.then_some((session, player))
    }

    /// The session that a pass names. It is not verified.
    pub fn session_of(shown: &[u8]) -> Option<SessionId> {
        shown
            .first_chunk::<16>()
            .filter(|_| shown.len() == PASS_LEN)
            .map(|bytes| SessionId::from_bytes(*bytes))
    }

    fn mac(&self, session: SessionId, player: PlayerId) -> [u8; SEAL_LEN] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&session.to_bytes()).update(&player.to_bytes());
        first(&hasher.finalize())
    }
}

/// A number that tells the sessions of one incarnation apart and cannot be guessed.
pub(crate) fn mark(secret: &[u8; 32], life: Incarnation, number: u64) -> u64 {
    let hash =
        keyed(secret, b"marks of sessions", &[&life.0.to_le_bytes()[..], &number.to_le_bytes()].concat());
    u64::from_le_bytes(first(&hash))
}

fn keyed(secret: &[u8; 32], use_of_it: &[u8], what: &[u8]) -> blake3::Hash {
    let key = blake3::keyed_hash(secret, use_of_it);
    blake3::keyed_hash(key.as_bytes(), what)
}

fn first<const N: usize>(hash: &blake3::Hash) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.iter_mut().zip(hash.as_bytes()).for_each(|(to, from)| *to = *from);
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::HostId;

    const ID: SessionId = SessionId { host: HostId(1), born: Incarnation(2), mark: 3 };

    fn ticket() -> Ticket {
        Ticket::new(Time::from_millis(5), ID, PlayerId(7), Some(Seat(4)), 9)
    }

    #[test]
    fn golden_bytes() {
        let Sealed(text) = Seal::new(&[1; 32], Incarnation(2)).seal(&ticket());
        assert_eq!(
            text,
            "203030303030303031303030303030303230303030303030303030303030303033\
             203030303030303030303030303030303030303030303030303030303030303037\
             010409c8ea930760834adc8f86fb6a0cf11298bb791097"
        );
        let token = Tokens::new(&[1; 32], ID).of(PlayerId(7), 1, 2).to_hex();
        assert_eq!(token, "e40537c9037e425f63a324078bcf6071");
    }

    #[test]
    fn a_token_is_bound_to_player_session_and_host() {
        let tokens = Tokens::new(&[1; 32], ID);
        let token = tokens.of(PlayerId(7), 1, 2);
        assert!(tokens.is_good(&token, PlayerId(7), 1, 2));
        assert!(!tokens.is_good(&token, PlayerId(8), 1, 2), "another player's");
        assert!(!tokens.is_good(&token, PlayerId(7), 1, 3) && !tokens.is_good(&token, PlayerId(7), 2, 2));
        let other = SessionId { mark: 4, ..ID };
        assert!(!Tokens::new(&[1; 32], other).is_good(&token, PlayerId(7), 1, 2));
        assert!(!Tokens::new(&[2; 32], ID).is_good(&token, PlayerId(7), 1, 2));
    }

    proptest! {
        #[test]
        fn a_pass_is_bound_to_member_session_and_host(flip in 0..PASS_LEN * 8, other: u128) {
            let passes = Passes::new(&[1; 32]);
            let mut pass = passes.of(ID, PlayerId(7));
            prop_assert_eq!(passes.read(&pass), Some((ID, PlayerId(7))));
            prop_assert_eq!((Passes::session_of(&pass), Passes::session_of(&pass[1..])), (Some(ID), None));
            prop_assert_eq!(Passes::new(&[2; 32]).read(&pass), None);
            prop_assert_eq!(passes.read(&pass[1..]), None);
            prop_assert!(passes.of(ID, PlayerId(other)) != pass || other == 7);
            pass[flip / 8] ^= 1 << (flip % 8);
            prop_assert_eq!(passes.read(&pass), None);
        }

        #[test]
        fn only_tickets_of_this_incarnation_of_the_host_are_good(flip in 0usize..1_000, wait_us in 0..2 * TICKET_US) {
            let seal = Seal::new(&[1; 32], Incarnation(2));
            let Sealed(text) = seal.seal(&ticket());
            let now = Time::from_millis(5).plus_micros(wait_us);
            let expected = if wait_us < TICKET_US { Ok(ticket()) } else { Err(BadTicket::Expired) };
            prop_assert_eq!(seal.open(now, &text), expected);
            for other in [Seal::new(&[1; 32], Incarnation(3)), Seal::new(&[2; 32], Incarnation(2))] {
                prop_assert_eq!(other.open(now, &text), Err(BadTicket::Forged));
            }
            let mut bytes = text.into_bytes();
            let at = flip % bytes.len();
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
            let changed = String::from_utf8(bytes).unwrap();
            prop_assert_eq!(seal.open(now, &changed), Err(BadTicket::Forged));
        }

        #[test]
        fn arbitrary_text_is_no_ticket(shown in ".{0,400}|[0-9a-f]{0,400}") {
            let seal = Seal::new(&[1; 32], Incarnation(2));
            prop_assert_eq!(seal.open(Time::ZERO, &shown), Err(BadTicket::Forged));
        }
    }
}
