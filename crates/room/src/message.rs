//! Messages between hosts and views. Control messages are postcard; reports and the headers of updates are packed bits.

use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::{Seat, Tick};
use sametick_wire::bits::{BitReader, BitWriter, ReadError};
use sametick_wire::claims::Claim;
use sametick_wire::control::{at_most, from_bytes};
use sametick_wire::identity::Token;
use sametick_wire::inputs::first_tick;
use sametick_wire::message_log::Described;
use sametick_wire::text::{NAME_RULE, is_safe_to_show};
use sametick_wire::{Channel, Malformed};
use serde::{Deserialize, Serialize};

/// The longest setup of a new room.
pub const MAX_SETUP: usize = 4_096;

/// The longest name of a game, a player or a commit.
pub const MAX_TEXT: usize = 64;

/// The most characters of one player.
pub const MAX_CHARACTERS: usize = 32;

/// The most seats of a room.
pub const MAX_SEATS: usize = 1_024;

/// The longest event.
pub const MAX_EVENT: usize = 256;

/// How many ticks before the newest update a report covers.
pub const MASK_BITS: u32 = 64;

/// The unit of round trips in reports: two seconds are enough.
pub const RTT_UNIT_US: u64 = 32;

/// The base of an update is at most this many ticks older.
pub const MAX_BACK: u32 = 255;

const TICK_BITS: u32 = 16;
const BACK_BITS: u32 = 8;
const LENGTH_GROUP: u32 = 7;

/// From a view, on the control channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToHost {
    /// Take part; begins the room if there is none.
    Join(Join),
    /// Play on as another of one's characters.
    Character(String),
}

/// A request to join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// The name of the game.
    pub game: String,
    /// The git commit of the build.
    pub commit: String,
    /// The player's name.
    pub name: String,
    /// The canonical bytes of the setup that a new room begins with.
    pub setup: Vec<u8>,
    /// The seed in that setup, for logs.
    pub seed: u64,
    /// The number of seats of a new room.
    pub seats: u16,
    /// Whether the client joins as a spectator.
    pub watch: bool,
    /// Whether a new room is listed publicly.
    pub listed: bool,
    /// A resume claim.
    pub resume: Option<Claim>,
    /// An identity token.
    pub token: Option<Token>,
    /// Whether to be refused rather than joined as a new player, if neither claim nor token identifies a known one.
    pub must_resume: bool,
}

impl Join {
    /// Checks that no field is longer than allowed.
    pub fn check(&self) -> Result<(), Malformed> {
        let texts = [&self.game, &self.commit, &self.name];
        if self.setup.len() > MAX_SETUP || texts.iter().any(|text| text.len() > MAX_TEXT) {
            return Err(Malformed::Forbidden(
                "a Join has a setup of at most 4096 bytes and texts of at most 64",
            ));
        }
        if !is_safe_to_show(&self.name) {
            return Err(Malformed::Forbidden(NAME_RULE));
        }
        Ok(())
    }
}

/// To a view, on the control channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToView {
    /// The view is let in.
    Welcome(Welcome),
    /// The view is refused.
    Refused {
        /// The reason, for people.
        why: String,
        /// The token is invalid: the view may be let in without it, or with another.
        bad_token: bool,
    },
    /// The players on seats; sent once, after the welcome.
    Roster {
        /// All seated players.
        #[serde(deserialize_with = "at_most::<_, _, MAX_SEATS>")]
        seated: Vec<Seated>,
    },
    /// A player has taken a seat.
    Came(Seated),
    /// The player on this seat has left.
    Went(Seat),
    /// The view's id changes to this one.
    View(u16),
    /// An event that must not be lost.
    Event {
        /// The tick of the event.
        tick: Tick,
        /// The canonical bytes of the game's event.
        bytes: Vec<u8>,
    },
    /// A new identity token, valid also after a restart of the server. The previous token stays valid for a moment
    /// only.
    Token(Token),
    /// The characters of the player.
    Characters(Characters),
    /// The saved state of the room is durable, as of this tick.
    Saved(Tick),
    /// The room runs at this percentage of its speed, because its server is overloaded. Repeated now and then while
    /// that lasts.
    Pace(u8),
}

