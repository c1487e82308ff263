//! Requests from gateways: create a session, or reserve a place in one.

use alloc::boxed::Box;

use super::{Asked, GatewayId, Host, MAX_ASKS, MAX_WORKS, Offer, Output, What, Work, standing};
use crate::id::{Key, SessionId};
use crate::message::{Ending, Refusal};
use crate::password::{Lock, Password, Salt, Weight};
use crate::placing::{FromHost, Granted, ToHost};
use crate::session::{self, Founding, Reserve, Session};
use crate::settings::Settings;
use crate::ticket::{Ticket, mark};

impl Host {
    pub(super) fn asked(&mut self, gateway: GatewayId, ask: ToHost) {
        if self.asks.len() >= MAX_ASKS || self.is_done {
            return;
        }
        match ask {
            ToHost::Place { .. } => self.place(gateway, ask),
            ToHost::Reserve { .. } => self.reserve(gateway, ask),
            ToHost::Adopt { from, life, stored } => self.adopt(gateway, from, life, &stored),
            ToHost::Moved { from, life, to, admissions } => self.moved(from, life, to, admissions),
            ToHost::Stay(session) => self.stay(session),
        }
    }

    fn place(&mut self, gateway: GatewayId, ask: ToHost) {
        let ToHost::Place { key, settings, password, .. } = &ask else { return };
        let key = *key;
        if let Some(session) = self.keys.get(&key) {
            // A repeated request: the answer was lost, or the request was duplicated.
            let session = *session;
            return match self.running.contains_key(&session) {
                true => self.grant(gateway, session, ask),
                false => self.refuse_place(gateway, key, Refusal::Over),
            };
        }
        let is_weighed = |work: &Work| matches!(work, Work::Place(_, ask, ..) if matches!(&**ask, ToHost::Place { key: other, .. } if *other == key));
        if self.works.values().any(is_weighed) {
            return;
        }
        if let Err(refusal) = self.check_place(settings, password.as_ref()) {
            return self.refuse_place(gateway, key, refusal);
        }
        let id = self.next_id();
        match password.clone() {
            None => self.found(gateway, ask, id, None),
            Some(password) => {
                let salt = Salt(self.tokens(id).salt(0));
                self.weigh(Work::Place(gateway, Box::new(ask), id, salt), salt, password);
            }
        }
    }

    pub(super) fn next_id(&mut self) -> SessionId {
        self.next += 1;
        let life = self.config.life;
        SessionId { host: self.config.id, born: life, mark: mark(&self.config.secret, life, self.next) }
    }

    pub(super) fn check_place(
        &self,
        settings: &Settings,
        password: Option<&Password>,
    ) -> Result<(), Refusal> {
        if self.is_draining() {
            return Err(Refusal::Stopping);
        }
        let coming = self.works.values().filter(|work| matches!(work, Work::Place(..))).count();
        if self.running.len() + coming >= usize::from(self.config.capacity) {
            return Err(Refusal::NoHost);
        }
        let offer = self.offer_for(settings).ok_or(Refusal::BadSettings)?;
        if !settings.fit(&offer.plan) || password.is_some_and(|password| !password.is_sound()) {
            return Err(Refusal::BadSettings);
        }
        if self.works.len() >= MAX_WORKS { Err(Refusal::Busy) } else { Ok(()) }
    }

    fn offer_for(&self, settings: &Settings) -> Option<&Offer> {
        self.config.offers.iter().find(|offer| (&offer.game, offer.mode) == (&settings.game, settings.mode))
    }

    fn found(&mut self, gateway: GatewayId, ask: ToHost, id: SessionId, lock: Option<Lock>) {
        let ToHost::Place { key, settings, .. } = &ask else { return };
        let key = *key;
        // The host may have started to drain while the password was hashed.
        let plan = self.offer_for(settings).filter(|_| !self.is_draining()).map(|offer| offer.plan.clone());
        let founding = plan.map(|plan| Founding { id, key, plan, settings: settings.clone(), lock });
        let session = founding.and_then(|founding| Session::new(self.now, &self.config.secret, founding));
        match session {
            Some(session) => {
                self.run(session);
                self.grant(gateway, id, ask);
            }
            None => self.refuse_place(gateway, key, Refusal::Stopping),
        }
    }

