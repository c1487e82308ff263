//! The server's own tokens, which are issued in exchange for signed ones.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use sametick_transport::hub_waker::HubWaker;
use sametick_wire::identity::Token;
use tokio::sync::oneshot;

use super::SignedIn;

/// A stored token, with the data sent to its owner.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The token itself.
    pub token: Token,
    /// The owner's name, if it is known.
    pub name: Option<String>,
    /// When it expires.
    pub expires_unix_s: u64,
}

/// A sign-in that waits for its token, with the channel for the token.
pub type Waiting = (SignedIn, oneshot::Sender<Issued>);

/// Queue of sign-ins that wait for a token: the boundary between identity checks and the player database. Clones share
/// it.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    queue: Arc<Mutex<VecDeque<Waiting>>>,
    waker: HubWaker,
}

impl Counter {
    /// The waker tells the database side about new entries.
    pub fn new(waker: HubWaker) -> Counter {
        Counter { queue: Arc::default(), waker }
    }

    /// Issues a token for a sign-in, once it is stored; `None` if it cannot be. The function itself does not block.
    pub fn issue(&self, who: SignedIn) -> impl Future<Output = Option<Issued>> + Send + use<> {
        let (answer, issued) = oneshot::channel();
        if let Ok(mut queue) = self.queue.lock() {
            queue.push_back((who, answer));
        }
        self.waker.ring();
        async move { issued.await.ok() }
    }

    /// The sign-in that has waited longest.
    pub fn next(&self) -> Option<Waiting> {
        self.queue.lock().ok()?.pop_front()
    }
}
