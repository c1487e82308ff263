//! The pure half of a reader: turns payloads of frames into records, for replay and other tools.

use std::mem;

use sametick_sim::{Restored, Row, Tick};

use super::body::{Taken, code_input, take_event};
use super::group::Group;
use super::model::Models;
use super::timeline::{Misplaced, Timeline};
use super::{MAX_INPUT_BYTES, MAX_TICK_BROUGHT_BYTES, MAX_TICK_BYTES};
use sametick_sim::record::{Record, TickInputs};
use sametick_wire::range::{Coder, RangeDecoder};

/// Decodes payloads into records, from any group on.
#[derive(Debug)]
pub(super) struct LogDecoder {
    commit: String,
    /// Known from the first group on.
    timeline: Option<Timeline>,
    models: Models,
    range: RangeDecoder,
    payload: Vec<u8>,
    in_frame: bool,
    record: Record,
    /// The buffer of the last inputs, while `record` is something else.
    spare: TickInputs,
    /// External items of the tick that is being read.
    brought: Vec<Restored<Vec<u8>>>,
}

/// What is wrong with bytes that are whole, but that no writer writes.
pub(super) type Nonsense = &'static str;

impl LogDecoder {
    pub(super) fn new(commit: &str) -> LogDecoder {
        LogDecoder {
            commit: commit.into(),
            timeline: None,
            models: Models::new(),
            range: RangeDecoder::default(),
            payload: Vec::new(),
            in_frame: false,
            record: Record::End,
            spare: TickInputs::new(),
            brought: Vec::new(),
        }
    }

    /// The position in the session, once a group has begun.
    pub(super) fn into_timeline(self) -> Option<Timeline> {
        self.timeline
    }

    /// The last record.
    pub(super) fn record(&self) -> &Record {
        &self.record
    }

    /// The last record, if it is a tick.
    pub(super) fn inputs(&self) -> Option<&TickInputs> {
        if let Record::Inputs(inputs) = &self.record { Some(inputs) } else { None }
    }

    /// Begins a group with its first frame. Returns the rewind it stands for, if any.
    pub(super) fn begin_group(&mut self, payload: &[u8]) -> Result<Option<&Record>, Nonsense> {
        let group = Group::read(payload).ok_or("not the start of a group")?;
        self.models.reset();
        let rewind = group.first.0.checked_sub(1).filter(|_| group.rewound);
        let rewind = rewind.map(|to| Record::Rewind { to: Tick(to) });
        self.timeline = Some(match self.timeline.take() {
            Some(timeline) => follow(timeline, group, rewind.as_ref())?,
            None => Timeline::new(group.first, group.places),
        });
        Ok(match rewind {
            Some(rewind) => {
                self.set_record(rewind);
                Some(&self.record)
            }
            None => None,
        })
    }

    /// Begins a frame of data.
    pub(super) fn begin_data(&mut self, payload: &[u8]) -> Result<(), Nonsense> {
        if self.timeline.is_none() {
            return Err("data before the first group");
        }
        self.payload.clear();
        self.payload.extend_from_slice(payload);
        self.range.begin(&self.payload);
        self.in_frame = true;
        Ok(())
    }

    /// Returns the next record of the frame; `None` at its end.
    pub(super) fn next(&mut self) -> Result<Option<&Record>, Nonsense> {
        let Some(timeline) = self.timeline.as_mut().filter(|_| self.in_frame) else { return Ok(None) };
        let mut coder = self.range.over(&self.payload);
        let mut brought_bytes = 0;
        loop {
            if !coder.bit(self.models.event(), false) {
                if !matches!(self.record, Record::Inputs(_)) {
                    self.record = Record::Inputs(mem::take(&mut self.spare));
                }
                let Record::Inputs(inputs) = &mut self.record else { unreachable!("it was just set") };
                take_inputs(&mut coder, &mut self.models, timeline, inputs)?;
                self.brought.drain(..).for_each(|brought| inputs.bring(brought.owner, &brought.bytes));
                break;
            }
            match take_event(&mut coder, &mut self.models, &self.commit, timeline.next) {
                Taken::Restored(brought) => {
                    brought_bytes += brought.bytes.len();
                    if brought_bytes > MAX_TICK_BROUGHT_BYTES || self.brought.len() > MAX_TICK_BROUGHT_BYTES {
                        return Err("more brought into a tick than a log takes");
                    }
                    self.brought.push(brought);
                }
                _ if !self.brought.is_empty() => return Err("something brought into no tick"),
                Taken::Event(event) => {
                    timeline.check(&event).map_err(|_| "an event that cannot come here")?;
                    timeline.apply(&event);
                    self.set_record(event);
                    break;
                }
                Taken::EndOfFrame => {
                    self.in_frame = false;
                    let left = self.range.has_rest(&self.payload);
                    return if left { Err("bytes after the end of a frame") } else { Ok(None) };
                }
                Taken::Nonsense(what) => return Err(what),
            }
        }
        if self.range.is_overrun(&self.payload) {
            Err("a frame that does not end")
        } else {
            Ok(Some(&self.record))
        }
    }

    fn set_record(&mut self, record: Record) {
        if let Record::Inputs(inputs) = mem::replace(&mut self.record, record) {
            self.spare = inputs;
        }
    }
}

/// Checks that a group states the position to which the groups before it led.
fn follow(mut timeline: Timeline, group: Group, rewind: Option<&Record>) -> Result<Timeline, Nonsense> {
    timeline.reset_models();
    if let Some(rewind) = rewind {
        match timeline.check(rewind) {
            Ok(()) => timeline.apply(rewind),
            // Only the writer knows who sat where so long ago.
            Err(Misplaced::TooFarBack(_)) => return Ok(Timeline::new(group.first, group.places)),
            Err(_) => return Err("a rewind that cannot come here"),
        }
    }
    if group.fits(&timeline) { Ok(timeline) } else { Err("a group that does not go on where the last ended") }
}

fn take_inputs(
    coder: &mut impl Coder,
    models: &mut Models,
    timeline: &mut Timeline,
    inputs: &mut TickInputs,
) -> Result<(), Nonsense> {
    if timeline.next.0 == u32::MAX {
        return Err("more ticks than there are");
    }
    inputs.clear(timeline.next);
    let mut held = 0;
    for place in &mut timeline.places {
        let present = code_input(coder, models, place, None);
        held += place.last.len();
        if place.last.len() > MAX_INPUT_BYTES || held > MAX_TICK_BYTES {
            return Err("inputs longer than a log takes");
        }
        let input = present.then_some(&place.last[..]);
        inputs.push(Row { seat: place.seat, joined: place.joined, left: place.leaving, input });
    }
    models.note_tick();
    timeline.close_tick();
    Ok(())
}
