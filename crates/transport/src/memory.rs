//! Links within one process: the endpoint interface without a network, for tests and single-player games.

use std::net::SocketAddr;

use sametick_wire::Carrier;

use crate::endpoint::{CALL, Gone, LinkId, RawEvent};
use crate::tasks::{Command, Event, Inbox, Reporter, TaskEndpoint, reports};

/// The address of a memory endpoint.
const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// Connects to the listener it was made with, from anywhere in the process.
#[derive(Clone)]
pub struct Dialer {
    carrier: Carrier,
    server: Reporter,
}

/// A listener whose links behave like `carrier`, and its dialer.
pub fn listen(carrier: Carrier) -> (TaskEndpoint<()>, Dialer) {
    let (reporter, events) = reports();
    let dialer = Dialer { carrier, server: reporter.clone() };
    (TaskEndpoint::new(carrier, NOWHERE, (reporter, events), None, ()), dialer)
}

impl Dialer {
    /// Connects to the listener. Needs a runtime: a task carries the bytes.
    pub fn connect(&self, hello: Vec<u8>) -> TaskEndpoint<()> {
        let (reporter, events) = reports();
        let (ours, our_inbox) = reporter.connection();
        let (theirs, their_inbox) = self.server.connection();
        let (client, server) = (reporter.clone(), self.server.clone());
        tokio::spawn(async move {
            let link = server.new_link();
            let knock = Event::Hello { link, from: NOWHERE, bytes: hello, outbox: theirs };
            if server.report(knock).await {
                tokio::join!(carry(our_inbox, &server, link), carry(their_inbox, &client, CALL));
            }
        });
        TaskEndpoint::new(self.carrier, NOWHERE, (reporter, events), Some((CALL, ours)), ())
    }
}

/// Carries the data of one side to the other, and its end.
async fn carry(mut inbox: Inbox, to: &Reporter, link: LinkId) {
    while let Some(command) = inbox.next().await {
        inbox.written(command.len());
        let open = to.report(match command {
            Command::Answer { bytes, .. } => Event::Answer { link, bytes },
            Command::Datagram(bytes) => Event::Datagram { link, bytes },
            Command::Stream(lane, bytes) => Event::Stream { link, lane, bytes },
            Command::Say(words) => Event::Raw { link, event: RawEvent::Said(words), outbox: None },
            Command::Joined => continue,
        });
        if !open.await {
            return;
        }
    }
    to.report(Event::Gone { link, why: Gone::Closed }).await;
}
