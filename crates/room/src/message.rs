//! What hosts and views say to each other. Control messages are postcard; reports and the heads of updates are packed bits.

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

/// The longest setup a room can be begun with.
pub const MAX_SETUP: usize = 4_096;

/// The longest name of a game, a player or a commit.
pub const MAX_TEXT: usize = 64;

/// The most characters of a player.
pub const MAX_CHARACTERS: usize = 32;

/// The most seats of a room.
pub const MAX_SEATS: usize = 1_024;

/// The longest event.
pub const MAX_EVENT: usize = 256;

/// How many ticks before the newest update a report says what has arrived.
pub const MASK_BITS: u32 = 64;

/// What round trips are counted in: two seconds are enough.
pub const RTT_UNIT_US: u64 = 32;

/// An update is coded against one that is at most so many ticks older.
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

/// How somebody takes part.
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
    /// The seed in that setup, for those who read logs.
    pub seed: u64,
    /// How many seats a new room has.
    pub seats: u16,
    /// Only to look.
    pub watch: bool,
    /// Whether a new room is shown to others.
    pub listed: bool,
    /// Who comes back.
    pub resume: Option<Claim>,
    /// What shows who it is.
    pub token: Option<Token>,
    /// To be refused rather than taken for a new player, if neither claim nor token brings anybody back.
    pub must_resume: bool,
}

impl Join {
    /// Whether everything is as long as it may be.
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
    /// The view takes part.
    Welcome(Welcome),
    /// It does not.
    Refused {
        /// For people.
        why: String,
        /// Its token is no good: without it, or with another, it may be let in.
        bad_token: bool,
    },
    /// Who is there; comes once, after the welcome.
    Roster {
        /// Everybody on a seat.
        #[serde(deserialize_with = "at_most::<_, _, MAX_SEATS>")]
        seated: Vec<Seated>,
    },
    /// Somebody has sat down.
    Came(Seated),
    /// Whoever sat there has gone.
    Went(Seat),
    /// The view is another one from now on.
    View(u16),
    /// Something happened that must not be missed.
    Event {
        /// In which tick.
        tick: Tick,
        /// The canonical bytes of the game's event.
        bytes: Vec<u8>,
    },
    /// Shows who the view is, from now on and also after a restart of the server. The one before it is good for a moment only.
    Token(Token),
    /// The characters of whoever plays.
    Characters(Characters),
    /// What is kept of the room is safe, as it was after this tick.
    Saved(Tick),
    /// The room runs at so much of its speed, of a hundred, because its server has no more time for it. Said again now and then
    /// while it does.
    Pace(u8),
}

/// The characters of a player.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Characters {
    /// The one who plays.
    pub active: String,
    /// All of them, each with what is kept of it; nothing of one that has never played.
    #[serde(deserialize_with = "at_most::<_, _, MAX_CHARACTERS>")]
    pub all: Vec<(String, Vec<u8>)>,
}

/// What a view is told when it is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Where it sits; nowhere if it only looks.
    pub seat: Option<Seat>,
    /// Whose view it has.
    pub view: u16,
    /// The last tick.
    pub tick: Tick,
    /// How long ago that tick was due.
    pub age_us: u32,
    /// Lets it come back.
    pub claim: Claim,
    /// Whether it is who its claim or its token says, and not a new player.
    pub is_back: bool,
}

/// Who sits where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seated {
    /// Where.
    pub seat: Seat,
    /// Who, for people.
    pub name: String,
}

/// What a view has received, and its clock: sent on the state channel after every update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The low bits of the tick of the newest update; none before the first.
    pub newest: Option<u16>,
    /// Bit n: an update of n + 1 ticks before has arrived, too.
    pub mask: u64,
    /// The view's clock, in microseconds; only differences mean anything.
    pub clock_us: u32,
    /// The tick that the view has made an input for last.
    pub tick: Tick,
    /// How long ago that was.
    pub ago_us: u16,
    /// A round trip, in units of [`RTT_UNIT_US`].
    pub rtt: u16,
}

impl Report {
    /// Appends it.
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

    /// Reads it.
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

/// The tick near `near` that ends in these bits.
pub fn widen_tick(low: u16, near: Tick) -> Tick {
    Tick(near.0.wrapping_add_signed(i32::from(low.wrapping_sub(near.0 as u16) as i16)))
}

/// How a member's inputs arrive; each member has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaceHead {
    /// The least slack, in units of 32 µs; none if no fresh input came.
    pub slack: Option<i16>,
    /// Inputs that were missing so far.
    pub omissions: u32,
}

/// The head of an update: what it is coded against, and when it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The tick it was made after; also what it is known by.
    pub tick: Tick,
    /// The tick of the update it is coded against; none if nothing is taken for known.
    pub base: Option<Tick>,
    /// Not everything in sight has been told of yet.
    pub partial: bool,
}

/// Appends how a member's inputs arrive, or that nothing is said about it: whole bytes, before what all members share.
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

/// Appends the head of an update, the coded rest, and events.
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

/// An update taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update<'a> {
    /// How the inputs of whoever reads this arrive.
    pub pace: Option<PaceHead>,
    /// What it is.
    pub head: Head,
    /// What has changed.
    pub delta: &'a [u8],
    /// What happened, see [`read_events`].
    pub events: &'a [u8],
}

/// Takes an update apart. Its tick is near the one given.
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

/// Appends an event that may be lost; `ago` is how many ticks before the update it happened. Too long a one is left out.
pub fn put_event(out: &mut Vec<u8>, ago: u8, bytes: &[u8]) {
    if let Ok(length) = u8::try_from(bytes.len()) {
        out.extend_from_slice(&[ago, length]);
        out.extend_from_slice(bytes);
    }
}

/// Reads what [`put_event`] wrote, one after the other.
pub fn read_events(mut bytes: &[u8], mut see: impl FnMut(u8, &[u8])) -> Result<(), Malformed> {
    while let [ago, length, rest @ ..] = bytes {
        let (event, rest) = rest.split_at_checked(usize::from(*length)).ok_or(Malformed::Truncated)?;
        see(*ago, event);
        bytes = rest;
    }
    if bytes.is_empty() { Ok(()) } else { Err(Malformed::Truncated) }
}

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From a view.
    ToHost,
    /// From the host.
    ToView,
}

/// What a message is about, for people who read message logs. Ticks are near `near`.
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
