//! A simulated member of a session. It behaves as a page would, and resumes after its connection is cut.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use sametick_transport::clock::{Clock, random};
use sametick_wire::access::AccessKey;
use sametick_wire::backoff::Backoff;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::people::{EnvelopeClient, Trouble, Visitor, Way};
use super::report::Tally;
use crate::hosting;

/// How long a seat waits for its member after a cut.
const WINDOW: Duration = Duration::from_secs(60);

/// The ping interval of an idle member.
const PING: Duration = Duration::from_secs(5);

/// One resume attempt in this many asks the gateway for the session's host; the others use the last known host.
const ASKS_GATEWAY: u32 = 3;

/// What members of all sessions share: the gateway, its key and the tally.
#[derive(Clone)]
pub(super) struct Place {
    pub gateway: String,
    pub key: AccessKey,
    pub tally: Rc<RefCell<Tally>>,
}

/// A simulated member.
pub(super) struct Member {
    place: Place,
    client: EnvelopeClient,
    pub authority: String,
    /// The token for the lobby.
    lobby_token: String,
    session: String,
    player: String,
    /// The token to resume its seat.
    token: String,
    /// The session as of the last welcome.
    view: Value,
}

impl Member {
    /// Enters with a ticket, as the visitor with this lobby token.
    pub async fn arrive(place: &Place, way: &Way, lobby_token: &str) -> Result<Member, String> {
        let arrived = EnvelopeClient::open(&way.authority, hosting::SOCKET, "session", &place.key).await;
        let mut member = Member {
            place: place.clone(),
            client: arrived?,
            authority: way.authority.clone(),
            lobby_token: lobby_token.into(),
            session: way.session.clone(),
            player: String::new(),
            token: String::new(),
            view: Value::Null,
        };
        member.enter("arrive", &json!({"ticket": way.ticket})).await?;
        Ok(member)
    }

    /// Sends the first command and waits for the welcome.
    async fn enter(&mut self, action: &str, payload: &Value) -> Result<(), Trouble> {
        self.client.say(action, payload).await?;
        let is_it = |message: &Value| !message["event"]["welcome"].is_null() || message["kind"] == "error";
        let said = self.client.hear_of(is_it).await?;
        let welcome = &said["event"]["welcome"];
        let text = |name: &str| welcome[name].as_str().map(str::to_owned);
        let (Some(player), Some(token)) = (text("you"), text("resumeToken")) else {
            return Err(Trouble::Failed(format!("{action}: {}", said["code"])));
        };
        (self.player, self.token, self.view) = (player, token, welcome["view"].clone());
        Ok(())
    }

    /// Sends a command, and repeats it after a resume if the connection is cut.
    pub async fn does(&mut self, action: &str, payload: &Value) -> Result<(), String> {
        loop {
            match self.client.ask(action, payload).await {
                Ok(_) => return Ok(()),
                Err(Trouble::Cut(why)) => self.resume(why).await?,
                Err(Trouble::Failed(why)) => return Err(why),
            }
            // The command may have been done before the answer was lost.
            if self.has_done(action, payload) {
                return Ok(());
            }
        }
    }

    /// Whether the session's view shows that a command was done.
    fn has_done(&self, action: &str, payload: &Value) -> bool {
        let people = self.view["people"].as_array();
        let mut people = people.into_iter().flatten();
        let own = people.find(|person| person["player"] == self.player[..]).unwrap_or(&Value::Null);
        match action {
            "take" => own["seat"] == payload["seat"],
            "ready" => own["ready"] == payload["ready"],
            "start" => self.view["phase"] != "lobby",
            _ => false,
        }
    }