/// The characters of a player.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Characters {
    /// The character that is played.
    pub active: String,
    /// All characters, each with its saved state; empty for a character that has never been played.
    #[serde(deserialize_with = "at_most::<_, _, MAX_CHARACTERS>")]
    pub all: Vec<(String, Vec<u8>)>,
}

/// The host's answer to an accepted join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The seat; `None` for a spectator.
    pub seat: Option<Seat>,
    /// The id of the view.
    pub view: u16,
    /// The last tick.
    pub tick: Tick,
    /// How long ago that tick was due.
    pub age_us: u32,
    /// The claim with which the view can resume.
    pub claim: Claim,
    /// Whether the claim or token identified a known player, rather than a new one.
    pub is_back: bool,
}

/// A seated player.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seated {
    /// The seat.
    pub seat: Seat,
    /// The display name.
    pub name: String,
}

/// The updates that a view has received, and its clock: sent on the state channel after every update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The low bits of the tick of the newest update; none before the first update.
    pub newest: Option<u16>,
    /// Bit n: the update n + 1 ticks before has arrived, too.
    pub mask: u64,
    /// The view's clock in microseconds; only differences are meaningful.
    pub clock_us: u32,
    /// The last tick for which the view has made an input.
    pub tick: Tick,
    /// How long ago that was.
    pub ago_us: u16,
    /// A round trip, in units of [`RTT_UNIT_US`].
    pub rtt: u16,
}

impl Report {
    /// Appends the encoded report.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut bits = BitWriter::new(out);
        bits.bool(self.newest.is_some());
        if let Some(newest) = self.newest {
            bits.bits(newest.into(), TICK_BITS);
            bits.bits(self.mask, MASK_BITS);
        }
        bits.bits(self.clock_us.into(), 32);
        bits.bits(self.tick.0.into(), 32);
        bits.bits(self.ago_us.into(), 16);
        bits.bits(self.rtt.into(), 16);
        bits.finish();
    }

    /// Decodes a report.
    pub fn read(bytes: &[u8]) -> Result<Report, Malformed> {
        let mut bits = BitReader::new(bytes);
        let read = |bits: &mut BitReader<'_>| -> Result<Report, ReadError> {
            let seen = bits.bool()?;
            let newest = if seen { Some(bits.bits(TICK_BITS)? as u16) } else { None };
            let mask = if seen { bits.bits(MASK_BITS)? } else { 0 };
            let (clock_us, tick) = (bits.bits(32)? as u32, Tick(bits.bits(32)? as u32));
            let (ago_us, rtt) = (bits.bits(16)? as u16, bits.bits(16)? as u16);
            Ok(Report { newest, mask, clock_us, tick, ago_us, rtt })
        };
        let report = read(&mut bits)?;
        bits.finish()?;
        Ok(report)
    }
}

/// The tick nearest to `near` whose low bits are these.
pub fn widen_tick(low: u16, near: Tick) -> Tick {
    Tick(near.0.wrapping_add_signed(i32::from(low.wrapping_sub(near.0 as u16) as i16)))
}

/// How the inputs of one member arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaceHead {
    /// The least slack, in units of 32 µs; none if no fresh input has arrived.
    pub slack: Option<i16>,
    /// The number of missing inputs so far.
    pub omissions: u32,
}

/// The header of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The tick of the snapshot; it also identifies the update.
    pub tick: Tick,
    /// The tick of the base; none if the update has no base.
    pub base: Option<Tick>,
    /// Whether entities in sight are still missing.
    pub partial: bool,
}

