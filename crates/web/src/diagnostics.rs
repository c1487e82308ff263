//! How the connection and this machine are doing, as pages are told.

use sametick_client::Client;
use sametick_lockstep::diagnostics::Reading;
use sametick_lockstep::peer::Peer;
use sametick_sim::{Game, StateHash};
use serde::Serialize;

/// The figures of now; counts are totals.
#[derive(Debug, Serialize)]
pub struct PageDiagnostics {
    tick: u32,
    confirmed: u32,
    depth: u32,
    /// Of the confirmed state.
    hash: String,
    verdict: &'static str,
    readings: [Reading; 7],
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
    bytes_in: u64,
    bytes_out: u64,
    agreed: u32,
    mismatches: u32,
    resyncs: u32,
    reconnects: u32,
}

impl PageDiagnostics {
    /// The figures of a client that has been let in.
    pub fn of<G: Game>(client: &Client<Peer<G>>) -> Option<PageDiagnostics> {
        let peer = client.side()?;
        let ((tick, _), (confirmed, state)) = (peer.shown()?, peer.confirmed()?);
        let (stats, measured, totals) = (peer.stats(), peer.diagnostics(), client.totals());
        let ms = |us: u32| f64::from(us) / 1_000.0;
        Some(PageDiagnostics {
            tick: tick.0,
            confirmed: confirmed.0,
            depth: tick.ticks_since(confirmed),
            hash: StateHash::of(state).to_string(),
            verdict: measured.verdict(),
            readings: measured.readings(),
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
            bytes_in: totals.bytes_received,
            bytes_out: totals.bytes_sent,
            agreed: measured.agreed.0,
            mismatches: measured.mismatches,
            resyncs: stats.resyncs,
            reconnects: totals.losses,
        })
    }
}
