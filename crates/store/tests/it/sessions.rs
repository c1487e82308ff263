//! Generated sessions to log: random ones with every kind of record, and the workload for measuring the size of a log.

use sametick_sim::{Owner, Rng, Row, Seat, StateHash, Tick};
use sametick_store::log::{EncoderOptions, Header, Leaving, LogEncoder, LogReader, Record, TickInputs};

/// The header of every test.
pub fn header() -> Header {
    Header { commit: "0123abc".into(), setup: vec![1, 2, 3], seed: 7, ..Header::new("pong", "den") }
}

/// All bytes of a log of these records.
pub fn log_of(records: &[Record], options: EncoderOptions) -> Vec<u8> {
    let mut encoder = LogEncoder::new(&header()).unwrap().with_options(options);
    for record in records {
        encoder.push(record).unwrap_or_else(|error| panic!("{record:?}: {error}"));
    }
    encoder.flush();
    drain(&mut encoder)
}

/// All ready frames.
pub fn drain(encoder: &mut LogEncoder) -> Vec<u8> {
    let (mut all, mut frame) = (vec![], vec![]);
    while encoder.poll_frame(&mut frame).is_some() {
        all.extend_from_slice(&frame);
    }
    all
}

/// A log and its records.
pub struct Sample {
    pub records: Vec<Record>,
    pub bytes: Vec<u8>,
    /// Where frames end.
    pub ends: Vec<usize>,
}

impl Sample {
    /// A log of these records, by an encoder of a new log or one that goes on after these bytes.
    pub fn of(mut encoder: LogEncoder, before: Option<Sample>, records: &[Record]) -> Sample {
        let nothing = || Sample { records: vec![], bytes: vec![], ends: vec![] };
        let mut sample = before.unwrap_or_else(nothing);
        for record in records {
            encoder.push(record).unwrap_or_else(|error| panic!("{record:?}: {error}"));
        }
        encoder.flush();
        let mut frame = vec![];
        while encoder.poll_frame(&mut frame).is_some() {
            sample.bytes.extend_from_slice(&frame);
            sample.ends.push(sample.bytes.len());
        }
        sample.records.extend_from_slice(records);
        sample
    }

    /// A session with every kind of event: rewinds, snapshots, a pause, and with an even seed an end. Its log was
    /// closed in the middle and resumed.
    pub fn eventful(seed: u64, options: EncoderOptions) -> Sample {
        let is_eventful = |records: &[Record]| {
            let has = |kind: &str| records.iter().any(|record| record.kind() == kind);
            let ended = records.last() == Some(&Record::End);
            ["rewind", "snapshot", "resumed", "check"].into_iter().all(has) && ended == seed.is_multiple_of(2)
        };
        let mut sessions = (1_000 * seed..).map(|seed| Wild::records(seed, 90));
        let records = sessions.find(|records| is_eventful(records)).unwrap();
        let (first, second) = records.split_at(records.len() / 2);
        let before = Sample::of(LogEncoder::new(&header()).unwrap().with_options(options), None, first);
        let position = LogReader::open(&before.bytes[..]).unwrap().verify().unwrap().position;
        Sample::of(LogEncoder::resume(&header(), position).with_options(options), Some(before), second)
    }

    /// How many of its bytes are whole frames, if it is cut here; `None` if even the header is cut.
    pub fn valid_before(&self, cut: usize) -> Option<usize> {
        self.ends.iter().rev().find(|&&end| end <= cut).copied()
    }

    /// Where the last frames begin that have at least these bytes in total.
    pub fn tail(&self, bytes: usize) -> usize {
        self.valid_before(self.bytes.len().saturating_sub(bytes)).unwrap_or(0)
    }
}

/// Seats on both sides of the change of encoding, and the last of the largest room.
const SEATS: [Seat; 6] = [Seat(0), Seat(51), Seat(254), Seat(255), Seat(256), Seat(999)];

/// A session in which any record may come next, and often does.
pub struct Wild {
    rng: Rng,
    records: Vec<Record>,
    next: Tick,
    /// The taken seats after each closed tick.
    seated: Vec<Vec<Seat>>,
    inputs: Vec<Vec<u8>>,
}

impl Wild {
    pub fn records(seed: u64, steps: u32) -> Vec<Record> {
        let inputs = vec![vec![]; 1_000];
        let mut wild =
            Wild { rng: Rng::new(seed), records: vec![], next: Tick(1), seated: vec![vec![]], inputs };
        for _ in 0..steps {
            if wild.rng.chance(1, 12) {
                wild.event();
            }
            wild.tick();
        }
        if wild.rng.chance(1, 2) {
            wild.records.push(Record::End);
        }
        wild.records
    }

