//! One way, one thread: the cost of sending and receiving a packet.

use std::future::poll_fn;
use std::task::Poll;

use sametick_transport::clock::{random, unix_seconds};
use sametick_transport::connection_slots::ConnectionSlots;
use sametick_transport::endpoint::{Arrival, CALL, Endpoint, LinkId};
use sametick_transport::noise::{Psk, SEAL_LEN};
use sametick_transport::proof_journal::ProofJournal;
use sametick_transport::quic;
use sametick_transport::tls::{Certificate, Purpose, Trust};
use sametick_transport::udp::UdpEndpoint;
use sametick_wire::Time;
use sametick_wire::access::AccessKey;

use crate::echo::hello;
use crate::raw::Raw;
use crate::{FLYING, MESSAGE, Stopwatch, line, rate, table};

pub fn report() {
    crate::pin(0);
    let packet = [7; MESSAGE + SEAL_LEN];
    table("one way, both ends on one core");
    let (sender, mut receiver) = (Raw::new(), Raw::new());
    let to = receiver.addr();
    let one_by_one = rate(|| {
        sender.send_one_by_one(to, &packet);
        receiver.receive_one_by_one();
        FLYING
    });
    line("raw: send_to, recv_from", one_by_one, one_by_one);
    #[cfg(target_os = "linux")]
    {
        let mut sender = sender;
        let in_batches = rate(|| {
            sender.send_in_batches(to, &packet);
            receiver.receive_in_batches()
        });
        line("raw: sendmmsg, recvmmsg", in_batches, one_by_one);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    line("udp: sealed datagrams", runtime.block_on(udp()), one_by_one);
    line("quic: datagrams", runtime.block_on(quic()), one_by_one);
}

async fn udp() -> f64 {
    let proofs = ProofJournal::in_memory(AccessKey::open());
    let server = UdpEndpoint::listen("127.0.0.1:0".parse().unwrap(), proofs).unwrap();
    let psk = Psk::new(&AccessKey::open());
    let client = UdpEndpoint::connect(server.local_addr().unwrap(), &psk, &first(), Time::ZERO).unwrap();
    one_way(client, server).await
}

async fn quic() -> f64 {
    let proofs = ProofJournal::in_memory(AccessKey::open());
    let certificate = Certificate::self_signed(&["localhost".into()], Purpose::Browsers).unwrap();
    let server =
        quic::listen("127.0.0.1:0".parse().unwrap(), proofs, &certificate, ConnectionSlots::default())
            .unwrap();
    let trust = Trust::Pinned(certificate.hash());
    let to = server.local_addr().unwrap();
    let client = quic::connect(to, "localhost", trust, AccessKey::open(), first()).unwrap();
    one_way(client, server).await
}

fn first() -> Vec<u8> {
    let stamp = sametick_wire::hello::Stamp { unix_s: unix_seconds(), nonce: random() };
    hello().to_bytes(&AccessKey::open(), stamp).unwrap()
}

/// The next arrival that `take` accepts.
async fn arrival<T>(endpoint: &mut impl Endpoint, mut take: impl FnMut(Arrival<'_>) -> Option<T>) -> T {
    poll_fn(|cx| {
        let mut taken = None;
        loop {
            let polled = endpoint.poll(cx, Time::ZERO, &mut |arrival| taken = take(arrival).or(taken.take()));
            match (polled, taken.take()) {
                (_, Some(taken)) => return Poll::Ready(taken),
                (Poll::Pending, None) => return Poll::Pending,
                (Poll::Ready(result), None) => result.unwrap(),
            }
        }
    })
    .await
}

async fn one_way(mut client: impl Endpoint, mut server: impl Endpoint) -> f64 {
    let open = async |server: &mut _| -> LinkId {
        arrival(server, |arrival| if let Arrival::Hello { link, .. } = arrival { Some(link) } else { None })
            .await
    };
    let link = open(&mut server).await;
    server.answer(link, b"welcome", true);
    server.flush();
    arrival(&mut client, |arrival| matches!(arrival, Arrival::Answer { .. }).then_some(())).await;
    let mut datagram = [7; MESSAGE];
    let mut number = 0u16;
    let (watch, mut done) = (Stopwatch::start(), 0);
    while watch.is_running() {
        for _ in 0..FLYING {
            number = number.wrapping_add(1);
            datagram[..2].copy_from_slice(&number.to_le_bytes());
            client.send_datagram(CALL, &datagram);
        }
        client.flush();
        let mut left = FLYING;
        arrival(&mut server, |arrival| {
            left -= usize::from(matches!(arrival, Arrival::Datagram { .. }));
            (left == 0).then_some(())
        })
        .await;
        done += FLYING;
    }
    watch.rate(done)
}
