//! What peers and relays say to each other. Control messages are postcard; ticks are packed bits.

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

/// The largest state that is passed on.
pub const MAX_STATE: usize = 8 << 20;

/// Peers hash their confirmed state after every tick that is a multiple of this (L6).
pub const CHECK_EVERY: u32 = 30;

/// Of how many of its last confirmed ticks a peer can give the hash, and the state if that is small.
pub const RECENT_TICKS: u32 = 120;

/// So many of its last closed ticks a peer can give to a relay that has lost them: the log is written every two seconds, and a disk may
/// be slow. Ten seconds at 60 Hz.
pub const GIVEN_TICKS: u32 = 600;

/// A save is passed on in pieces of this many bytes, the last one shorter: inputs that wait behind one are hardly late, even
/// where everything goes over one stream.
pub const PIECE_BYTES: usize = 16 << 10;

/// So many pieces a peer may have asked for and not have yet. With [`PIECE_BYTES`], a tenth of a second of a good line.
pub const MAX_WANTED: usize = 4;

/// The most field-level differences in a report.
pub const MAX_DIFFERENCES: usize = 64;

/// The most hashes in a message.
pub const MAX_HASHES: usize = RECENT_TICKS as usize;

/// The most parts of a state whose hashes are told: a few bytes of a message become many in memory.
pub const MAX_PARTS: usize = 1_024;

/// From a peer, on the control channel; `State`, `Piece` and `Ticks` on the channel for chunks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToRelay {
    /// Take part; begins the session if there is none.
    Join(Join),
    /// Some ticks never came: send them again, from this one on.
    Resend {
        /// The first that is missing.
        from: Tick,
    },
    /// What the confirmed state hashes to.
    Check {
        /// After which tick.
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
    /// The good state has been taken; what it differed in from the one that was there.
    Resynced {
        /// The tick that was compared.
        tick: Tick,
        /// The first of the fields that differed, at most [`MAX_DIFFERENCES`]; none if the state of that tick was not kept.
        #[serde(deserialize_with = "at_most::<_, _, MAX_DIFFERENCES>")]
        fields: Vec<Difference>,
    },
    /// The state that was asked for with `GiveSave`.
    Offer {
        /// After which tick.
        tick: Tick,
        /// How many canonical bytes it has; none if it is not there.
        bytes: Option<u32>,
    },
    /// A part of it, as asked for with `GivePiece`.
    Piece(Piece),
    /// Send the piece of the save of this tick that begins here.
    Want {
        /// After which tick.
        tick: Tick,
        /// How many bytes come before it; a multiple of [`PIECE_BYTES`].
        offset: u32,
    },
    /// Closed ticks, as asked for with `GiveTicks`, in the form of [`ToPeer::Ticks`].
    Ticks {
        /// The first of them.
        first: Tick,
        /// How many; none if the one that was asked for is not there.
        ticks: u32,
        /// Who sat where before the first.
        table: Vec<u8>,
        /// Coded.
        bytes: Vec<u8>,
    },
}

/// A part of a save.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// After which tick the state is.
    pub tick: Tick,
    /// How many of its bytes come before these.
    pub offset: u32,
    /// Canonical bytes.
    pub bytes: Vec<u8>,
}

/// What is said of a save before its bytes are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveHead {
    /// After which tick the state is.
    pub tick: Tick,
    /// What its canonical bytes hash to.
    pub hash: StateHash,
    /// How many there are, at most [`MAX_STATE`].
    pub bytes: u32,
    /// Who sat where after that tick, see [`Table::to_bytes`].
    pub table: Vec<u8>,
}

/// What a peer says to take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// The name of the game.
    pub game: String,
    /// The git commit the peer was built from.
    pub commit: String,
    /// What the game needs to know to begin.
    pub setup: Vec<u8>,
    /// The seed in that setup, for people who read the log.
    pub seed: u64,
    /// Ticks a second.
    pub rate: u16,
    /// How many seats the session has, if this begins it.
    pub seats: u16,
    /// With how many players it begins then.
    pub wait_for: u16,
    /// What the player is called.
    pub name: String,
    /// Only watch.
    pub watch: bool,
    /// Sit here or nowhere; anywhere if none. Who comes back rather sits elsewhere than nowhere.
    pub seat: Option<Seat>,
    /// Whether strangers may be shown the session, if this begins it.
    pub listed: bool,
    /// As whom to come back, and from where to go on.
    pub resume: Option<Resume>,
    /// What this peer has of the session, if this begins it: the session goes on from there.
    pub bring: Option<Bring>,
}

/// A copy of a session that a peer offers to a relay that has nothing of that session. Setup, seed, seats and whether it is listed
/// are those of the [`Join`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bring {
    /// The state, which the relay asks for with `GivePiece`.
    pub save: SaveHead,
    /// When the session began, in milliseconds of Unix time.
    pub started_unix_ms: u64,
}

