//! Nothing is left behind.

use serde_json::json;

use super::table::{Place, Visitor, two_play};
use crate::everyone::block_on;

#[test]
fn a_server_that_ends_takes_its_hosts_along_and_keeps_sessions_for_the_next_time() {
    let mut place = Place::start(21_100);
    let session = block_on(async {
        let (mut ada, mut bob) = two_play(&place).await;
        let hosts = place.hosts();
        assert!(hosts.len() >= 2, "{hosts:?}");
        place.up.as_ref().unwrap().signal("-INT");
        for one in [&mut ada, &mut bob] {
            assert_eq!(one.socket.hear_kind("closing").await["closing"], "suspended");
        }
        let (is_clean, out) = place.up.take().unwrap().end();
        assert!(is_clean && out.ends_with("the logs are written\n"), "{out}");
        assert_eq!(place.hosts(), Vec::<u32>::new(), "all have ended before it");
        assert_eq!(place.stored().len(), 1);
        place.start_gateway(&[]);
        // The host is started again because it has a session, and waits for its people for a minute.
        let mut ada = ada.resume().await.unwrap();
        assert_eq!((ada.seat_of(&bob.you), &ada.view["phase"]), (Some(1), &"running".into()));
        let bob = bob.resume().await.unwrap();
        ada.does("kick", json!({"player": bob.you, "ban": true})).await;
        let banned = Visitor::come(&place).await;
        assert_ne!(banned.player, bob.you);
        ada.session
    });
    assert_eq!(session.len(), 32);
}
