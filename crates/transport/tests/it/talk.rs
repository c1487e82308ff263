//! Every transport carries every channel, refuses differences with a reason, and closes with one.

use sametick_sim::Rng;
use sametick_transport::clock::Clock;
use sametick_transport::dial::Scheme;
use sametick_transport::endpoint::Gone;
use sametick_transport::hub::{Ended, Hub};
use sametick_transport::memory;
use sametick_transport::proof_journal::ProofJournal;
use sametick_wire::access::AccessKey;
use sametick_wire::hello::{Hello, Intent, Refusal, Stamp};
use sametick_wire::{Carrier, Channel, Closed, Reason};

use crate::echo::{Client, Server, block_on, hello, identity, run_client};

fn messages() -> Vec<(Channel, Vec<u8>)> {
    let mut rng = Rng::new(5);
    let mut bytes = |len: usize| (0..len).map(|_| rng.next_u64() as u8).collect::<Vec<u8>>();
    vec![
        (Channel::Control, bytes(10)),
        (Channel::Chat, bytes(3_000)),
        (Channel::Chunks, bytes(300_000)),
        (Channel::Diagnostics, vec![]),
        (Channel::Input, bytes(40)),
        (Channel::State, bytes(900)),
    ]
}

#[test]
fn every_transport_carries_every_channel() {
    let server = Server::open();
    for locator in &server.locators {
        let mut client = run_client(locator, &AccessKey::open(), &hello(), Client::new(messages()));
        assert_eq!(client.ended, Some(Ended::Link(Closed::Here)), "{locator}");
        client.got.sort_by_key(|(channel, _)| channel.number());
        let mut sent = messages();
        sent.sort_by_key(|(channel, _)| channel.number());
        assert!(client.got == sent, "{locator}: what comes back is what was sent");
        assert!(client.stats.unwrap().bytes_sent > 300_000, "{locator}");
    }
}

#[test]
fn memory_carries_every_channel_on_every_carrier() {
    for carrier in [Carrier::Datagrams, Carrier::DatagramsAndStreams, Carrier::Stream] {
        block_on(async {
            let (listener, dialer) = memory::listen(carrier);
            let stamp = Stamp { unix_s: sametick_transport::clock::unix_seconds(), nonce: [3; 16] };
            let first = hello().to_bytes(&AccessKey::open(), stamp).unwrap();
            let mut server = Hub::new(Clock::start(), Some(ProofJournal::in_memory(AccessKey::open())));
            server.add(Box::new(listener));
            let mut hub = Hub::new(Clock::start(), None);
            hub.add(Box::new(dialer.connect(first)));
            let mut client = Client::new(messages());
            let mut echo = Mirror;
            tokio::select! {
                done = hub.run(&mut client) => done.unwrap(),
                _ = server.run(&mut echo) => unreachable!("the server runs on"),
            }
            assert_eq!(client.got.len(), messages().len(), "{carrier:?}");
        });
    }
}

/// Echoes for ever.
struct Mirror;

impl sametick_transport::hub::App for Mirror {
    fn has_joined(&self, _: sametick_transport::hub::Key) -> bool {
        true
    }

    fn admit(
        &mut self,
        _: sametick_wire::Time,
        _: sametick_transport::hub::Key,
        _: std::net::SocketAddr,
        _: &sametick_wire::hello::Proven,
    ) -> Result<(), Refusal> {
        Ok(())
    }

    fn handle(
        &mut self,
        _: sametick_wire::Time,
        links: &mut sametick_transport::hub::Links,
        event: sametick_transport::hub::Event<'_>,
    ) {
        if let sametick_transport::hub::Event::Message(key, channel, bytes) = event {
            links.send(key, channel, bytes).unwrap();
        }
    }

    fn wake_at(&self) -> Option<sametick_wire::Time> {
        None
    }
}

#[test]
fn a_difference_is_refused_with_both_sides_values() {
    let server = Server::open();
    for locator in &server.locators {
        for (ours, word) in [(identity(9, 1), "build 09090909"), (identity(1, 9), "this client's 09090909")] {
            let other = Hello { identity: ours, ..hello() };
            let client = run_client(locator, &AccessKey::open(), &other, Client::new(vec![]));
            let Some(Ended::Refused(refusal)) = client.ended else { panic!("{locator}: {:?}", client.ended) };
            assert!(refusal.to_string().contains(word), "{locator}: {refusal}");
            assert!(refusal.to_string().contains("01010101"), "{locator}: {refusal}");
        }
    }
}

#[test]
fn a_close_says_why_over_every_transport() {
    let server = Server::open();
    for locator in &server.locators {
        let wish = Client::new(vec![(Channel::Chat, b"close me".to_vec())]);
        let client = run_client(locator, &AccessKey::open(), &hello(), wish);
        let reason = Reason { code: 7, text: "as you wish".into() };
        assert_eq!(client.ended, Some(Ended::Link(Closed::There(reason))), "{locator}");
    }
}

#[test]
fn a_wrong_passphrase_looks_like_no_server() {
    let server = Server::start(ProofJournal::in_memory(AccessKey::from_passphrase("right")));
    for locator in &server.locators {
        let client = run_client(locator, &AccessKey::from_passphrase("wrong"), &hello(), Client::new(vec![]));
        let Some(Ended::Carrier(gone)) = client.ended else { panic!("{locator}: {:?}", client.ended) };
        let silent = matches!(locator.scheme, Scheme::Udp | Scheme::Quic);
        assert!(gone == Gone::NoAnswer || !silent && gone == Gone::Closed, "{locator}: {gone:?}");
        let right = AccessKey::from_passphrase("right");
        let client = run_client(locator, &right, &hello(), Client::new(vec![(Channel::Chat, vec![1])]));
        assert_eq!(client.got.len(), 1, "{locator}");
    }
}

#[test]
fn a_certificate_other_than_the_pinned_one_is_not_believed() {
    let server = Server::open();
    for scheme in [Scheme::Quic, Scheme::Wss, Scheme::Wt] {
        let mut locator = server.locator(scheme).clone();
        locator.cert.as_mut().unwrap().0[5] ^= 1;
        let client = run_client(&locator, &AccessKey::open(), &hello(), Client::new(vec![]));
        assert!(
            matches!(client.ended, Some(Ended::Carrier(Gone::Failed(_)))),
            "{locator}: {:?}",
            client.ended
        );
        locator.cert = None;
        let client = run_client(&locator, &AccessKey::open(), &hello(), Client::new(vec![]));
        assert!(
            matches!(client.ended, Some(Ended::Carrier(Gone::Failed(_)))),
            "{locator}: {:?}",
            client.ended
        );
    }
}

#[test]
fn the_simulated_network_applies_to_real_sockets() {
    let server = Server::open();
    for locator in &server.locators {
        let mut sent = messages();
        sent.retain(|(channel, _)| *channel != Channel::State);
        sent.iter_mut().for_each(|(_, message)| message.truncate(20_000));
        let mut client = Client::new(sent);
        block_on(async {
            let clock = Clock::start();
            let mut hub = Hub::new(clock, None);
            hub.set_netem("rtt=40ms,loss=20%,dup=10%,reorder=10%,corrupt=5%".parse().unwrap(), 3);
            let intent = Hello { intent: Intent::Join { session: "den".into() }, ..hello() };
            hub.add(locator.dial(clock.now(), &AccessKey::open(), &intent).await.unwrap());
            hub.run(&mut client).await.unwrap();
        });
        assert_eq!(client.got.len(), 5, "{locator}");
        assert!(client.stats.unwrap().rtt_us.unwrap() >= 38_000, "{locator}: {:?}", client.stats);
    }
}
