//! Wakes a hub from another thread: what its application waits for is there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// Wakes the hub that has it. Clones are one; ringing twice is ringing once.
#[derive(Clone, Debug, Default)]
pub struct HubWaker(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    is_rung: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl HubWaker {
    /// The application is called soon, as if its time had come.
    pub fn ring(&self) {
        self.0.is_rung.store(true, Ordering::Release);
        // Whoever panicked here has left a waker that is as good as another.
        let waker = self.0.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Ready once it was rung, and then not before it is rung again.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        *self.0.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
        if self.0.is_rung.swap(false, Ordering::AcqRel) { Poll::Ready(()) } else { Poll::Pending }
    }
}
