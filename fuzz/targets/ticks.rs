//! Any bits as inputs, ticks or a table of lockstep are refused or understood, and understood the same when written
//! again.
//!
//! The input: what to read, how far the ticks have come, then the bits; an excerpt begins with the length of its table.
#![cfg_attr(fuzzing, no_main)]

use sametick_lockstep::history::Excerpt;
use sametick_lockstep::message::{MAX_RUN, Run, put_inputs, put_ticks, read_inputs, read_ticks};
use sametick_lockstep::rows::{Opaque, Table};
use sametick_sim::{Inputs, Tick};

sametick_fuzz::target!(|bytes: &[u8]| {
    let Some((&[kind, a, b, c, d], bits)) = bytes.split_first_chunk() else { return };
    // Never so far that a run ends beyond the last number: a session would have to run for two years.
    let near = Tick(u32::from_le_bytes([a, b, c, d]).min(u32::MAX - 10_000));
    match kind % 4 {
        0 => inputs(bits, near),
        1 => run(bits, near),
        2 => table(bits),
        _ => excerpt(bits, near),
    }
});

fn inputs(bits: &[u8], near: Tick) {
    let mut read = vec![];
    if read_inputs(bits, near, |tick, input| read.push((tick, input))).is_err() {
        return;
    }
    assert!((1..=MAX_RUN as usize).contains(&read.len()));
    let (mut again, mut back) = (vec![], vec![]);
    put_inputs(&mut again, read[0].0, read.iter().map(|(_, input)| input));
    assert!(again.len() <= bits.len());
    read_inputs(&again, near, |tick, input| back.push((tick, input))).expect("it was written a moment ago");
    assert_eq!(read, back);
}

fn run(bits: &[u8], have: Tick) {
    let (mut table, mut rows, mut read) = (Table::default(), Inputs::new(), vec![]);
    let see = |_: Tick, rows: &Inputs<Opaque>| read.push(rows.clone());
    if read_ticks(bits, (have, have), &mut table, &mut rows, see) != Ok(Run::Next) {
        return;
    }
    let mut again = vec![];
    put_ticks(&mut again, have.next(), &mut Table::default(), read.iter());
    assert!(again.len() <= bits.len());
    let (mut there, mut back) = (Table::default(), vec![]);
    let see = |_: Tick, rows: &Inputs<Opaque>| back.push(rows.clone());
    assert_eq!(read_ticks(&again, (have, have), &mut there, &mut rows, see), Ok(Run::Next));
    assert_eq!((read, table), (back, there));
}

fn table(bits: &[u8]) {
    let Ok(table) = Table::from_bytes(bits) else { return };
    assert_eq!(table.to_bytes(), bits);
}

fn excerpt(bits: &[u8], first: Tick) {
    let Some((&[len, count], rest)) = bits.split_first_chunk() else { return };
    let (start, ticks) = rest.split_at(rest.len().min(len.into()));
    let Ok(start) = Table::from_bytes(start) else { return };
    let excerpt = Excerpt { first, ticks: u32::from(count) * 300, start, bytes: ticks.into() };
    let mut next = first;
    let read = excerpt.read(|tick, _| {
        assert_eq!(tick, next);
        next = next.next();
    });
    assert!(read.is_err() || next == first + excerpt.ticks);
    assert!(next.ticks_since(first) as usize <= ticks.len() * 8);
}
