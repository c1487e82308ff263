//! What outlives the rooms of a server besides its players: rooms are found again by their logs and saves, and only what is in the
//! log of a room as well counts as kept.

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

/// Where rooms are kept.
pub(crate) struct Archive {
    search: Search<Past>,
    waker: HubWaker,
    sender: Sender<Mark>,
    written: Receiver<Mark>,
}

impl Archive {
    /// Rooms are looked for by this finder. The waker is rung when there is something to [deliver](Archive::deliver).
    pub fn new(finder: Rc<Finder>, waker: HubWaker) -> Archive {
        let (sender, written) = channel();
        Archive { search: Search::new(finder, Mode::Room, waker.clone()), waker, sender, written }
    }

    /// Looks for a room; what is left of it is played to its end.
    pub fn look_for(&self, key: SessionKey, rooms: &Rooms) {
        let games = rooms.games().clone();
        self.search.look_for(key, move |key, sought| Past::of(sought, &key.name, &games));
    }

    /// Something is to be kept for good. The room goes on from its log: first what has led to it is written there.
    pub fn keep(&self, recorder: &mut Recorder, id: RoomId, mark: Mark) {
        let (sender, waker) = (self.sender.clone(), self.waker.clone());
        recorder.when_written(Place::Room(id), move || {
            // The server may have stopped meanwhile.
            let _ = sender.send(mark);
            waker.ring();
        });
    }

    /// Tells rooms and database what is known since.
    pub fn deliver(&self, now: Time, rooms: &mut Rooms, players: Option<&mut Players>) {
        while let Some((key, past)) = self.search.poll() {
            rooms.sought(now, &key, past);
        }
        if let Some(players) = players {
            self.written.try_iter().for_each(|mark| players.flush(mark));
        }
    }
}

/// The log of a room goes on.
pub(crate) fn resume_room(recorder: &mut Recorder, id: RoomId, Resumed { recovered, seats }: Resumed) {
    let to = recovered.last();
    recorder.resume(Place::Room(id), recovered, seats);
    // As in lockstep, this is how a log says that a session was taken up again.
    recorder.record(Place::Room(id), &Record::Rewind { to });
}

/// Has a room saved as it is.
pub(crate) fn save_room(recorder: &mut Recorder, id: RoomId, room: &OpenRoom) {
    let (state, hash, seats) = room.save();
    recorder.save(Place::Room(id), (room.tick(), hash), state, table_of(&seats));
}

/// The same for all that are open.
pub(crate) fn save_rooms(recorder: &mut Recorder, rooms: &Rooms) {
    for (id, room) in rooms.iter().filter(|(_, room)| room.tick() >= LEAST_SAVED) {
        save_room(recorder, id, room);
    }
}
