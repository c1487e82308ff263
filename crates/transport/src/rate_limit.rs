//! Rate limiters on the machine's clock: of one connection, of each address, and of the bytes of a stream.

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use sametick_wire::Time;
use sametick_wire::rate_limit::{RateLimit, TokenBucket, TokenBuckets};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The limiter of one connection.
pub(crate) struct RateLimiter {
    limit: RateLimit,
    bucket: TokenBucket,
    began: Instant,
}

impl RateLimiter {
    pub fn new(per_second: u32, burst: u32) -> RateLimiter {
        let limit = RateLimit::per_second(per_second, burst);
        RateLimiter { limit, bucket: TokenBucket::default(), began: Instant::now() }
    }

    /// Takes one token if it is there.
    pub fn try_take(&mut self, now: Instant) -> bool {
        self.bucket.try_take(time_since(self.began, now), self.limit)
    }

    /// Takes `amount` tokens. Returns how long to wait before the next, if that is more than there are.
    pub fn take(&mut self, now: Instant, amount: usize) -> Option<Duration> {
        let wait_us = self.bucket.take(time_since(self.began, now), self.limit, amount as u64);
        wait_us.map(Duration::from_micros)
    }
}

fn time_since(began: Instant, now: Instant) -> Time {
    Time::from_micros(now.saturating_duration_since(began).as_micros() as u64)
}

/// Addresses that have a bucket of their own; the rest share one.
const MAX_ADDRESSES: usize = 4_096;

/// A limiter for each address.
pub struct AddressLimiter {
    buckets: Mutex<TokenBuckets<IpAddr>>,
    began: Instant,
}

impl AddressLimiter {
    /// The rate of each address, and its burst after a pause.
    pub fn new(per_second: u32, burst: u32) -> AddressLimiter {
        let limit = RateLimit::per_second(per_second, burst);
        AddressLimiter { buckets: Mutex::new(TokenBuckets::new(limit, MAX_ADDRESSES)), began: Instant::now() }
    }

    /// Takes one token of an address if it is there.
    pub fn try_take(&self, now: Instant, ip: IpAddr) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.try_take(time_since(self.began, now), network(ip))
    }
}

/// The address that limits apply to: itself, or the IPv6 network of one customer.
pub fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
        ip => ip,
    }
}

/// A stream whose reads are rate-limited in bytes, so that bytes outside of messages are limited too.
pub(crate) struct RateLimited<S> {
    io: S,
    limiter: RateLimiter,
    wait: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl<S> RateLimited<S> {
    pub fn new(io: S, limiter: RateLimiter) -> RateLimited<S> {
        RateLimited { io, limiter, wait: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for RateLimited<S> {
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
        let wait = self.limiter.take(Instant::now(), buf.filled().len() - before);
        self.wait = wait.map(|wait| Box::pin(tokio::time::sleep(wait)));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for RateLimited<S> {
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
    fn a_burst_is_free_and_then_the_rate_holds() {
        let mut limiter = RateLimiter::new(10, 5);
        let start = limiter.began;
        let after = |ms| start + Duration::from_millis(ms);
        assert!((0..5).all(|_| limiter.take(start, 1).is_none()));
        assert_eq!(limiter.take(start, 1), Some(Duration::from_millis(100)));
        assert_eq!(limiter.take(start, 1), Some(Duration::from_millis(200)));
        assert!(limiter.take(after(300), 1).is_none());
        assert!((0..5).all(|_| limiter.take(after(60_000), 1).is_none()), "a pause fills the bucket");
        assert!(limiter.take(after(60_000), 1).is_some(), "to the brim and no more");
    }

    #[test]
    fn every_address_has_a_bucket_and_an_ipv6_network_has_one() {
        let limiter = AddressLimiter::new(1, 2);
        let start = limiter.began;
        let take = |ip: &str, ms| limiter.try_take(start + Duration::from_millis(ms), ip.parse().unwrap());
        assert!(take("192.0.2.1", 0) && take("192.0.2.1", 0) && !take("192.0.2.1", 0));
        assert!(take("192.0.2.2", 0), "another has its own");
        assert!(!take("::ffff:192.0.2.1", 0), "the same in other words");
        assert!(take("2001:db8::1", 0) && take("2001:db8::2", 0) && !take("2001:db8::3", 0));
        assert!(take("2001:db8:0:1::1", 0));
        assert!(!take("192.0.2.1", 900) && take("192.0.2.1", 1_000) && !take("192.0.2.1", 1_000));
    }

    #[test]
    fn the_table_of_addresses_is_bounded() {
        let limiter = AddressLimiter::new(1, 2);
        let start = limiter.began;
        let ip = |n: usize| IpAddr::from(std::net::Ipv4Addr::from_bits(n as u32));
        assert!((0..MAX_ADDRESSES).all(|n| limiter.try_take(start, ip(n))));
        let len = || limiter.buckets.lock().unwrap().len();
        let others: Vec<bool> = (0..4).map(|n| limiter.try_take(start, ip(MAX_ADDRESSES + n))).collect();
        assert_eq!((others, len()), (vec![true, true, false, false], MAX_ADDRESSES), "the rest share one");
        let later = start + Duration::from_secs(5);
        assert!(limiter.try_take(later, ip(MAX_ADDRESSES)));
        assert_eq!(len(), 1, "full buckets are forgotten");
    }
}
