//! Fair shares of processor time for rooms: all of them step on one thread, with the relay and the pages.
//!
//! While there is enough time, no room is limited. When rooms together want more than [`CAPACITY_PERCENT`] of the time,
//! it is divided evenly among payers, and what one payer does not use is divided among the others (max-min fairness).
//! An address pays for all rooms that it has begun; its share is divided among them in the same way. A room that wants
//! no more than its share never waits. One that wants more is stepped as often as its share allows: its clock is
//! slower.
//!
//! There is no clock here: times and the costs of steps are passed in.

use std::collections::BTreeMap;
use std::net::IpAddr;

use sametick_sim::Time;

use super::RoomId;

/// The part of the thread's time that rooms may use together. The rest is for the relay, links and pages.
pub const CAPACITY_PERCENT: u64 = 70;

/// How often shares are recomputed; also as soon as rooms have used up what they have for this time.
const SETTLE_EVERY_US: u64 = 100_000;

/// What rooms may use in that time.
const CAPACITY_US: u64 = SETTLE_EVERY_US * CAPACITY_PERCENT / 100;

/// The most that all slowed rooms together use at a stretch before others have their turn: less than a tick of a game.
const SLICE_US: i64 = 5_000;

/// An address with a room below this speed may begin no other.
const LEAST_SPEED_PERCENT: u64 = 25;

/// The least share of a room: no room stops, even where hundreds share.
const LEAST_RATE: f64 = 0.001;

/// The payer of a room's processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Payer {
    /// The IP address that began the room; for IPv6, its network.
    Address(IpAddr),
    /// The room itself: the driver decided that it exists.
    Itself(RoomId),
}

#[derive(Clone, Copy, Debug)]
struct Account {
    payer: Payer,
    tick_us: u64,
    /// Time used since shares were last computed.
    spent_us: u64,
    ticks: u64,
    /// The recent average cost of a tick.
    cost_us: f64,
    /// The limit, if the room is slowed.
    limit: Option<Limit>,
}

impl Account {
    /// Updates the cost of a tick. It is averaged, so that one slow tick does not slow the room.
    fn measure(&mut self) {
        if self.ticks > 0 {
            let lately_us = self.spent_us as f64 / self.ticks as f64;
            let is_first = self.cost_us == 0.0;
            self.cost_us = if is_first { lately_us } else { (self.cost_us + lately_us) / 2.0 };
            (self.spent_us, self.ticks) = (0, 0);
        }
    }
}

/// The token bucket of a slowed room.
#[derive(Clone, Copy, Debug)]
struct Limit {
    /// Processor time per elapsed time.
    rate: f64,
    credit_us: f64,
    since: Time,
    speed_percent: u64,
}

impl Limit {
    fn earn(&mut self, now: Time) {
        // The bucket holds no more than a room earns between two computations: a quiet room has no claim to a burst.
        let most = self.rate * SETTLE_EVERY_US as f64;
        self.credit_us = (self.credit_us + self.rate * now.micros_since(self.since) as f64).min(most);
        self.since = now;
    }
}

/// The accounts of all rooms.
#[derive(Debug, Default)]
pub struct Budget {
    accounts: BTreeMap<RoomId, Account>,
    settled_at: Time,
    spent_us: u64,
    /// The token bucket of all slowed rooms together.
    slice_us: f64,
    slice_rate: f64,
    slice_since: Time,
}

impl Budget {
    /// Adds a room with this tick length.
    pub fn open(&mut self, now: Time, id: RoomId, payer: Payer, tick_us: u64) {
        // A payer with a slowed room gains nothing from another room: the new one starts with the payer's lowest limit.
        let lowest = self.accounts.values().filter(|account| account.payer == payer);
        let limit =
            lowest.filter_map(|account| account.limit).min_by(|one, other| one.rate.total_cmp(&other.rate));
        let limit = limit.map(|limit| Limit { credit_us: 0.0, since: now, ..limit });
        let account = Account { payer, tick_us: tick_us.max(1), spent_us: 0, ticks: 0, cost_us: 0.0, limit };
        self.accounts.insert(id, account);
    }

    /// Removes a room.
    pub fn close(&mut self, id: RoomId) {
        self.accounts.remove(&id);
    }

    /// Whether a payer may begin no other room, because its rooms are too slow already.
    pub fn refuses(&self, payer: Payer) -> bool {
        let own = self.accounts.values().filter(|account| account.payer == payer);
        let slowest = own.filter_map(|account| account.limit).map(|limit| limit.speed_percent).min();
        slowest.is_some_and(|percent| percent < LEAST_SPEED_PERCENT)
    }

