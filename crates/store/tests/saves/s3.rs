//! S3-compatible storage over HTTP, with all faults of a network.

#![allow(clippy::disallowed_methods, reason = "the number of operations comes from the environment")]

use std::sync::Arc;
use std::time::Duration;

use sametick_sim::{Rng, Tick, Time};
use sametick_store::saves::{
    BadPlace, Condition, ObjectStore, Outcome, Place, PutError, SaveInfo, SaveSync, Todo,
};

use crate::kit::{key, save};
use crate::races::check;
use crate::stand::{Stand, Wrongs};
use crate::stores::behaves;

/// Puts with a condition in the test command; `SAMETICK_OPERATIONS` sets another number.
const OPERATIONS: u64 = 10_000;
const CLIENTS: u64 = 5;

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

#[test]
fn s3_storage_keeps_the_contract_of_stores() {
    run(async {
        let stand = Stand::start(1, Wrongs::default()).await;
        behaves(&stand.store()).await;
        for number in 0..10 {
            stand.store().put(&format!("many/{number}"), b"x", Condition::New, None).await.unwrap();
        }
        assert_eq!(stand.store().list("many/").await.unwrap().len(), 10, "in several answers");
    });
}

#[test]
fn wrong_credentials_and_wrong_protocols_are_refused() {
    run(async {
        let stand = Stand::start(1, Wrongs::default()).await;
        let stranger = stand.store_of("http", "something else");
        let put = stranger.put("x", b"x", Condition::New, None).await;
        assert!(matches!(&put, Err(PutError::Failing(trouble)) if trouble.0.contains("403")), "{put:?}");
        assert!(stranger.get("x").await.is_err());
        assert!(!format!("{stranger:?}").contains("something else"), "no secret is printed");
        // An endpoint that should speak TLS and cannot gets no plain requests.
        let encrypted = stand.store_of("https", "");
        assert!(
            encrypted.get("x").await.is_err() && encrypted.put("x", b"", Condition::New, None).await.is_err()
        );
        assert_eq!(stand.history(), []);
    });
}

#[test]
fn a_put_without_an_answer_may_be_done() {
    run(async {
        let stand = Stand::start(1, Wrongs { lost_reply: 1000, ..Wrongs::default() }).await;
        let put = stand.store().put("x", b"1", Condition::New, None).await;
        assert!(matches!(put, Err(PutError::MaybeDone(_))), "{put:?}");
        assert_eq!(stand.history().len(), 1, "once: nothing was repeated behind our back");
        stand.set_wrongs(Wrongs { slow: 1000, ..Wrongs::default() });
        let put = stand.store().put("y", b"1", Condition::New, None).await;
        assert!(matches!(&put, Err(PutError::MaybeDone(why)) if why.0.contains("no answer")), "{put:?}");
        stand.set_wrongs(Wrongs { broken: 1000, ..Wrongs::default() });
        let put = stand.store().put("z", b"1", Condition::New, None).await;
        assert!(matches!(put, Err(PutError::MaybeDone(_))), "{put:?}");
        stand.set_wrongs(Wrongs { unavailable: 1000, ..Wrongs::default() });
        let put = stand.store().put("z", b"1", Condition::New, None).await;
        assert!(matches!(&put, Err(PutError::MaybeDone(why)) if why.0.contains("503")), "{put:?}");
        stand.set_wrongs(Wrongs { refused: 1000, ..Wrongs::default() });
        for _ in 0..10 {
            assert_eq!(stand.store().put("z", b"1", Condition::New, None).await, Err(PutError::Conflict));
        }
        stand.set_wrongs(Wrongs { broken_body: 1000, ..Wrongs::default() });
        assert!(stand.store().get("x").await.is_err(), "half an object is none");
    });
}

