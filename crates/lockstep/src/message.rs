//! Lockstep messages between peers and relays. Control messages are postcard; ticks are packed bits.

use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::diff::Difference;
use sametick_sim::hash::Part;
use sametick_sim::{Inputs, Seat, StateHash, Tick};
use sametick_wire::bits::{BitReader, BitWriter};
use sametick_wire::control::at_most;
use sametick_wire::inputs::{first_tick, put_head, read_head};
use sametick_wire::message_log::Described;
use sametick_wire::{Channel, Malformed};
use serde::{Deserialize, Serialize};

use crate::rows::{MAX_SEATS, Opaque, Table};

pub use crate::claim::Claim;
pub use sametick_wire::control::{from_bytes, put, to_bytes};
pub use sametick_wire::inputs::{MAX_RUN, put_inputs, read_inputs};

/// The longest setup a session can be begun with.
pub const MAX_SETUP: usize = 4_096;

/// The longest name of a game, a player or a commit.
pub const MAX_TEXT: usize = 64;

/// The largest state that is transferred.
pub const MAX_STATE: usize = 8 << 20;

/// Peers hash their confirmed state after every tick that is a multiple of this (L6).
pub const CHECK_EVERY: u32 = 30;

/// The number of last confirmed ticks for which a peer keeps the hash, and the state if that is small.
pub const RECENT_TICKS: u32 = 120;

/// The number of last closed ticks a peer can give to a relay that lost them: the log is written every two seconds, and
/// a disk may be slow. Ten seconds at 60 Hz.
pub const GIVEN_TICKS: u32 = 600;

/// The piece size in which a save is transferred, the last piece shorter: inputs queued behind a piece are hardly late,
/// even where everything goes over one stream.
pub const PIECE_BYTES: usize = 16 << 10;

/// The most pieces that a peer may have outstanding. With [`PIECE_BYTES`], a tenth of a second of a good line.
pub const MAX_WANTED: usize = 4;

/// The most field-level differences in a report.
pub const MAX_DIFFERENCES: usize = 64;

/// The most hashes in a message.
pub const MAX_HASHES: usize = RECENT_TICKS as usize;

/// The most part hashes in a message: a few bytes of a message become many in memory.
pub const MAX_PARTS: usize = 1_024;

/// From a peer, on the control channel; `State`, `Piece` and `Ticks` on the channel for chunks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToRelay {
    /// Join the session; begins it if it is not running.
    Join(Join),
    /// Some ticks were lost: send them again, from this one on.
    Resend {
        /// The first missing tick.
        from: Tick,
    },
    /// The hash of the confirmed state.
    Check {
        /// The tick of the state.
        tick: Tick,
        /// The hash.
        hash: StateHash,
    },
    /// The hashes of recent states, as asked for.
    Hashes {
        /// The tick of the first.
        first: Tick,
        /// One for each tick, at most [`MAX_HASHES`].
        #[serde(deserialize_with = "at_most::<_, _, MAX_HASHES>")]
        hashes: Vec<StateHash>,
    },
    /// A recent state, as asked for.
    State(StateAt),
    /// The agreed state has been loaded; reports how the peer's own state differed from it.
    Resynced {
        /// The tick that was compared.
        tick: Tick,
        /// The first differing fields, at most [`MAX_DIFFERENCES`]; none if the state of that tick was not kept.
        #[serde(deserialize_with = "at_most::<_, _, MAX_DIFFERENCES>")]
        fields: Vec<Difference>,
    },
    /// The answer to `GiveSave`.
    Offer {
        /// The tick of the state.
        tick: Tick,
        /// The size of its canonical bytes; none if the peer does not have the state.
        bytes: Option<u32>,
    },
    /// A part of the offered state, as asked for with `GivePiece`.
    Piece(Piece),
    /// Send the piece of the save that begins at this offset.
    Want {
        /// The tick of the save.
        tick: Tick,
        /// The offset of the piece in bytes; a multiple of [`PIECE_BYTES`].
        offset: u32,
    },
    /// Closed ticks, as asked for with `GiveTicks`, in the form of [`ToPeer::Ticks`].
    Ticks {
        /// The first tick.
        first: Tick,
        /// The number of ticks; zero if the tick asked for is not kept.
        ticks: u32,
        /// The seats taken before the first tick.
        table: Vec<u8>,
        /// The coded ticks.
        bytes: Vec<u8>,
    },
}