    /// Until when a room that is due has to wait; `None` if it may step now.
    pub fn wait_until(&mut self, now: Time, id: RoomId) -> Option<Time> {
        let limit = self.accounts.get_mut(&id)?.limit.as_mut()?;
        limit.earn(now);
        let own_us = if limit.credit_us < 0.0 { -limit.credit_us / limit.rate } else { 0.0 };
        let earned = self.slice_rate * now.micros_since(self.slice_since) as f64;
        self.slice_us = (self.slice_us + earned).min(SLICE_US as f64);
        self.slice_since = now;
        let all_us =
            if self.slice_us <= 0.0 { (1.0 - self.slice_us) / self.slice_rate.max(LEAST_RATE) } else { 0.0 };
        let wait_us = own_us.max(all_us);
        (wait_us > 0.0).then(|| now.plus_micros(wait_us as u64 + 1))
    }

    /// Charges a room for a step of this cost and number of ticks. Returns whether shares were recomputed.
    pub fn spend(&mut self, now: Time, id: RoomId, cost_us: u64, ticks: u64) -> bool {
        let Some(account) = self.accounts.get_mut(&id) else { return false };
        account.spent_us += cost_us;
        account.ticks += ticks;
        if let Some(limit) = &mut account.limit {
            limit.credit_us -= cost_us as f64;
            self.slice_us -= cost_us as f64;
        }
        self.spent_us += cost_us;
        let is_due = now.micros_since(self.settled_at) >= SETTLE_EVERY_US || self.spent_us >= CAPACITY_US;
        if is_due {
            self.settle(now);
        }
        is_due
    }

    /// The speed of a room in percent.
    pub fn speed_percent(&self, id: RoomId) -> u64 {
        let limit = self.accounts.get(&id).and_then(|account| account.limit);
        limit.map_or(100, |limit| limit.speed_percent)
    }

    /// The number of slowed rooms.
    pub fn slowed(&self) -> usize {
        self.accounts.values().filter(|account| account.limit.is_some()).count()
    }

    /// Recomputes shares.
    fn settle(&mut self, now: Time) {
        (self.settled_at, self.spent_us) = (now, 0);
        let mut costs: BTreeMap<Payer, (f64, f64)> = BTreeMap::new();
        for account in self.accounts.values_mut() {
            account.measure();
            if account.cost_us > 0.0 {
                let (sum_us, rooms) = costs.entry(account.payer).or_default();
                (*sum_us, *rooms) = (*sum_us + account.cost_us, *rooms + 1.0);
            }
        }
        let mut payers: BTreeMap<Payer, Vec<(RoomId, f64)>> = BTreeMap::new();
        for (id, Account { payer, tick_us, cost_us, .. }) in &self.accounts {
            // A room that has not been stepped yet is assumed to cost as much as its payer's others.
            let like = costs.get(payer).map_or(0.0, |(sum_us, rooms)| sum_us / rooms);
            let cost_us = if *cost_us > 0.0 { *cost_us } else { like };
            let wanted_us = cost_us * SETTLE_EVERY_US as f64 / *tick_us as f64;
            payers.entry(*payer).or_default().push((*id, wanted_us));
        }
        let total = |rooms: &Vec<(RoomId, f64)>| rooms.iter().map(|(_, wanted)| wanted).sum::<f64>();
        let level = level(payers.values().map(total).collect(), CAPACITY_US as f64);
        self.slice_rate = 0.0;
        for rooms in payers.values() {
            let own_level = self::level(rooms.iter().map(|(_, wanted)| *wanted).collect(), level);
            for (id, wanted_us) in rooms {
                let rate =
                    (*wanted_us > own_level).then(|| (own_level / SETTLE_EVERY_US as f64).max(LEAST_RATE));
                let Some(account) = self.accounts.get_mut(id) else { continue };
                account.limit = rate.map(|rate| {
                    self.slice_rate += rate;
                    let before = account.limit.map(|mut limit| {
                        limit.earn(now);
                        limit.credit_us
                    });
                    let speed_percent = (own_level * 100.0 / wanted_us).clamp(1.0, 99.0) as u64;
                    Limit { rate, credit_us: before.unwrap_or(0.0), since: now, speed_percent }
                });
            }
        }
    }
}

