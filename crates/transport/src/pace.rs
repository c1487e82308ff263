//! How fast somebody may go: so much at once after a pause, then so much a second.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What may be taken; refills with time.
pub(crate) struct Pace {
    per_second: f64,
    burst: f64,
    left: f64,
    filled_at: Instant,
}

impl Pace {
    pub fn new(per_second: u32, burst: u32) -> Pace {
        let (per_second, burst) = (f64::from(per_second), f64::from(burst));
        Pace { per_second, burst, left: burst, filled_at: Instant::now() }
    }

    /// Takes so much. Returns how long to wait before the next, if that is too early.
    pub fn take(&mut self, now: Instant, amount: usize) -> Option<Duration> {
        self.fill(now);
        self.left -= amount as f64;
        (self.left < 0.0).then(|| Duration::from_secs_f64(-self.left / self.per_second))
    }

    /// Takes one if it is there.
    pub fn try_take(&mut self, now: Instant) -> bool {
        self.fill(now);
        let there = self.left >= 1.0;
        if there {
            self.left -= 1.0;
        }
        there
    }

    fn fill(&mut self, now: Instant) {
        let earned = now.duration_since(self.filled_at).as_secs_f64() * self.per_second;
        self.left = (self.left + earned).min(self.burst);
        self.filled_at = now;
    }
}

/// A stream that is read no faster than its pace, in bytes: what never becomes a message has its price too.
pub(crate) struct Paced<S> {
    io: S,
    pace: Pace,
    wait: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl<S> Paced<S> {
    pub fn new(io: S, pace: Pace) -> Paced<S> {
        Paced { io, pace, wait: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(wait) = &mut self.wait {
            ready!(wait.as_mut().poll(cx));
            self.wait = None;
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, buf))?;
        let wait = self.pace.take(Instant::now(), buf.filled().len() - before);
        self.wait = wait.map(|wait| Box::pin(tokio::time::sleep(wait)));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_forgiven_and_then_the_pace_holds() {
        let mut pace = Pace::new(10, 5);
        let start = pace.filled_at;
        let after = |ms| start + Duration::from_millis(ms);
        assert!((0..5).all(|_| pace.take(start, 1).is_none()));
        assert_eq!(pace.take(start, 1), Some(Duration::from_millis(100)));
        assert_eq!(pace.take(start, 1), Some(Duration::from_millis(200)));
        assert!(pace.take(after(300), 1).is_none());
        assert!(
            (0..5).all(|_| pace.take(after(60_000), 1).is_none()),
            "a pause fills it, to the brim and no more"
        );
        assert!(!pace.try_take(after(60_000)) && pace.try_take(after(60_200)));
    }
}