/// Uploads saves until enough operations were done. Time is virtual: waiting takes no time.
async fn bring_saves(stand: Stand, maker: u64, operations: u64) -> Vec<(SaveInfo, Outcome)> {
    let store: Arc<dyn ObjectStore> = Arc::new(stand.store());
    let mut rng = Rng::new(maker);
    let mut tick = 0;
    let mut outcomes = Vec::new();
    while stand.conditional_puts() < operations {
        tick += 1 + rng.below(3) as u32;
        let mut save = save(tick, if rng.chance(1, 20) { maker } else { 0 });
        save.info.saved_unix_ms += maker;
        let bytes = save.to_bytes().unwrap();
        let mut sync = SaveSync::new(save.info.clone(), rng.next_u64());
        let mut now = Time::ZERO;
        let outcome = loop {
            while sync.advance(&*store, &key().save(), &bytes, &|| now).await {
                // Other clients run between the read and the put.
                if rng.chance(1, 3) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            match sync.todo(now) {
                Todo::WaitUntil(until) => now = until,
                Todo::Done(outcome) => break outcome,
                _ => unreachable!("it was advanced"),
            }
        };
        if let Outcome::NewerIsThere(Tick(newer)) = outcome {
            tick = newer;
        }
        outcomes.push((save.info, outcome));
    }
    outcomes
}

#[test]
fn five_clients_race_and_no_update_is_lost() {
    let operations =
        std::env::var("SAMETICK_OPERATIONS").map_or(OPERATIONS, |number| number.parse().unwrap());
    run(async {
        let stand = Stand::start(operations, Wrongs::all(30)).await;
        let clients = (1..=CLIENTS).map(|maker| tokio::spawn(bring_saves(stand.clone(), maker, operations)));
        let mut outcomes = Vec::new();
        for client in clients.collect::<Vec<_>>() {
            outcomes.extend(client.await.unwrap());
        }
        let history = stand.history();
        println!(
            "{} conditional puts, {} done, {} saves brought; {}",
            stand.conditional_puts(),
            history.len(),
            outcomes.len(),
            stand.happened()
        );
        let lost_races = stand.conditional_puts() - history.len() as u64;
        assert!(lost_races > operations / 10, "they race: {lost_races}");
        check(operations, &history, &outcomes);
    });
}

#[test]
fn locations_are_parsed_or_the_error_names_the_mistake() {
    let Ok(Place::S3(place)) =
        Place::parse("s3://my-games/a/b/?region=eu-1&style=host&endpoint=https%3A%2F%2Fs3.example")
    else {
        panic!("a place")
    };
    assert_eq!((&*place.bucket, &*place.prefix, place.path_style), ("my-games", "a/b", false));
    assert_eq!(
        (place.region.as_deref(), place.endpoint.as_deref()),
        (Some("eu-1"), Some("https://s3.example"))
    );
    let wrong = [
        ("", BadPlace::Empty),
        ("gs://x/y", BadPlace::Scheme("gs://x/y".into())),
        ("s3://", BadPlace::Bucket(String::new())),
        ("s3://Games", BadPlace::Bucket("Games".into())),
        ("s3://games/a/../b", BadPlace::Prefix("a/../b".into())),
        ("s3://games/a b", BadPlace::Prefix("a b".into())),
        ("s3://games?endpoint=localhost", BadPlace::Endpoint("localhost".into())),
        ("s3://games?endpoint=http://me:pw@host", BadPlace::Endpoint("http://me:pw@host".into())),
        ("s3://games?zone=1", BadPlace::Setting("zone=1".into())),
        ("s3://games?style=round", BadPlace::Setting("style=round".into())),
        ("s3://games?region", BadPlace::Setting("region".into())),
        ("s3://games?region=%4", BadPlace::Percent("region=%4".into())),
    ];
    for (text, expected) in wrong {
        assert_eq!(Place::parse(text), Err(expected), "{text}");
    }
    for text in
        ["data/here", "s3://games", "s3://games/a/b?endpoint=http://host:9000/x%26y&region=eu-1&style=host"]
    {
        let place = Place::parse(text).unwrap();
        assert_eq!((place.to_string(), Place::parse(&place.to_string())), (text.into(), Ok(place)));
    }
    let folder = tempfile::tempdir().unwrap();
    assert!(!Place::S3(place).open().unwrap().can_append());
    assert!(Place::Folder(folder.path().join("new")).open().unwrap().can_append());
}