/// The max-min fair level: claims are met up to it and together use `all`; infinite if `all` is enough for them.
fn level(mut wanted: Vec<f64>, all: f64) -> f64 {
    wanted.sort_by(f64::total_cmp);
    let (mut left, mut sharing) = (all, wanted.len());
    for wants in wanted {
        let share = left / sharing as f64;
        if wants > share {
            return share;
        }
        left -= wants;
        sharing -= 1;
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_US: u64 = 20_000;

    fn address(last: u8) -> Payer {
        Payer::Address(IpAddr::from([192, 0, 2, last]))
    }

    /// Steps rooms of these payers and costs on one thread. Returns the ticks of each, the longest time that the thread
    /// was held without a pause, and the share of its time that rooms used.
    fn run(rooms: &[(Payer, u64)], seconds: u64) -> (Vec<u64>, u64, u64) {
        let mut budget = Budget::default();
        let mut at: Vec<Time> = vec![Time::ZERO; rooms.len()];
        let mut ticks = vec![0; rooms.len()];
        (0..).zip(rooms).for_each(|(id, (payer, _))| budget.open(Time::ZERO, RoomId(id), *payer, TICK_US));
        let (mut now, mut longest_us, mut used_us) = (Time::ZERO, 0, 0);
        while now < Time::from_micros(seconds * 1_000_000) {
            let mut held_us = 0;
            for (place, (_, cost_us)) in
                rooms.iter().enumerate().filter(|(place, _)| at[*place] <= now).collect::<Vec<_>>()
            {
                let id = RoomId(place as u64);
                match budget.wait_until(now, id) {
                    Some(later) => at[place] = later,
                    None => {
                        held_us += cost_us;
                        ticks[place] += 1;
                        budget.spend(now, id, *cost_us, 1);
                        // A room that is later than this skips the lost time.
                        at[place] = at[place].plus_micros(TICK_US).max(now);
                    }
                }
            }
            (longest_us, used_us) = (
                longest_us.max(if now > Time::from_micros(1_000_000) { held_us } else { 0 }),
                used_us + held_us,
            );
            let next = at.iter().copied().min().unwrap_or(now);
            now = now.plus_micros(held_us).max(next).max(now.plus_micros(1));
        }
        (ticks, longest_us, used_us * 100 / (seconds * 1_000_000))
    }

    #[test]
    fn no_room_waits_while_there_is_enough_time() {
        // Ten rooms that use 6% each.
        let (ticks, _, used) = run(&[(address(1), 1_200); 10], 10);
        assert!(ticks.iter().all(|ticks| *ticks >= 499), "{ticks:?}");
        assert!((55..=65).contains(&used), "{used}");
    }

    #[test]
    fn hundreds_of_rooms_slow_only_their_own_address() {
        // With ten times the cost, too: a tick that takes half of its time.
        for cost_us in [1_000, 10_000] {
            let mut rooms = vec![(address(1), cost_us); 256];
            rooms.push((address(2), 1_000));
            rooms.push((Payer::Itself(RoomId(257)), 1_000));
            let (ticks, longest_us, used) = run(&rooms, 20);
            let (crowd, others) = ticks.split_at(256);
            assert!(others.iter().all(|ticks| *ticks >= 985), "of 1000: {others:?}");
            assert!(used <= 80, "{used} % of the thread");
            assert!(longest_us <= 2 * cost_us + SLICE_US as u64 + 2_000, "{longest_us} us at once");
            let (least, most) = (crowd.iter().min().unwrap(), crowd.iter().max().unwrap());
            assert!(*least > 0 && most <= &(3 * least + 10), "shared evenly: {least} to {most}");
            println!(
                "{cost_us} us a tick: others {others:?}, crowd {least} to {most}, {longest_us} us at once, {used} %"
            );
        }
    }

    #[test]
    fn small_rooms_of_an_address_do_not_wait_for_large_ones() {
        let (ticks, ..) = run(&[(address(1), 500), (address(1), 15_000), (address(1), 15_000)], 10);
        assert!(ticks[0] >= 490, "{ticks:?}");
        assert!((150..400).contains(&ticks[1]) && (150..400).contains(&ticks[2]), "{ticks:?}");
    }

    #[test]
    fn a_slowed_payer_begins_no_room_and_recovers_later() {
        let mut budget = Budget::default();
        for id in 0..10 {
            budget.open(Time::ZERO, RoomId(id), address(1), TICK_US);
        }
        for turn in 0..20 {
            budget.spend(Time::ZERO, RoomId(turn % 10), 10_000, 1);
        }
        assert_eq!(budget.slowed(), 10);
        assert!(budget.refuses(address(1)) && !budget.refuses(address(2)));
        assert!(budget.speed_percent(RoomId(0)) < 25);
        budget.open(Time::ZERO, RoomId(10), address(1), TICK_US);
        assert_eq!(budget.slowed(), 11, "another one is slowed from the start");
        (1..11).for_each(|id| budget.close(RoomId(id)));
        let later = Time::from_micros(SETTLE_EVERY_US);
        assert!(budget.spend(later, RoomId(0), 10_000, 1));
        assert_eq!((budget.slowed(), budget.speed_percent(RoomId(0))), (0, 100));
        assert!(!budget.refuses(address(1)));
    }
}