/// A part of a save.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The tick of the state.
    pub tick: Tick,
    /// The offset of the bytes in the state.
    pub offset: u32,
    /// Canonical bytes.
    pub bytes: Vec<u8>,
}

/// The description of a save, sent before its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveHead {
    /// The tick of the state.
    pub tick: Tick,
    /// The hash of its canonical bytes.
    pub hash: StateHash,
    /// The number of those bytes, at most [`MAX_STATE`].
    pub bytes: u32,
    /// The seats taken after that tick, see [`Table::to_bytes`].
    pub table: Vec<u8>,
}

/// A peer's request to take part in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// The name of the game.
    pub game: String,
    /// The git commit the peer was built from.
    pub commit: String,
    /// The game's setup.
    pub setup: Vec<u8>,
    /// The seed in that setup, for people who read the log.
    pub seed: u64,
    /// Ticks a second.
    pub rate: u16,
    /// How many seats the session has, if this begins it.
    pub seats: u16,
    /// With how many players the session begins, if this begins it.
    pub wait_for: u16,
    /// The player's name.
    pub name: String,
    /// Join as a spectator.
    pub watch: bool,
    /// The only seat to take; any seat if none. A peer that comes back takes another seat if this one is taken.
    pub seat: Option<Seat>,
    /// Whether the session is shown in public lists, if this begins it.
    pub listed: bool,
    /// The claim to resume with, and the tick to go on from.
    pub resume: Option<Resume>,
    /// The copy of the session that this peer offers, if this begins the session: the session goes on from it.
    pub bring: Option<Bring>,
}

/// A copy of a session that a peer offers to a relay without any state of that session. Setup, seed, seats and `listed`
/// are those of the [`Join`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bring {
    /// The state, which the relay asks for with `GivePiece`.
    pub save: SaveHead,
    /// When the session began, in milliseconds of Unix time.
    pub started_unix_ms: u64,
}

/// The facts of a session besides its setup and rate, as a welcome states them: a copy of the session holds the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The seed in the setup.
    pub seed: u64,
    /// The number of seats.
    pub seats: u16,
    /// Whether the session is shown in public lists.
    pub listed: bool,
    /// The git commit of the peer that began it.
    pub commit: String,
    /// When it began, in milliseconds of Unix time; an arbitrary number if the relay stores nothing.
    pub started_unix_ms: u64,
}

/// A peer's request to resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// The claim from its last welcome.
    pub claim: Claim,
    /// The tick of its confirmed state.
    pub have: Tick,
}

/// A player on a seat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seated {
    /// The seat.
    pub seat: Seat,
    /// The player's name.
    pub name: String,
}

/// The state of a peer after a tick.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateAt {
    /// The tick.
    pub tick: Tick,
    /// The hashes of its parts, at most [`MAX_PARTS`].
    #[serde(deserialize_with = "at_most::<_, _, MAX_PARTS>")]
    pub parts: Vec<Part>,
    /// Its canonical bytes.
    pub bytes: Vec<u8>,
}

