//! The HTTP side of a host: its health, and the WebSocket of its sessions. It serves no pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use sametick_transport::site::{Bytes, Pages, Request, Response, StatusCode, Upgrade, header};
use serde_json::json;

use super::members::SOCKET;
use crate::listen::Listening;
use crate::pages::gate::Gate;
use crate::pages::{answer_json, error, guarded, set};

/// The number of sessions, and how many of them play.
#[derive(Clone, Default)]
pub(crate) struct Count(Arc<(AtomicUsize, AtomicUsize)>);

impl Count {
    pub fn set(&self, (sessions, running): (usize, usize)) {
        self.0.0.store(sessions, Ordering::Relaxed);
        self.0.1.store(running, Ordering::Relaxed);
    }
}

/// The HTTP handler of a host.
pub(crate) struct HostPages {
    gate: Gate,
    count: Count,
    /// The git commit of the program.
    commit: &'static str,
    started: Instant,
}

impl HostPages {
    pub fn new(listening: &Listening, count: Count, commit: &'static str) -> HostPages {
        HostPages { gate: Gate::of(listening), count, commit, started: Instant::now() }
    }
}

impl Pages for HostPages {
    fn answer(&self, request: &Request<()>) -> Response<Bytes> {
        let mut response = match request.uri().path() {
            "/api/health" => {
                let (sessions, running) = &*self.count.0;
                answer_json(
                    StatusCode::OK,
                    &json!({
                        "status": "ok",
                        "version": env!("CARGO_PKG_VERSION"),
                        "commit": self.commit,
                        "uptime_s": self.started.elapsed().as_secs(),
                        "sessions": sessions.load(Ordering::Relaxed),
                        "running": running.load(Ordering::Relaxed),
                    }),
                )
            }
            _ => error(
                StatusCode::NOT_FOUND,
                "this is a host of sessions: there is only /api/health to look at",
            ),
        };
        // Pages are served by the gateway, and may measure the round trip to this host.
        set(response.headers_mut(), header::ACCESS_CONTROL_ALLOW_ORIGIN.as_str(), "*");
        guarded(response)
    }

    fn upgrade(&self, request: &Request<()>) -> Upgrade {
        self.gate.upgrade(request, SOCKET)
    }
}
