//! The references that deltas are compared with.

use sametick_room::snapshot::Snapshot;

/// Bits of a number in a range.
fn bits(least: i32, most: i32) -> u64 {
    u64::from(u64::BITS - u64::from(most.abs_diff(least)).leading_zeros())
}

/// Bits of an entity whose every code is packed into as many as its slot ever needs in the scene.
pub fn packed_bits(frames: &[Snapshot]) -> u64 {
    let width = frames[0].tables[0].width();
    let range = |slot: usize| {
        let mut range = (i32::MAX, i32::MIN);
        for table in frames.iter().map(|frame| &frame.tables[0]) {
            for row in 0..table.marks().len() {
                let code = table.slots(row)[slot];
                range = (range.0.min(code), range.1.max(code));
            }
        }
        range
    };
    (0..width).map(range).map(|(least, most)| bits(least, most)).sum()
}

/// Deltas of codes as bytes, compressed as one lossless stream.
pub struct Zstd {
    stream: zstd::stream::write::Encoder<'static, Vec<u8>>,
}

impl Zstd {
    pub fn new() -> Zstd {
        Zstd { stream: zstd::stream::write::Encoder::new(Vec::new(), 3).expect("zstd starts") }
    }

    /// How many bytes one more packet takes.
    pub fn packet(&mut self, base: &Snapshot, target: &Snapshot) -> usize {
        use std::io::Write as _;
        let before = self.stream.get_ref().len();
        let (base, target) = (&base.tables[0], &target.tables[0]);
        let mut bytes = Vec::new();
        // One slot of all entities after the other, low bytes first: what compresses best.
        for slot in 0..target.width() {
            let deltas: Vec<u16> = (0..target.marks().len())
                .map(|row| (target.slots(row)[slot] - base.slots(row)[slot]) as u16)
                .map(|delta| delta << 1 ^ ((delta as i16) >> 15) as u16)
                .collect();
            bytes.extend(deltas.iter().map(|delta| *delta as u8));
            bytes.extend(deltas.iter().map(|delta| (*delta >> 8) as u8));
        }
        self.stream.write_all(&bytes).expect("a vector takes everything");
        self.stream.flush().expect("a vector takes everything");
        self.stream.get_ref().len() - before
    }
}
