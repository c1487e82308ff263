//! Decides when to fetch the issuer's keys. A state machine without a clock: the worker fetches when it says so.
//!
//! Keys are fetched at the start and every ten minutes, so that a revoked key is soon refused. An unknown key id causes
//! at most one fetch a minute in total, so made-up ids cost the issuer nothing. After failures the pause grows. The
//! last fetched keys stay in use until newer ones arrive.

use sametick_wire::Time;

use super::jwks::KeySet;
use super::refusal::Refusal;

/// The least time between fetches because of an unknown key id.
pub const UNKNOWN_KEY_US: u64 = 60_000_000;

/// The time between regular fetches.
pub const REFRESH_US: u64 = 600_000_000;

/// The pause after a first failure; it doubles with every further one.
pub const FIRST_PAUSE_US: u64 = 1_000_000;

/// The longest pause after failures.
pub const LONGEST_PAUSE_US: u64 = 60_000_000;

/// How to treat a token whose key is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The token waits: the keys are being fetched, or about to be.
    Wait,
    /// The token is refused.
    Refused(Refusal),
}

/// The keys of an issuer, and when to fetch them.
#[derive(Debug)]
pub struct Keys {
    set: KeySet,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// A fetch is running since then.
    Fetching { since: Time, failures: u32 },
    /// The keys are those of that time.
    Fetched { began: Time, wanted: bool },
    /// The last fetches failed. The next is due then.
    Failed { failures: u32, next: Time },
}

impl Keys {
    /// No keys yet: a fetch is due at once.
    pub fn missing_at(now: Time) -> Keys {
        Keys { set: KeySet::default(), state: State::Failed { failures: 0, next: now } }
    }

    /// Starts with keys that were read just now.
    pub fn fetched_at(now: Time, set: KeySet) -> Keys {
        Keys { set, state: State::Fetched { began: now, wanted: false } }
    }

    /// The present keys.
    pub fn set(&self) -> &KeySet {
        &self.set
    }

    /// A token names a key that is missing.
    pub fn miss(&mut self, now: Time) -> Missing {
        match &mut self.state {
            State::Fetching { .. } => Missing::Wait,
            State::Failed { next, .. } if *next <= now => Missing::Wait,
            State::Failed { .. } => Missing::Refused(Refusal::IdentityUnavailable),
            State::Fetched { began, wanted } if now >= began.plus_micros(UNKNOWN_KEY_US) => {
                *wanted = true;
                Missing::Wait
            }
            State::Fetched { .. } => Missing::Refused(Refusal::UnknownKey),
        }
    }

    /// When the next fetch is due; `None` while one is under way.
    pub fn wake_at(&self) -> Option<Time> {
        match self.state {
            State::Fetching { .. } => None,
            State::Failed { next, .. } => Some(next),
            State::Fetched { began, wanted } => {
                Some(began.plus_micros(if wanted { UNKNOWN_KEY_US } else { REFRESH_US }))
            }
        }
    }

    /// Whether to fetch now. If so, the caller must call [`Keys::fetched`] or [`Keys::failed`] later.
    pub fn begin(&mut self, now: Time) -> bool {
        let is_due = self.wake_at().is_some_and(|at| at <= now);
        if is_due {
            let failures = if let State::Failed { failures, .. } = self.state { failures } else { 0 };
            self.state = State::Fetching { since: now, failures };
        }
        is_due
    }

    /// A fetch has succeeded: these keys replace all older ones.
    pub fn fetched(&mut self, now: Time, set: KeySet) {
        self.set = set;
        self.state = State::Fetched { began: self.began().unwrap_or(now), wanted: false };
    }

    /// A fetch has failed. Returns whether it is the first failure in a row.
    pub fn failed(&mut self, now: Time) -> bool {
        let before = match self.state {
            State::Fetching { failures, .. } | State::Failed { failures, .. } => failures,
            State::Fetched { .. } => 0,
        };
        let pause_us = FIRST_PAUSE_US.saturating_mul(1 << before.min(16)).min(LONGEST_PAUSE_US);
        self.state = State::Failed { failures: before + 1, next: now.plus_micros(pause_us) };
        before == 0
    }

    /// When the running fetch began.
    fn began(&self) -> Option<Time> {
        match self.state {
            State::Fetching { since, .. } => Some(since),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn at(seconds: u64) -> Time {
        Time::from_micros(seconds * SECOND)
    }

    fn some() -> KeySet {
        let key = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
        KeySet::parse(key.as_bytes(), super::super::Algorithm::EdDsa).unwrap()
    }

    #[test]
    fn ten_thousand_made_up_key_names_cost_one_fetch_a_minute() {
        let mut keys = Keys::missing_at(at(0));
        let (mut fetches, mut waited, mut refused) = (Vec::new(), 0, 0);
        // One every 60 ms: ten minutes.
        for n in 0..10_000u64 {
            let now = Time::from_micros(n * 60_000);
            match keys.miss(now) {
                Missing::Wait => waited += 1,
                Missing::Refused(Refusal::UnknownKey) => refused += 1,
                Missing::Refused(other) => panic!("{other:?}"),
            }
            if keys.begin(now) {
                fetches.push(now.as_micros() / SECOND);
                // Requests during a fetch share it.
                assert_eq!(keys.miss(now.plus_micros(10_000)), Missing::Wait);
                assert!(!keys.begin(now.plus_micros(10_000)));
                keys.fetched(now.plus_micros(20_000), some());
                assert_eq!(keys.miss(now.plus_micros(30_000)), Missing::Refused(Refusal::UnknownKey));
            }
        }
        assert_eq!(fetches, [0, 60, 120, 180, 240, 300, 360, 420, 480, 540]);
        assert_eq!((waited, refused), (10, 9_990));
    }

    #[test]
    fn fetches_back_off_while_the_issuer_is_down() {
        for wanted_every_us in [u64::MAX, 1_000] {
            let mut keys = Keys::missing_at(at(0));
            let mut tries = Vec::new();
            let mut now = at(0);
            while now < at(300) {
                if wanted_every_us != u64::MAX {
                    let missing = keys.miss(now);
                    let is_due = keys.wake_at().is_some_and(|at| at <= now);
                    assert_eq!(missing == Missing::Wait, is_due);
                }
                if keys.begin(now) {
                    tries.push(now.as_micros() / SECOND);
                    assert_eq!(keys.failed(now), tries.len() == 1, "one failure is news, the next is none");
                }
                now = keys.wake_at().unwrap().min(now.plus_micros(wanted_every_us));
            }
            assert_eq!(tries, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243], "{wanted_every_us}");
        }
    }

    #[test]
    fn old_keys_stay_in_use_while_the_issuer_is_down() {
        let mut keys = Keys::fetched_at(at(0), some());
        assert_eq!(keys.wake_at(), Some(at(600)));
        assert!(!keys.begin(at(599)) && keys.begin(at(600)));
        assert_eq!(keys.set().len(), 1, "also meanwhile");
        assert!(keys.failed(at(605)));
        assert_eq!((keys.set().len(), keys.wake_at()), (1, Some(at(606))));
        assert_eq!(keys.miss(at(605)), Missing::Refused(Refusal::IdentityUnavailable), "who knows");
        assert!(keys.begin(at(606)));
        keys.fetched(at(607), some());
        assert_eq!(keys.wake_at(), Some(at(1_206)), "counted from when it was asked for");
        assert!(keys.begin(at(1_206)) && keys.failed(at(1_207)), "a failure after that is news again");
    }
}