/// Appends a member's pace header, or a byte for its absence: whole bytes, before the part that all members share.
pub fn put_pace(out: &mut Vec<u8>, pace: Option<&PaceHead>) {
    let mut bits = BitWriter::new(out);
    bits.bool(pace.is_some());
    if let Some(pace) = pace {
        bits.bool(pace.slack.is_some());
        if let Some(slack) = pace.slack {
            bits.bits(slack as u16 as u64, 16);
        }
        bits.varint(u64::from(pace.omissions), LENGTH_GROUP);
    }
    bits.finish();
}

/// Appends the header of an update, its delta and its events.
pub fn put_update(out: &mut Vec<u8>, head: &Head, delta: &[u8], events: &[u8]) {
    let mut bits = BitWriter::new(out);
    bits.bits(u64::from(head.tick.0 & 0xffff), TICK_BITS);
    bits.bits(head.base.map_or(0, |base| u64::from(head.tick.0 - base.0)), BACK_BITS);
    bits.bool(head.partial);
    bits.varint(delta.len() as u64, LENGTH_GROUP);
    bits.finish();
    out.extend_from_slice(delta);
    out.extend_from_slice(events);
}

/// A parsed update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update<'a> {
    /// How the receiver's inputs arrive.
    pub pace: Option<PaceHead>,
    /// The header.
    pub head: Head,
    /// The encoded delta.
    pub delta: &'a [u8],
    /// The encoded events, see [`read_events`].
    pub events: &'a [u8],
}

/// Parses an update whose tick is near the one given.
pub fn read_update(bytes: &[u8], near: Tick) -> Result<Update<'_>, Malformed> {
    let mut bits = BitReader::new(bytes);
    let (pace, head, length) = read_heads(&mut bits, near)?;
    let rest = bytes.get(bytes.len() - (bits.remaining_bits() / 8) as usize..).ok_or(Malformed::Truncated)?;
    let (delta, events) = rest.split_at_checked(length).ok_or(Malformed::Truncated)?;
    Ok(Update { pace, head, delta, events })
}

fn read_heads(bits: &mut BitReader<'_>, near: Tick) -> Result<(Option<PaceHead>, Head, usize), ReadError> {
    let mut pace = None;
    if bits.bool()? {
        let slack = if bits.bool()? { Some(bits.bits(16)? as u16 as i16) } else { None };
        let omissions = u32::try_from(bits.varint(LENGTH_GROUP)?).map_err(|_| ReadError::OutOfRange)?;
        pace = Some(PaceHead { slack, omissions });
    }
    bits.align()?;
    let tick = widen_tick(bits.bits(TICK_BITS)? as u16, near);
    let base = match bits.bits(BACK_BITS)? {
        0 => None,
        back => Some(Tick(tick.0.checked_sub(back as u32).ok_or(ReadError::OutOfRange)?)),
    };
    let partial = bits.bool()?;
    let length = usize::try_from(bits.varint(LENGTH_GROUP)?).map_err(|_| ReadError::TooLong)?;
    bits.align()?;
    Ok((pace, Head { tick, base, partial }, length))
}

/// Appends a lossy event; `ago` is how many ticks before the update it happened. Too long an event is dropped.
pub fn put_event(out: &mut Vec<u8>, ago: u8, bytes: &[u8]) {
    if let Ok(length) = u8::try_from(bytes.len()) {
        out.extend_from_slice(&[ago, length]);
        out.extend_from_slice(bytes);
    }
}

/// Decodes all events written by [`put_event`].
pub fn read_events(mut bytes: &[u8], mut see: impl FnMut(u8, &[u8])) -> Result<(), Malformed> {
    while let [ago, length, rest @ ..] = bytes {
        let (event, rest) = rest.split_at_checked(usize::from(*length)).ok_or(Malformed::Truncated)?;
        see(*ago, event);
        bytes = rest;
    }
    if bytes.is_empty() { Ok(()) } else { Err(Malformed::Truncated) }
}

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From a view.
    ToHost,
    /// From the host.
    ToView,
}

