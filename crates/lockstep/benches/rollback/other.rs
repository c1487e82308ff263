//! GGRS: two sessions that receive each other's messages some frames late; one of them is measured.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use ggrs::{
    Config, DesyncDetection, GgrsRequest, Message, NonBlockingSocket, P2PSession, PlayerType,
    PredictRepeatLast, SessionBuilder, SessionState,
};
use sametick_sim::Game;

use super::Contestant;
use super::game::Plain;

struct Types<const WORDS: usize>;

impl<const WORDS: usize> Config for Types<WORDS> {
    type Input = u8;
    type InputPredictor = PredictRepeatLast;
    /// In a box, which costs less than moving 64 KB twice.
    type State = Box<Plain<WORDS>>;
    type Address = usize;
}

/// The messages on their way to each side, and the frame in which each arrives.
#[derive(Default)]
struct Network {
    frame: u32,
    delay: u32,
    to: [VecDeque<(u32, Message)>; 2],
}

struct Socket {
    network: Rc<RefCell<Network>>,
    own: usize,
}

impl NonBlockingSocket<usize> for Socket {
    fn send_to(&mut self, message: &Message, to: &usize) {
        let mut network = self.network.borrow_mut();
        let at = network.frame + network.delay;
        network.to[*to].push_back((at, message.clone()));
    }

    fn receive_all_messages(&mut self) -> Vec<(usize, Message)> {
        let mut network = self.network.borrow_mut();
        let (now, from) = (network.frame, 1 - self.own);
        let mut messages = vec![];
        while network.to[self.own].front().is_some_and(|(at, _)| *at <= now) {
            messages.extend(network.to[self.own].pop_front().map(|(_, message)| (from, message)));
        }
        messages
    }
}

struct Side<const WORDS: usize> {
    session: P2PSession<Types<WORDS>>,
    own: usize,
    state: Box<Plain<WORDS>>,
    stepped: u64,
    frames: u64,
}

impl<const WORDS: usize> Side<WORDS> {
    fn new(own: usize, depth: u32, network: &Rc<RefCell<Network>>) -> Self {
        let player = |seat| if seat == own { PlayerType::Local } else { PlayerType::Remote(seat) };
        let session = SessionBuilder::new()
            .with_num_players(2)
            .and_then(|builder| builder.add_player(player(0), 0))
            .and_then(|builder| builder.add_player(player(1), 1))
            .map(|builder| builder.with_max_prediction_window(depth as usize + 4))
            .map(|builder| builder.with_desync_detection_mode(DesyncDetection::Off))
            .and_then(|builder| builder.start_p2p_session(Socket { network: network.clone(), own }))
            .expect("a session");
        Side { session, own, state: Box::new(Plain::new(&())), stepped: 0, frames: 0 }
    }

    fn frame(&mut self, input: u8) {
        self.session.add_local_input(self.own, input).expect("our own seat");
        for request in self.session.advance_frame().expect("inputs in time") {
            match request {
                GgrsRequest::SaveGameState { cell, frame } => {
                    cell.save(frame, Some(self.state.clone()), None);
                }
                GgrsRequest::LoadGameState { cell, .. } => {
                    self.state.clone_from(&cell.data().expect("a saved state"));
                }
                GgrsRequest::AdvanceFrame { inputs } => {
                    inputs.iter().enumerate().for_each(|(seat, (input, _))| self.state.act(seat, *input));
                    self.stepped += 1;
                }
            }
        }
        self.frames += 1;
        self.session.events().for_each(drop);
    }
}

/// The measured side and the other one.
pub struct Ggrs<const WORDS: usize> {
    network: Rc<RefCell<Network>>,
    ours: Side<WORDS>,
    theirs: Side<WORDS>,
    remote: u8,
}

impl<const WORDS: usize> Ggrs<WORDS> {
    /// A frame with a wrong prediction goes back this far.
    pub fn new(depth: u32) -> Self {
        let network = Rc::new(RefCell::new(Network::default()));
        let [mut ours, mut theirs] = [0, 1].map(|own| Side::new(own, depth, &network));
        let running = |side: &Side<WORDS>| side.session.current_state() == SessionState::Running;
        while !running(&ours) || !running(&theirs) {
            ours.session.poll_remote_clients();
            theirs.session.poll_remote_clients();
        }
        network.borrow_mut().delay = depth;
        Ggrs { network, ours, theirs, remote: 0 }
    }
}

impl<const WORDS: usize> Contestant for Ggrs<WORDS> {
    fn prepare(&mut self, wrong: bool) {
        self.network.borrow_mut().frame += 1;
        self.remote ^= u8::from(wrong);
        self.theirs.frame(self.remote);
    }

    fn frame(&mut self) {
        self.ours.frame(1);
    }

    fn hashed(&self) -> bool {
        false
    }

    fn resimulated(&self) -> u64 {
        self.ours.stepped - self.ours.frames
    }
}