    fn tick(&mut self) {
        let tick = self.next;
        let mut rows: Vec<(Seat, bool, bool)> =
            self.seated[self.seated.len() - 1].iter().map(|&seat| (seat, false, false)).collect();
        if self.rng.chance(1, 10) {
            let seat = SEATS[self.rng.below(6) as usize];
            if !rows.iter().any(|row| row.0 == seat) {
                rows.push((seat, true, false));
                let commit = if self.rng.chance(1, 2) { "0123abc" } else { "other" };
                let name = "x".repeat(self.rng.below(5) as usize);
                self.records.push(Record::Joined { tick, seat, name, commit: commit.into() });
            }
        }
        for row in &mut rows {
            if self.rng.chance(1, 40) {
                row.2 = true;
                let why = [Leaving::Left, Leaving::Kicked, Leaving::TimedOut][self.rng.below(3) as usize];
                self.records.push(Record::Left { tick, seat: row.0, why });
            }
        }
        rows.sort();
        let mut inputs = TickInputs::new();
        inputs.clear(tick);
        for &(seat, joined, left) in &rows {
            let input = self.input(seat);
            inputs.push(Row { seat, joined, left, input: input.as_deref() });
        }
        for _ in 0..self.rng.below(3).saturating_sub(1) {
            let seat = SEATS[self.rng.below(6) as usize];
            let whose = [Owner::Place, Owner::Player(seat), Owner::Character(seat)];
            let bytes: Vec<u8> = (0..self.rng.below(40)).map(|_| self.rng.next_u64() as u8).collect();
            inputs.bring(whose[self.rng.below(3) as usize], &bytes);
        }
        self.records.push(Record::Inputs(inputs));
        self.seated.push(rows.iter().filter(|row| !row.2).map(|row| row.0).collect());
        self.next = tick.next();
    }

    fn input(&mut self, seat: Seat) -> Option<Vec<u8>> {
        let last = &mut self.inputs[seat.index()];
        match self.rng.below(12) {
            0 => return None,
            1 => *last = (0..self.rng.below(65)).map(|_| self.rng.next_u64() as u8).collect(),
            2..4 if !last.is_empty() => {
                let at = self.rng.below(last.len() as u64) as usize;
                last[at] ^= 1 << self.rng.below(8);
            }
            _ => {}
        }
        Some(last.clone())
    }

    fn event(&mut self) {
        let closed = self.next.0 - 1;
        let tick = Tick(closed - self.rng.below(u64::from(closed.min(100)) + 1) as u32);
        let (seat, hash) = (Seat(self.rng.below(1_000) as u16), StateHash(self.rng.next_u64()));
        let record = match self.rng.below(9) {
            0..3 => Record::Check { tick, hash },
            3 => Record::Dissent { tick, seat, hash },
            4 => Record::Snapshot { tick, hash, place: "objects/…/save".into() },
            5 => Record::Desync { tick, seat },
            6 => Record::Dispute { tick },
            7 => Record::Resumed { unix_ms: self.rng.next_u64() },
            _ => {
                self.seated.truncate(tick.0 as usize + 1);
                self.next = tick.next();
                Record::Rewind { to: tick }
            }
        };
        self.records.push(record);
    }
}

/// The players' inputs in a measured session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Play {
    /// One byte of buttons, one of which toggles five times a second on average.
    Buttons,
    /// No input changes.
    Idle,
    /// Two sticks of 16 bits, each moving most of the time, by small steps.
    Sticks,
}

/// Feeds `ticks` ticks of a session to `each`, with the check of every 30th a little later.
pub fn play(play: Play, players: u16, ticks: u32, mut each: impl FnMut(&Record)) {
    let mut rng = Rng::new(42);
    let mut states = vec![[0u8; 4]; usize::from(players)];
    let mut record = Record::Inputs(TickInputs::new());
    let mut due = Tick::ZERO;
    for tick in (1..=ticks).map(Tick) {
        let joined = tick == Tick(1);
        for seat in (0..players).map(Seat).filter(|_| joined) {
            each(&Record::Joined { tick, seat, name: "player".into(), commit: "0123abc".into() });
        }
        states.iter_mut().for_each(|state| move_on(play, &mut rng, state));
        let len = if play == Play::Sticks { 4 } else { 1 };
        let Record::Inputs(inputs) = &mut record else { unreachable!() };
        let row = |(seat, state): (usize, &'_ [u8; 4])| (Seat(seat as u16), *state);
        inputs.clear(tick);
        for (seat, state) in states.iter().enumerate().map(row) {
            inputs.push(Row { seat, joined, left: false, input: Some(&state[..len]) });
        }
        each(&record);
        // The hashes of all players arrive three to eight ticks later.
        if tick.0 % 30 == 0 {
            due = tick + 3 + rng.below(6) as u32;
        }
        if tick == due {
            each(&Record::Check { tick: tick - tick.0 % 30, hash: StateHash(rng.next_u64()) });
        }
    }
}

fn move_on(play: Play, rng: &mut Rng, state: &mut [u8; 4]) {
    match play {
        Play::Idle => {}
        Play::Buttons if rng.chance(5, 60) => state[0] ^= 1 << rng.below(8),
        Play::Buttons => {}
        Play::Sticks => {
            for stick in state.chunks_exact_mut(2) {
                if rng.chance(3, 4) {
                    let step = rng.below(513) as i16 - 256;
                    let at = i16::from_le_bytes([stick[0], stick[1]]).saturating_add(step);
                    stick.copy_from_slice(&at.to_le_bytes());
                }
            }
        }
    }
}

/// The log of a measured session.
pub fn played(how: Play, players: u16, ticks: u32) -> Vec<u8> {
    let mut encoder = LogEncoder::new(&header()).unwrap();
    let mut all = vec![];
    play(how, players, ticks, |record| {
        encoder.push(record).unwrap();
        all.extend(drain(&mut encoder));
    });
    encoder.flush();
    all.extend(drain(&mut encoder));
    all
}