/// Describes a message for readers of message logs. Its ticks are near `near`.
pub fn describe(way: Way, channel: Channel, bytes: &[u8], near: Tick) -> Described {
    match (way, channel) {
        (Way::ToHost, Channel::Input) => Described::kind("inputs").with_tick(first_tick(bytes, near)),
        (Way::ToHost, Channel::State) => {
            Described::kind("report").with_tick(Report::read(bytes).ok().map(|report| report.tick))
        }
        (Way::ToHost, Channel::Control) => match from_bytes(bytes) {
            Ok(ToHost::Join(_)) => Described::kind("join").secret(),
            Ok(ToHost::Character(_)) => Described::kind("character"),
            Err(_) => Described::kind("unreadable"),
        },
        (Way::ToView, Channel::State) => {
            Described::kind("update").with_tick(read_update(bytes, near).ok().map(|update| update.head.tick))
        }
        (Way::ToView, Channel::Control) => match from_bytes(bytes) {
            Ok(ToView::Welcome(welcome)) => Described::at("welcome", welcome.tick).secret(),
            Ok(ToView::Refused { .. }) => Described::kind("refused"),
            Ok(ToView::Roster { .. }) => Described::kind("roster"),
            Ok(ToView::Came(_)) => Described::kind("came"),
            Ok(ToView::Went(_)) => Described::kind("went"),
            Ok(ToView::View(_)) => Described::kind("view"),
            Ok(ToView::Event { tick, .. }) => Described::at("event", tick),
            Ok(ToView::Token(_)) => Described::kind("token").secret(),
            Ok(ToView::Characters(_)) => Described::kind("characters"),
            Ok(ToView::Saved(tick)) => Described::at("saved", tick),
            Ok(ToView::Pace(_)) => Described::kind("pace"),
            Err(_) => Described::kind("unreadable"),
        },
        _ => Described::kind("unknown"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_have_these_bytes_and_are_read_again() {
        let report = Report {
            newest: Some(0x1234),
            mask: 0b101,
            clock_us: 70_000,
            tick: Tick(99),
            ago_us: 500,
            rtt: 9,
        };
        let mut bytes = Vec::new();
        report.put(&mut bytes);
        assert_eq!(bytes.len(), 23);
        assert_eq!(Report::read(&bytes), Ok(report));
        let early = Report { tick: Tick(3), ..Report::default() };
        bytes.clear();
        early.put(&mut bytes);
        assert_eq!(Report::read(&bytes), Ok(early));
        assert!(Report::read(&bytes[1..]).is_err());
    }

    #[test]
    fn updates_are_taken_apart_as_they_were_put_together() {
        let pace = PaceHead { slack: Some(-7), omissions: 300 };
        let head = Head { tick: Tick(200_001), base: Some(Tick(199_995)), partial: true };
        for pace in [None, Some(pace)] {
            let mut bytes = Vec::new();
            put_pace(&mut bytes, pace.as_ref());
            let mut events = Vec::new();
            put_event(&mut events, 2, b"boom");
            put_update(&mut bytes, &head, b"delta", &events);
            let update = read_update(&bytes, Tick(199_990)).unwrap();
            assert_eq!(update, Update { pace, head, delta: b"delta", events: &events });
            let mut seen = Vec::new();
            read_events(update.events, |ago, event| seen.push((ago, event.to_vec()))).unwrap();
            assert_eq!(seen, [(2, b"boom".to_vec())]);
            for length in 0..bytes.len() - events.len() {
                assert!(read_update(&bytes[..length], Tick(199_990)).is_err(), "{length}");
            }
        }
    }

    #[test]
    fn ticks_are_found_again_from_their_last_bits() {
        for (tick, near) in [(70_000, 69_000), (65_536, 65_535), (1, 0), (65_535, 65_540)] {
            assert_eq!(widen_tick(tick as u16, Tick(near)), Tick(tick));
        }
    }
}