/// From the relay, on the control channel; `Resync` and `Piece` on the channel for chunks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToPeer {
    /// The join is accepted.
    Welcome {
        /// The peer's seat; none for a spectator.
        seat: Option<Seat>,
        /// The last closed tick. Ticks from `first` up to it follow as `Ticks`, unless there is a save.
        closed: Tick,
        /// The first tick that follows: 1, the one after the tick that a resuming peer has, or the one after the save.
        /// If the peer has that tick already, the session was rewound: the peer goes back to the tick before.
        first: Tick,
        /// How long ago `closed` was closed, in microseconds; negative if the session is about to begin.
        age_us: i64,
        /// The setup of the session.
        setup: Vec<u8>,
        /// Ticks a second.
        rate: u16,
        /// The claim to resume with.
        claim: Claim,
        /// The save to begin with: the peer asks for its pieces, and then for the ticks after it.
        save: Option<SaveHead>,
        /// The other facts of the session.
        about: About,
    },
    /// The join is refused.
    Refused {
        /// The reason, as a sentence.
        why: String,
    },
    /// Closed ticks that can be read by themselves.
    Ticks {
        /// The first tick.
        first: Tick,
        /// The number of ticks.
        ticks: u32,
        /// The seats taken before the first tick, see [`Table::to_bytes`].
        table: Vec<u8>,
        /// The coded ticks.
        bytes: Vec<u8>,
    },
    /// Send the hashes of the states after these ticks, as far as they are kept.
    GiveHashes {
        /// The first tick.
        from: Tick,
        /// The last tick.
        to: Tick,
    },
    /// Send the state after this tick, or the next one that is kept.
    GiveState {
        /// The tick.
        tick: Tick,
    },
    /// The peer is desynced: it goes on from this state, and asks for the ticks after it.
    Resync {
        /// The tick of the state.
        tick: Tick,
        /// The canonical bytes of the state.
        state: Vec<u8>,
    },
    /// The members of the session.
    Roster {
        /// The players, by seat.
        #[serde(deserialize_with = "at_most::<_, _, MAX_SEATS>")]
        players: Vec<Seated>,
        /// The number of spectators.
        spectators: u16,
    },
    /// Answer with `Offer` how long the state after this tick is, once the tick is confirmed.
    GiveSave {
        /// The tick, a multiple of [`CHECK_EVERY`].
        tick: Tick,
    },
    /// Send these bytes of the offered state; before the welcome, of the state in the peer's copy.
    GivePiece {
        /// The tick of the state.
        tick: Tick,
        /// The offset of the first byte.
        offset: u32,
        /// The number of bytes, at most.
        bytes: u32,
    },
    /// A piece of a save that was asked for.
    Piece(Piece),
    /// The missing ticks are no longer kept: the peer begins again with this save.
    Load(SaveHead),
    /// The relay has lost the closed ticks from this one on: send those that are kept. May arrive before the welcome.
    GiveTicks {
        /// The first tick.
        from: Tick,
    },
}

/// The pace report: how the relay sees a peer's inputs; sent now and then on the state channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// The tick of this report.
    pub tick: Tick,
    /// The least time, in microseconds, by which a fresh input arrived before its tick closed; negative if it was late.
    /// Inputs that arrived only with a later packet do not count: this is about the path, not about loss.
    pub least_slack_us: Option<i32>,
    /// Inputs of this peer that were missing when their tick closed, since its first input.
    pub omissions: u32,
    /// The last tick on whose state the players agree.
    pub agreed: Tick,
    /// How often a peer was desynced, in the whole session.
    pub mismatches: u32,
}

/// Writes closed ticks, coded against those before them, for peers that have all of those. Advances the table.
pub fn put_ticks<'a>(
    out: &mut Vec<u8>,
    first: Tick,
    table: &mut Table,
    rows: impl ExactSizeIterator<Item = &'a Inputs<Opaque>>,
) {
    let mut writer = BitWriter::new(out);
    put_head(&mut writer, first, rows.len() as u32);
    rows.for_each(|rows| table.put(&mut writer, rows));
    writer.finish();
}