    /// Reserves the place of the creator.
    fn grant(&mut self, gateway: GatewayId, session: SessionId, ask: ToHost) {
        let ToHost::Place { key, player, name, .. } = ask else { return };
        let ask = self.note(gateway, session, What::Place(key));
        let reserve = Reserve { ask, player, name, password: None, seat: None, is_maker: true };
        self.pass_to(session, session::Input::Reserve(reserve));
    }

    fn reserve(&mut self, gateway: GatewayId, asked: ToHost) {
        let ToHost::Reserve { ask, session, player, name, password, seat, source } = asked else { return };
        if password.is_some() && !self.guesses.try_take(self.now, source) {
            return self.refuse(gateway, ask, Refusal::TooManyGuesses, true);
        }
        if password.is_some() && self.works.len() >= MAX_WORKS {
            return self.refuse(gateway, ask, Refusal::Busy, true);
        }
        if self.running.contains_key(&session) {
            let ask = self.note(gateway, session, What::Reserve(ask));
            let reserve = Reserve { ask, player, name, password, seat, is_maker: false };
            return self.pass_to(session, session::Input::Reserve(reserve));
        }
        match (self.graves.get(&session).map(|grave| grave.ending), password.filter(Password::is_sound)) {
            (Some(Ending::Quarantined), _) => self.refuse(gateway, ask, Refusal::Quarantined, false),
            (Some(_), _) => self.refuse(gateway, ask, Refusal::Over, false),
            (None, None) => self.refuse(gateway, ask, Refusal::NotFound, false),
            (None, Some(password)) => {
                let salt = Salt(self.tokens(session).salt(0));
                self.weigh(Work::Decoy(gateway, ask), salt, password);
            }
        }
    }

    fn note(&mut self, gateway: GatewayId, session: SessionId, what: What) -> u64 {
        self.next += 1;
        self.asks.insert(self.next, Asked { gateway, session, what, at: self.now });
        self.next
    }

    fn weigh(&mut self, work: Work, salt: Salt, password: Password) {
        self.next += 1;
        self.works.insert(self.next, work);
        self.outputs.push_back(Output::Weigh(self.next, salt, password));
    }

    pub(super) fn weighed(&mut self, work: u64, weight: Weight) {
        match self.works.remove(&work) {
            Some(Work::Session(session, work)) => {
                self.pass_to(session, session::Input::Weighed(work, weight));
            }
            Some(Work::Place(gateway, ask, id, salt)) => {
                self.found(gateway, *ask, id, Some(Lock { salt, weight }));
            }
            Some(Work::Decoy(gateway, ask)) => self.refuse(gateway, ask, Refusal::NotFound, false),
            None => {}
        }
    }

    /// Passes on a session's answer to the request.
    pub(super) fn answer(&mut self, ask: u64, answer: Result<Ticket, Refusal>) {
        let Some(Asked { gateway, session, what, .. }) = self.asks.remove(&ask) else { return };
        let Some(running) = self.running.get(&session) else { return };
        let answer = answer.map(|ticket| Granted {
            ticket: self.seal.seal(&ticket),
            standing: standing(&running.session),
            life: self.config.life,
            beats: self.beats,
        });
        let said = match what {
            What::Place(key) => FromHost::Placed { key, answer },
            What::Reserve(ask) => FromHost::Reserved { ask, answer, exists: true },
        };
        self.outputs.push_back(Output::Gateway(gateway, said));
    }

    fn refuse_place(&mut self, gateway: GatewayId, key: Key, refusal: Refusal) {
        let said = FromHost::Placed { key, answer: Err(refusal) };
        self.outputs.push_back(Output::Gateway(gateway, said));
    }

    fn refuse(&mut self, gateway: GatewayId, ask: u64, refusal: Refusal, exists: bool) {
        let said = FromHost::Reserved { ask, answer: Err(refusal), exists };
        self.outputs.push_back(Output::Gateway(gateway, said));
    }
}
