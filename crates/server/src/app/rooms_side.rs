//! Carries out the outputs of the rooms.

use sametick_lockstep::relay::SessionKey;
use sametick_sim::record::Record;
use sametick_transport::clock::unix_ms;
use sametick_transport::hub::Ended;
use sametick_wire::{Member, Time};

use super::OutputSink;
use crate::players::Players;
use crate::recorder::Place;
use crate::rooms::archive::{Archive, resume_room, save_room};
use crate::rooms::{self, Mark, OpenRoom, Past, Rooms};
use crate::spectator::Told;

/// Carries out the outputs of the rooms. Returns their next wake time, and whether presence may have changed.
pub(super) fn drain_rooms(
    now: Time,
    rooms: &mut Rooms,
    sink: &mut OutputSink<'_>,
    (mut players, archive): (Option<&mut Players>, Option<&Archive>),
    buf: &mut Vec<u8>,
) -> (Option<Time>, bool) {
    let mut changed = false;
    loop {
        match (rooms.poll_output(buf), &mut players) {
            (rooms::Output::Ask(member, question), Some(players)) => players.ask(now, member, question),
            (rooms::Output::Save(write), Some(players)) => players.save(write),
            (rooms::Output::Flush(mark), Some(players)) => match (mark, archive) {
                (Mark::Room(id, _), Some(archive)) => archive.keep(sink.recorder, id, mark),
                _ => players.flush(mark),
            },
            (output, _) => match output {
                rooms::Output::Send(member, channel) => sink.send(member, channel, buf),
                rooms::Output::Close(member, why) => sink.close(member, why),
                rooms::Output::Find(key) => match archive {
                    Some(archive) => archive.look_for(key, rooms),
                    None => rooms.sought(now, &key, Past::None(unix_ms())),
                },
                rooms::Output::WakeAt(at) => return (Some(at), changed),
                rooms::Output::Wait => return (None, changed),
                // Only rooms with a database have these outputs.
                rooms::Output::Ask(..) | rooms::Output::Save(_) | rooms::Output::Flush(_) => {}
                other => changed |= note(rooms, sink, other),
            },
        }
    }
}

/// Writes a room's output to logs. Returns whether presence may have changed.
fn note(rooms: &Rooms, sink: &mut OutputSink<'_>, output: rooms::Output) -> bool {
    let mut changed = false;
    match output {
        rooms::Output::Begun(id) => {
            changed = true;
            if let Some(room) = rooms.room(id) {
                sink.recorder.begin(Place::Room(id), room.facts(), room.started_unix_ms());
            }
        }
        rooms::Output::Resumed(id, resumed) => {
            changed = true;
            resume_room(sink.recorder, id, *resumed);
        }
        rooms::Output::SaveRoom(id) => {
            if let Some(room) = rooms.room(id) {
                save_room(sink.recorder, id, room);
            }
        }
        rooms::Output::Record(id, record) => {
            changed |= !matches!(record, Record::Check { .. });
            sink.recorder.record(Place::Room(id), &record);
        }
        rooms::Output::Stepped(id, _) => {
            if let Some(room) = rooms.room(id) {
                sink.recorder.step(Place::Room(id), room.inputs());
            }
        }
        rooms::Output::Ended(id) => {
            changed = true;
            sink.recorder.end(Place::Room(id));
        }
        rooms::Output::Outcome(id, outcome) => {
            let key = rooms.room(id).map(key_of);
            sink.told.extend(key.map(|key| Told::Ended(key, outcome)));
        }
        rooms::Output::Crashed(id) => {
            let key = rooms.room(id).map(key_of);
            sink.told.extend(key.map(Told::Crashed));
        }
        _ => {}
    }
    changed
}

pub(super) fn say_goodbye(rooms: &Rooms, member: Member, why: &Ended) {
    let room = rooms.room_of(member);
    let who = room.and_then(|(_, room)| room.participants().find(|who| who.member == member));
    match who {
        Some(who) => {
            let (name, seat, omissions) = (who.name, who.seat.map(|seat| seat.0), who.omissions);
            tracing::info!(name, seat, omissions, %why, "a player has gone");
        }
        None => tracing::info!(%why, "a member that had not joined has left"),
    }
}

fn key_of(room: &OpenRoom) -> SessionKey {
    let facts = room.facts();
    SessionKey { build: facts.build, name: facts.name.clone() }
}
