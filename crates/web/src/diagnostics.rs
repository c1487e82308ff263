//! Diagnostics of the connection and this machine, as pages get them.

use sametick_client::Totals;
use sametick_lockstep::diagnostics::Reading;
use sametick_lockstep::peer::Peer;
use sametick_room::View;
use sametick_sim::replica::Hosted;
use sametick_sim::{Game, StateHash, Tick, Time};
use sametick_wire::LinkStats;
use serde::Serialize;

/// The number of readings for a rate: a second.
const RATED: usize = 4;

/// A larger prediction error is visible (V5).
const MAX_ERROR_MS: f32 = 30.0;

/// The present figures; counts are totals.
#[derive(Debug, Default, Serialize)]
pub struct Figures {
    tick: u32,
    confirmed: u32,
    depth: u32,
    /// The hash of the confirmed state.
    hash: String,
    verdict: &'static str,
    readings: Vec<Reading>,
    rtt_ms: f64,
    link_rtt_ms: f64,
    jitter_ms: f64,
    rollbacks: u64,
    resimulated: u64,
    omissions: u32,
    skipped: u64,
    network_deficit: u32,
    cpu_deficit: u32,
    loss_percent: f64,
    agreed: u32,
    mismatches: u32,
    resyncs: u32,
    bytes_in: u64,
    bytes_out: u64,
    reconnects: u32,
    room: Option<RoomFigures>,
}

/// Figures of a room only.
#[derive(Debug, Serialize)]
pub struct RoomFigures {
    snapshot_bytes: usize,
    bytes_per_second: u64,
    updates: u64,
    updates_lost: u64,
    buffer_ms: f64,
    delay_ms: u32,
    reconciliation_ms: Error,
    corrections: u64,
    snaps: u64,
    entities: usize,
    frozen_ms: f64,
    lead_ticks: u32,
    /// The age of the stored state, relative to the newest update.
    saved_ms: Option<f64>,
    #[serde(skip)]
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct Error {
    last: f32,
    mean: f64,
    max: f32,
}

/// Recent byte counts.
#[derive(Debug, Default)]
pub struct Counted([Option<(Time, u64)>; RATED]);

impl Figures {
    /// The figures of a session in lockstep.
    pub fn of_peer<G: Game>(peer: &Peer<G>) -> Option<Figures> {
        let ((tick, _), (confirmed, state)) = (peer.shown()?, peer.confirmed()?);
        let (stats, measured) = (peer.stats(), peer.diagnostics());
        let ms = |us: u32| f64::from(us) / 1_000.0;
        Some(Figures {
            tick: tick.0,
            confirmed: confirmed.0,
            depth: tick.ticks_since(confirmed),
            hash: StateHash::of(state).to_string(),
            verdict: measured.verdict(),
            readings: measured.readings().into(),
            rtt_ms: ms(measured.input_rtt_us),
            link_rtt_ms: ms(measured.link_rtt_us),
            jitter_ms: ms(measured.jitter_us),
            rollbacks: stats.rollbacks,
            resimulated: stats.resimulated,
            omissions: stats.omissions,
            skipped: stats.skipped,
            network_deficit: measured.network_deficit_ticks,
            cpu_deficit: measured.cpu_deficit_ticks,
            loss_percent: f64::from(measured.loss_permille) / 10.0,
            agreed: measured.agreed.0,
            mismatches: measured.mismatches,
            resyncs: stats.resyncs,
            ..Figures::default()
        })
    }

    /// The figures of a room.
    pub fn of_view<G: Hosted>(view: &View<G>) -> Figures {
        let stats = view.stats();
        let errors = stats.errors;
        let ms = |us: f64| us / 1_000.0;
        let room = RoomFigures {
            snapshot_bytes: stats.update_bytes,
            bytes_per_second: 0,
            updates: stats.updates,
            updates_lost: stats.lost,
            buffer_ms: ms(stats.buffer_us as f64),
            delay_ms: u32::try_from(stats.delay_us / 1_000).unwrap_or(0),
            reconciliation_ms: Error { last: errors.last_ms, mean: errors.mean_ms(), max: errors.max_ms },
            corrections: errors.corrections,
            snaps: errors.snaps,
            entities: stats.entities,
            frozen_ms: ms(stats.frozen_us as f64),
            lead_ticks: stats.lead_ticks,
            saved_ms: view.saved().map(|saved| ms(since_us::<G>(view.newest_tick(), saved))),
            bytes: stats.bytes,
        };
        Figures {
            tick: view.tick().0,
            confirmed: view.newest_tick().0,
            depth: stats.lead_ticks,
            verdict: match () {
                () if stats.buffer_us <= 0 => {
                    "Updates come late: what others do stands still until they are here."
                }
                () if errors.last_ms > MAX_ERROR_MS => "The host decided otherwise than was predicted here.",
                () => "Everything is as it should be.",
            },
            omissions: stats.omissions,
            room: Some(room),
            ..Figures::default()
        }
    }

    /// Adds the statistics of all earlier links and of the open one.
    #[must_use]
    pub fn with(mut self, totals: Totals, link: LinkStats, counted: &Counted) -> Figures {
        if let Some(room) = &mut self.room {
            room.bytes_per_second = counted.per_second();
            self.link_rtt_ms = link.rtt_us.unwrap_or(0) as f64 / 1_000.0;
            (self.rtt_ms, self.jitter_ms) = (self.link_rtt_ms, link.jitter_us as f64 / 1_000.0);
            let missing = link.packets_expected.saturating_sub(link.packets_received) + link.packets_lost;
            let all = link.packets_expected + link.packets_sent;
            self.loss_percent = 100.0 * missing as f64 / all.max(1) as f64;
        }
        let Totals { bytes_received, bytes_sent, losses, .. } = totals;
        Figures { bytes_in: bytes_received, bytes_out: bytes_sent, reconnects: losses, ..self }
    }
}

/// The time from an earlier tick to this one.
fn since_us<G: Game>(tick: Tick, earlier: Tick) -> f64 {
    G::RATE.due_micros(tick).saturating_sub(G::RATE.due_micros(earlier)) as f64
}

impl Counted {
    /// Adds a reading of a room's figures.
    pub fn count(&mut self, now: Time, figures: &Figures) {
        if let Some(room) = &figures.room {
            self.0.rotate_left(1);
            self.0[RATED - 1] = Some((now, room.bytes));
        }
    }

    fn per_second(&self) -> u64 {
        let (Some((from, before)), Some((to, after))) = (self.0.iter().flatten().next(), self.0[RATED - 1])
        else {
            return 0;
        };
        after.saturating_sub(*before) * 1_000_000 / to.micros_since(*from).max(1)
    }
}
