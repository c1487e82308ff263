//! Wakes a hub from another thread, when something its application waits for is ready.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// A handle that wakes its hub. Clones share it; ringing twice counts once.
#[derive(Clone, Debug, Default)]
pub struct HubWaker(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    is_rung: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl HubWaker {
    /// The application is called soon, as if its timer were due.
    pub fn ring(&self) {
        self.0.is_rung.store(true, Ordering::Release);
        // A panic leaves a valid waker.
        let waker = self.0.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Ready once after each ring.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        *self.0.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
        if self.0.is_rung.swap(false, Ordering::AcqRel) { Poll::Ready(()) } else { Poll::Pending }
    }
}