/// What a relay says of a session besides its setup and rate: a copy of the session says the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The seed in the setup.
    pub seed: u64,
    /// How many seats there are.
    pub seats: u16,
    /// Whether strangers may be shown it.
    pub listed: bool,
    /// The git commit of the peer that began it.
    pub commit: String,
    /// When it began, in milliseconds of Unix time; a number of its own where the relay keeps nothing.
    pub started_unix_ms: u64,
}

/// How a peer comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// From its last welcome.
    pub claim: Claim,
    /// Its confirmed state is the one after this tick.
    pub have: Tick,
}

/// Somebody on a seat, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seated {
    /// Where.
    pub seat: Seat,
    /// Who.
    pub name: String,
}

/// A state of a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateAt {
    /// After which tick.
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
    /// You take part.
    Welcome {
        /// Where you sit; nowhere if you watch.
        seat: Option<Seat>,
        /// The last tick that has been closed. Everything from `first` up to it follows as `Ticks`, unless there is a save.
        closed: Tick,
        /// The first that follows: 1, or the one after what a peer that comes back said it has, or after the save. If it has that one
        /// already, the session went on without it: go back to the tick before.
        first: Tick,
        /// How long ago that was, in microseconds; negative if the session is about to begin.
        age_us: i64,
        /// What the session was begun with.
        setup: Vec<u8>,
        /// Ticks a second.
        rate: u16,
        /// For coming back.
        claim: Claim,
        /// Begin with this save: ask for its pieces, and then for the ticks after it.
        save: Option<SaveHead>,
        /// What else there is to say of the session.
        about: About,
    },
    /// You do not, and this is why.
    Refused {
        /// A sentence.
        why: String,
    },
    /// Closed ticks that can be read by themselves.
    Ticks {
        /// The first of them.
        first: Tick,
        /// How many.
        ticks: u32,
        /// Who sat where before the first, see [`Table::to_bytes`].
        table: Vec<u8>,
        /// Coded.
        bytes: Vec<u8>,
    },
    /// Give the hashes of your states after these ticks, as far as you have them.
    GiveHashes {
        /// The first.
        from: Tick,
        /// The last.
        to: Tick,
    },
    /// Give your state after this tick, or the next one you have.
    GiveState {
        /// The tick.
        tick: Tick,
    },
    /// Your state is wrong: go on from this one, and ask for the ticks after it.
    Resync {
        /// After which tick.
        tick: Tick,
        /// Canonical bytes.
        state: Vec<u8>,
    },
    /// Who takes part now.
    Roster {
        /// The players, by seat.
        #[serde(deserialize_with = "at_most::<_, _, MAX_SEATS>")]
        players: Vec<Seated>,
        /// How many watch.
        watchers: u16,
    },
    /// Give your state after this tick, which may be still to come: say with `Offer` how long it is.
    GiveSave {
        /// The tick, a multiple of [`CHECK_EVERY`].
        tick: Tick,
    },
    /// Give these bytes of the state that was offered; before the welcome, of the one that the peer brings.
    GivePiece {
        /// The tick.
        tick: Tick,
        /// The first byte.
        offset: u32,
        /// How many bytes, at most.
        bytes: u32,
    },
    /// A piece of a save that was asked for.
    Piece(Piece),
    /// What is missing is no longer kept: begin again with this save.
    Load(SaveHead),
    /// Give the closed ticks from this one on, as far as you have them: the relay has lost them. May come before the welcome.
    GiveTicks {
        /// The first.
        from: Tick,
    },
}

/// How the relay sees a peer; sent now and then on the state channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// Which report this is.
    pub tick: Tick,
    /// The least time, in microseconds, by which a fresh input came before its tick was closed; negative if it was late.
    /// Inputs that only arrived with a later packet do not count: this is about the path, not about loss.
    pub least_slack_us: Option<i32>,
    /// Inputs of this peer that were missing when their tick was closed, since its first one.
    pub omissions: u32,
    /// The last tick on whose state the players agree.
    pub agreed: Tick,
    /// How often somebody had another state than the others, in the whole session.
    pub mismatches: u32,
}

/// Closed ticks, coded against those before them: for peers that have all of those. The table moves on with them.
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

/// Reads what [`put_ticks`] wrote, with `rows` as the place for one tick after the other. The first tick must be the one
/// after `have`: earlier ones have been seen, and later ones cannot be understood yet. Returns which it was. `near` is a
/// tick that is known to be closed: of the first one's number only the last bits are there.
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

/// Where a run of ticks stands to what a peer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// It continues it.
    Next,
    /// The peer has it already.
    Old,
    /// Something is missing before it.
    Early,
}

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From a peer.
    ToRelay,
    /// From the relay.
    ToPeer,
}

/// What a message is about, for people who read message logs. Ticks are near `near`.
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
