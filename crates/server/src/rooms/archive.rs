//! Persistence of rooms besides players: stored rooms are found by their logs and saves, and data counts as stored only
//! once it is in the room's log too.

use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};

use sametick_lockstep::relay::SessionKey;
use sametick_sim::Time;
use sametick_sim::record::Record;
use sametick_store::saves::Mode;
use sametick_transport::hub_waker::HubWaker;

use super::reopening::{Past, table_of};
use super::{LEAST_SAVED, Mark, OpenRoom, Resumed, RoomId, Rooms};
use crate::finder::{Finder, Search};
use crate::players::Players;
use crate::recorder::{Place, Recorder};

/// Searches and marks of stored rooms.
pub(crate) struct Archive {
    search: Search<Past>,
    waker: HubWaker,
    sender: Sender<Mark>,
    written: Receiver<Mark>,
}

impl Archive {
    /// Uses this finder. Rings the waker when there is something to [deliver](Archive::deliver).
    pub fn new(finder: Rc<Finder>, waker: HubWaker) -> Archive {
        let (sender, written) = channel();
        Archive { search: Search::new(finder, Mode::Room, waker.clone()), waker, sender, written }
    }

    /// Searches for a stored room and replays it to its end.
    pub fn look_for(&self, key: SessionKey, rooms: &Rooms) {
        let games = rooms.games().clone();
        self.search.look_for(key, move |key, sought| Past::of(sought, &key.name, &games));
    }

    /// Marks data as stored once the log has everything that led to it, because a room resumes from its log.
    pub fn keep(&self, recorder: &mut Recorder, id: RoomId, mark: Mark) {
        let (sender, waker) = (self.sender.clone(), self.waker.clone());
        recorder.when_written(Place::Room(id), move || {
            // The server may have stopped in the meantime.
            let _ = sender.send(mark);
            waker.ring();
        });
    }

    /// Passes results to the rooms and the database.
    pub fn deliver(&self, now: Time, rooms: &mut Rooms, players: Option<&mut Players>) {
        while let Some((key, past)) = self.search.poll() {
            rooms.sought(now, &key, past);
        }
        if let Some(players) = players {
            self.written.try_iter().for_each(|mark| players.flush(mark));
        }
    }
}

/// Resumes the log of a room.
pub(crate) fn resume_room(recorder: &mut Recorder, id: RoomId, Resumed { recovered, seats }: Resumed) {
    let to = recovered.last();
    recorder.resume(Place::Room(id), recovered, seats);
    // As in lockstep, this record marks in a log that the session was resumed.
    recorder.record(Place::Room(id), &Record::Rewind { to });
}

/// Saves a room in its present state.
pub(crate) fn save_room(recorder: &mut Recorder, id: RoomId, room: &OpenRoom) {
    let (state, hash, seats) = room.save();
    recorder.save(Place::Room(id), (room.tick(), hash), state, table_of(&seats));
}

/// Saves all open rooms.
pub(crate) fn save_rooms(recorder: &mut Recorder, rooms: &Rooms) {
    for (id, room) in rooms.iter().filter(|(_, room)| room.tick() >= LEAST_SAVED) {
        save_room(recorder, id, room);
    }
}
