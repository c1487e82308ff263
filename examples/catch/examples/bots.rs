//! Headless players of catch: `bots URL` plays in lockstep, `bots URL ROOM` in a room.

use std::error::Error;

use catch::room::pilot;
use catch::{Catch, Setup, autopilot};
use sametick::bot::{Crowd, LockstepPlan, RoomPlan, RoomPlayer, play_lockstep, play_room};
use sametick::secret::Secret;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let url = words.next().ok_or("say which server to play on")?.parse()?;
    let key = Secret::find(None).key()?;
    let netem = Some(("rtt=100ms,jitter=20ms,loss=2%".parse()?, 1));
    let (pass, trace, commit) = (None, None, sametick::commit!());
    let crowd = Crowd { count: 3, seconds: 10, netem, patience: 30, pass, trace, commit };
    let (setup, seed, seats) = (Setup { seed: 7, coins: 200 }, 7, 8);
    if let Some(room) = words.next() {
        let player = RoomPlayer::Pilot(pilot);
        let plan = RoomPlan::<Catch> { room, crowd, setup, seed, seats, player };
        println!("{}", play_room(&url, &key, plan).await?);
    } else {
        let (session, flip, bring, keep) = ("den".into(), None, None, None);
        let plan = LockstepPlan::<Catch> { session, crowd, setup, seed, seats, autopilot, flip, bring, keep };
        println!("{}", play_lockstep(&url, &key, plan).await?);
    }
    Ok(())
}
