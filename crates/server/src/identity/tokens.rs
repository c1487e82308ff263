//! Our own tokens: what a signed one is exchanged for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use sametick_transport::hub_waker::HubWaker;
use sametick_wire::identity::Token;
use tokio::sync::oneshot;

use super::SignedIn;

/// A token that is kept, and what its owner is told with it.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The token itself.
    pub token: Token,
    /// What they are called, if that is known.
    pub name: Option<String>,
    /// Until when it is good.
    pub expires_unix_s: u64,
}

/// Somebody who has signed in, and where their token is to go.
pub type Waiting = (SignedIn, oneshot::Sender<Issued>);

/// Where those who have signed in wait for a token: the boundary between who somebody is and where that is kept. Clones are one.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    queue: Arc<Mutex<VecDeque<Waiting>>>,
    waker: HubWaker,
}

impl Counter {
    /// Whoever serves there is called by this.
    pub fn new(waker: HubWaker) -> Counter {
        Counter { queue: Arc::default(), waker }
    }

    /// A token for somebody who has signed in, once it is kept; none if it cannot be. It does not wait itself.
    pub fn issue(&self, who: SignedIn) -> impl Future<Output = Option<Issued>> + Send + use<> {
        let (answer, issued) = oneshot::channel();
        if let Ok(mut queue) = self.queue.lock() {
            queue.push_back((who, answer));
        }
        self.waker.ring();
        async move { issued.await.ok() }
    }

    /// Whoever has waited longest.
    pub fn next(&self) -> Option<Waiting> {
        self.queue.lock().ok()?.pop_front()
    }
}
