//! No allocation per packet over raw UDP in steady state.

use std::future::poll_fn;
use std::task::Poll;

use sametick_transport::endpoint::{Arrival, CALL, Endpoint, LinkId};
use sametick_transport::noise::Psk;
use sametick_transport::proof_journal::ProofJournal;
use sametick_transport::udp::UdpEndpoint;
use sametick_wire::Time;
use sametick_wire::access::AccessKey;

use crate::echo::LOCALHOST;
use crate::raw::first_message;

/// Waits until an endpoint has passed on so many arrivals; returns the link of the last.
async fn arrivals(endpoint: &mut UdpEndpoint, mut left: usize) -> LinkId {
    let mut last = CALL;
    poll_fn(|cx| {
        while left > 0 {
            let polled = endpoint.poll(cx, Time::ZERO, &mut |arrival| {
                left -= 1;
                if let Arrival::Hello { link, .. } | Arrival::Datagram { link, .. } = arrival {
                    last = link;
                }
            });
            match polled {
                Poll::Ready(result) => result.unwrap(),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(last)
    })
    .await
}

async fn send(
    number: &mut u16,
    from: &mut UdpEndpoint,
    as_link: LinkId,
    to: &mut UdpEndpoint,
    rounds: usize,
) {
    for _ in 0..rounds {
        for _ in 0..32 {
            *number = number.wrapping_add(1);
            let [low, high] = number.to_le_bytes();
            from.send_datagram(as_link, &[low, high, 1, 2, 3, 4, 5, 6, 7, 8]);
        }
        from.flush();
        arrivals(to, 32).await;
    }
}

#[test]
fn sealed_datagrams_come_and_go_without_an_allocation_each() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let key = AccessKey::open();
    let _guard = runtime.enter();
    let mut server =
        UdpEndpoint::listen(LOCALHOST.parse().unwrap(), ProofJournal::in_memory(key.clone())).unwrap();
    let to = server.local_addr().unwrap();
    let mut client = UdpEndpoint::connect(to, &Psk::new(&key), &first_message(), Time::ZERO).unwrap();
    let link = runtime.block_on(async {
        let link = arrivals(&mut server, 1).await;
        server.answer(link, b"welcome", true);
        server.flush();
        arrivals(&mut client, 1).await;
        link
    });
    let (mut up, mut down) = (0, 0);
    let mut both_ways = |rounds| {
        runtime.block_on(async {
            send(&mut up, &mut client, CALL, &mut server, rounds).await;
            send(&mut down, &mut server, link, &mut client, rounds).await;
        });
    };
    both_ways(100);
    let allocations = allocation_counter::measure(|| both_ways(1_000));
    // One was seen however many packets there were: it is not per packet.
    assert!(allocations.count_total <= 4, "{} allocations for 64,000 packets", allocations.count_total);
}