    /// The next event of one of these names. It may take long: meanwhile the member pings, and resumes if the
    /// connection is cut.
    pub async fn event(&mut self, names: &[&'static str]) -> Result<(&'static str, Value), String> {
        loop {
            let named = |message: &Value| {
                let name = names.iter().find(|name| message["event"].get(name).is_some())?;
                Some((*name, message["event"][name].clone()))
            };
            let found =
                self.client.told.iter().enumerate().find_map(|(at, message)| Some((at, named(message)?)));
            if let Some((at, event)) = found {
                self.client.told.remove(at);
                return Ok(event);
            }
            match self.hear_or_ping().await {
                Ok(heard) => self.client.told.extend(heard),
                Err(Trouble::Cut(why)) => self.resume(why).await?,
                Err(Trouble::Failed(why)) => return Err(why),
            }
        }
    }

    /// Stays connected until then.
    pub async fn stay(&mut self, until: Instant) -> Result<(), String> {
        while Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            match timeout(left, self.hear_or_ping()).await {
                Ok(Err(Trouble::Cut(why))) => self.resume(why).await?,
                Ok(Err(Trouble::Failed(why))) => return Err(why),
                Ok(Ok(_)) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// The next message, or `None` after a ping interval without one.
    async fn hear_or_ping(&mut self) -> Result<Option<Value>, Trouble> {
        // A page sends something every two seconds; messages to it come in between.
        match timeout(PING, self.client.hear()).await {
            Ok(heard) => heard.map(Some),
            Err(_) => self.client.ping().await.map(|()| None),
        }
    }

    /// Resumes after a cut, with retries while the seat waits.
    async fn resume(&mut self, why: String) -> Result<(), String> {
        let (clock, mut backoff) = (Clock::start(), Backoff::new(u64::from_le_bytes(random())));
        let (cut_at, mut last) = (Instant::now(), why);
        self.place.tally.borrow_mut().cut += 1;
        let mut attempts = 0;
        while cut_at.elapsed() < WINDOW {
            let now = clock.now();
            sleep(Duration::from_micros(backoff.next(now).micros_since(now))).await;
            attempts += 1;
            match self.come_back(attempts % ASKS_GATEWAY == 0).await {
                Ok(()) => {
                    let mut tally = self.place.tally.borrow_mut();
                    tally.resumed += 1;
                    tally.resume_us.push(u64::try_from(cut_at.elapsed().as_micros()).unwrap_or(u64::MAX));
                    return Ok(());
                }
                Err(Trouble::Cut(why)) => last = why,
                Err(Trouble::Failed(why)) => {
                    return Err(format!("a player was cut off and not let back in: {why}"));
                }
            }
        }
        Err(format!("a player was cut off and not back within {} s: {last}", WINDOW.as_secs()))
    }

    /// One resume attempt: at the host the session has moved to, the one the gateway names, or the last one.
    async fn come_back(&mut self, asks_gateway: bool) -> Result<(), Trouble> {
        let Place { gateway, key, .. } = self.place.clone();
        let moved = self.client.moved.take().map_or(Ok(None), |moved| Way::of(&moved, &gateway))?;
        let way = match moved {
            None if asks_gateway => {
                // A gateway that does not know the session yet, or is down, may know it in a moment.
                let asked = async {
                    Visitor::come(&gateway, &key, Some(&self.lobby_token))
                        .await?
                        .join(&gateway, &self.session)
                        .await
                };
                Some(asked.await.map_err(|trouble| Trouble::Cut(trouble.to_string()))?)
            }
            moved => moved,
        };
        let (action, payload) = match way {
            Some(way) => {
                (self.session, self.authority) = (way.session, way.authority);
                ("arrive", json!({"ticket": way.ticket}))
            }
            None => {
                let payload = json!({"session": self.session, "player": self.player, "token": self.token});
                ("resume", payload)
            }
        };
        self.client = EnvelopeClient::open(&self.authority, hosting::SOCKET, "session", &key).await?;
        self.enter(action, &payload).await?;
        // The view has what happened in the meantime.
        self.client.told.push(json!({"event": {"phase": {"phase": self.view["phase"]}}}));
        Ok(())
    }
}