/// Reads what [`put_ticks`] wrote, with `rows` as the buffer for one tick after the other. The first tick must be the
/// one after `have`: earlier ones are known, and later ones cannot be read yet. Returns which case it was. `near` is a
/// tick known to be closed: only the last bits of the first tick's number are in the message.
pub fn read_ticks(
    bytes: &[u8],
    (have, near): (Tick, Tick),
    table: &mut Table,
    rows: &mut Inputs<Opaque>,
    mut see: impl FnMut(Tick, &Inputs<Opaque>),
) -> Result<Run, Malformed> {
    let mut reader = BitReader::new(bytes);
    let (first, ticks) = read_head(&mut reader, near.next())?;
    if first > have.next() {
        return Ok(Run::Early);
    }
    if first < have.next() {
        return Ok(Run::Old);
    }
    for offset in 0..ticks {
        table.read(&mut reader, rows)?;
        see(first + offset, rows);
    }
    reader.finish()?;
    Ok(Run::Next)
}

/// The position of a run of ticks relative to the ticks a peer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// It continues them.
    Next,
    /// The peer has them already.
    Old,
    /// Ticks before it are missing.
    Early,
}

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From a peer.
    ToRelay,
    /// From the relay.
    ToPeer,
}

/// The kind of a message, for people who read message logs. Ticks are near `near`.
pub fn describe(way: Way, channel: Channel, bytes: &[u8], near: Tick) -> Described {
    match (way, channel) {
        (Way::ToRelay, Channel::Input) => Described::kind("inputs").with_tick(first_tick(bytes, near)),
        (Way::ToPeer, Channel::Input) => Described::kind("ticks").with_tick(first_tick(bytes, near)),
        (Way::ToPeer, Channel::State) => {
            Described::kind("pace").with_tick(from_bytes(bytes).ok().map(|pace: Pace| pace.tick))
        }
        (Way::ToRelay, Channel::Diagnostics) => Described::kind("diagnostics"),
        (Way::ToRelay, Channel::Control | Channel::Chunks) => match from_bytes(bytes) {
            Ok(ToRelay::Join(_)) => Described::kind("join").secret(),
            Ok(ToRelay::Resend { from }) => Described::at("resend", from),
            Ok(ToRelay::Check { tick, .. }) => Described::at("check", tick),
            Ok(ToRelay::Hashes { first, .. }) => Described::at("hashes", first),
            Ok(ToRelay::State(state)) => Described::at("state", state.tick),
            Ok(ToRelay::Resynced { tick, .. }) => Described::at("resynced", tick),
            Ok(ToRelay::Offer { tick, .. }) => Described::at("offer", tick),
            Ok(ToRelay::Piece(piece)) => Described::at("piece", piece.tick),
            Ok(ToRelay::Want { tick, .. }) => Described::at("want", tick),
            Ok(ToRelay::Ticks { first, .. }) => Described::at("given_ticks", first),
            Err(_) => Described::kind("unreadable"),
        },
        (Way::ToPeer, Channel::Control | Channel::Chunks) => match from_bytes(bytes) {
            Ok(ToPeer::Welcome { closed, .. }) => Described::at("welcome", closed).secret(),
            Ok(ToPeer::Refused { .. }) => Described::kind("refused"),
            Ok(ToPeer::Ticks { first, .. }) => Described::at("history", first),
            Ok(ToPeer::GiveHashes { from, .. }) => Described::at("give_hashes", from),
            Ok(ToPeer::GiveState { tick }) => Described::at("give_state", tick),
            Ok(ToPeer::Resync { tick, .. }) => Described::at("resync", tick),
            Ok(ToPeer::Roster { .. }) => Described::kind("roster"),
            Ok(ToPeer::GiveSave { tick }) => Described::at("give_save", tick),
            Ok(ToPeer::GivePiece { tick, .. }) => Described::at("give_piece", tick),
            Ok(ToPeer::Piece(piece)) => Described::at("piece", piece.tick),
            Ok(ToPeer::Load(head)) => Described::at("load", head.tick),
            Ok(ToPeer::GiveTicks { from }) => Described::at("give_ticks", from),
            Err(_) => Described::kind("unreadable"),
        },
        _ => Described::kind("unknown"),
    }
}

#[cfg(test)]
mod tests;
