//! How fast somebody may go: so much at once after a pause, then so much a second.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
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

    /// Whether it is as if nobody had taken anything.
    fn is_full(&mut self, now: Instant) -> bool {
        self.fill(now);
        self.left >= self.burst
    }

    fn fill(&mut self, now: Instant) {
        let earned = now.duration_since(self.filled_at).as_secs_f64() * self.per_second;
        self.left = (self.left + earned).min(self.burst);
        self.filled_at = now;
    }
}

/// Addresses that have a pace of their own; more than that share one.
const MAX_ADDRESSES: usize = 4_096;

/// Addresses that have paused long enough are forgotten no more often than this.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// A pace for each address, so that nobody's haste costs others. Of IPv6, whoever has one address has a network of them: it
/// has one pace.
pub struct Paces {
    per_second: u32,
    burst: u32,
    table: Mutex<Table>,
}

struct Table {
    paces: HashMap<IpAddr, Pace>,
    /// For those who find no place in the table.
    others: Pace,
    swept_at: Instant,
}

impl Paces {
    /// So much a second for each address, and so much at once after a pause.
    pub fn new(per_second: u32, burst: u32) -> Paces {
        let others = Pace::new(per_second, burst);
        let table = Table { paces: HashMap::new(), swept_at: others.filled_at, others };
        Paces { per_second, burst, table: Mutex::new(table) }
    }

    /// Takes one for an address if it is there.
    pub fn try_take(&self, now: Instant, ip: IpAddr) -> bool {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let ip = network(ip);
        if let Some(pace) = table.paces.get_mut(&ip) {
            return pace.try_take(now);
        }
        table.sweep(now);
        if table.paces.len() >= MAX_ADDRESSES {
            return table.others.try_take(now);
        }
        let fresh = || Pace { filled_at: now, ..Pace::new(self.per_second, self.burst) };
        table.paces.entry(ip).or_insert_with(fresh).try_take(now)
    }
}

impl Table {
    fn sweep(&mut self, now: Instant) {
        if self.paces.len() >= MAX_ADDRESSES && now.duration_since(self.swept_at) >= SWEEP_EVERY {
            self.swept_at = now;
            self.paces.retain(|_, pace| !pace.is_full(now));
        }
    }
}

/// What an address stands for: itself, or the network that one customer has.
pub fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
        ip => ip,
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
    #[test]
    fn every_address_has_its_own_pace_and_a_network_of_ipv6_has_one() {
        let paces = Paces::new(1, 2);
        let start = Instant::now();
        let take = |ip: &str, ms| paces.try_take(start + Duration::from_millis(ms), ip.parse().unwrap());
        assert!(take("192.0.2.1", 0) && take("192.0.2.1", 0) && !take("192.0.2.1", 0));
        assert!(take("192.0.2.2", 0), "another has its own");
        assert!(!take("::ffff:192.0.2.1", 0), "the same in other words");
        assert!(take("2001:db8::1", 0) && take("2001:db8::2", 0) && !take("2001:db8::3", 0));
        assert!(take("2001:db8:0:1::1", 0));
        assert!(!take("192.0.2.1", 900) && take("192.0.2.1", 1_000) && !take("192.0.2.1", 1_000));
    }

    #[test]
    fn the_table_of_addresses_does_not_grow_without_end() {
        let paces = Paces::new(1, 2);
        let start = Instant::now();
        let ip = |n: usize| IpAddr::from(std::net::Ipv4Addr::from_bits(n as u32));
        assert!((0..MAX_ADDRESSES).all(|n| paces.try_take(start, ip(n))));
        let len = || paces.table.lock().unwrap().paces.len();
        let others: Vec<bool> = (0..4).map(|n| paces.try_take(start, ip(MAX_ADDRESSES + n))).collect();
        assert_eq!((others, len()), (vec![true, true, false, false], MAX_ADDRESSES), "the rest share one");
        let later = start + Duration::from_secs(5);
        assert!(paces.try_take(later, ip(MAX_ADDRESSES)));
        assert_eq!(len(), 1, "whoever has paused is forgotten");
    }
}
