//! Many datagrams with one system call: recvmmsg and sendmmsg where the system has them, one by one elsewhere.

use std::io;
use std::net::SocketAddr;

use tokio::net::UdpSocket;

/// How many datagrams one call moves.
pub const BATCH: usize = 64;

/// The buffer of one datagram. Ours are shorter; a longer one is cut here and then fails to open.
const SLOT: usize = 2_048;

/// Datagrams that have been received together.
pub struct Received {
    slots: Box<[[u8; SLOT]; BATCH]>,
    heads: [(usize, Option<SocketAddr>); BATCH],
    count: usize,
    system: system::ReceiveState,
}

impl Received {
    /// Allocates an empty batch.
    pub fn new() -> Received {
        let slots = vec![[0; SLOT]; BATCH].into_boxed_slice().try_into().expect("the length is right");
        Received { slots, heads: [(0, None); BATCH], count: 0, system: system::ReceiveState::new() }
    }

    /// Receives waiting datagrams; an error of kind `WouldBlock` if there are none.
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<()> {
        self.count = 0;
        self.count = self.system.receive(socket, &mut self.slots, &mut self.heads)?;
        Ok(())
    }

    /// The datagrams of the last call.
    pub fn iter(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        let whole = self.slots.iter().zip(&self.heads).take(self.count);
        whole.filter_map(|(slot, (len, from))| Some(((*from)?, &slot[..*len])))
    }
}

/// Datagrams that will be sent together.
pub struct Outgoing {
    bytes: Vec<u8>,
    items: Vec<(usize, SocketAddr)>,
    system: system::SendState,
}

impl Outgoing {
    /// Empty.
    pub fn new() -> Outgoing {
        Outgoing { bytes: Vec::new(), items: Vec::new(), system: system::SendState::new() }
    }

    /// Adds a datagram that `write` appends to the buffer.
    pub fn push(&mut self, to: SocketAddr, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.items.push((self.bytes.len(), to));
    }

    /// Whether the batch is full.
    pub fn is_full(&self) -> bool {
        self.items.len() >= BATCH
    }

    /// Sends the batch. Returns how many datagrams the system refused: with a full socket buffer they are dropped, as
    /// any router on the way would do.
    pub fn send(&mut self, socket: &UdpSocket) -> u64 {
        let mut unsent = 0;
        let mut start = 0;
        let mut rest = &self.items[..];
        while !rest.is_empty() {
            match self.system.send(socket, &self.bytes, start, &rest[..rest.len().min(BATCH)]) {
                Ok(sent) => {
                    start = rest[..sent].last().map_or(start, |(end, _)| *end);
                    rest = &rest[sent..];
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    unsent += rest.len() as u64;
                    break;
                }
                // One destination failed (gone, unreachable): go on with the next.
                Err(_) => {
                    unsent += 1;
                    start = rest[0].0;
                    rest = &rest[1..];
                }
            }
        }
        self.bytes.clear();
        self.items.clear();
        unsent
    }
}

#[cfg(target_os = "linux")]
mod system {
    //! One system call for a batch.

    use std::io::{self, IoSlice, IoSliceMut};
    use std::net::SocketAddr;
    use std::os::fd::AsRawFd;

    use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmmsg};
    use tokio::io::Interest;
    use tokio::net::UdpSocket;

    use super::{BATCH, SLOT};

    pub struct ReceiveState {
        headers: MultiHeaders<SockaddrStorage>,
    }

    impl ReceiveState {
        pub fn new() -> ReceiveState {
            ReceiveState { headers: MultiHeaders::preallocate(BATCH, None) }
        }

        pub fn receive(
            &mut self,
            socket: &UdpSocket,
            slots: &mut [[u8; SLOT]; BATCH],
            heads: &mut [(usize, Option<SocketAddr>); BATCH],
        ) -> io::Result<usize> {
            let headers = &mut self.headers;
            socket.try_io(Interest::READABLE, || {
                let mut slices = slots.each_mut().map(|slot| [IoSliceMut::new(slot)]);
                let flags = MsgFlags::MSG_DONTWAIT;
                let results = recvmmsg(socket.as_raw_fd(), headers, slices.iter_mut(), flags, None)?;
                let mut count = 0;
                for (result, head) in results.zip(heads) {
                    *head = (result.bytes, result.address.and_then(|address| to_std(&address)));
                    count += 1;
                }
                Ok(count)
            })
        }
    }

    pub struct SendState {
        headers: MultiHeaders<SockaddrStorage>,
        addresses: Vec<Option<SockaddrStorage>>,
    }

    impl SendState {
        pub fn new() -> SendState {
            SendState {
                headers: MultiHeaders::preallocate(BATCH, None),
                addresses: Vec::with_capacity(BATCH),
            }
        }

        pub fn send(
            &mut self,
            socket: &UdpSocket,
            bytes: &[u8],
            mut start: usize,
            items: &[(usize, SocketAddr)],
        ) -> io::Result<usize> {
            self.addresses.clear();
            self.addresses.extend(items.iter().map(|(_, to)| Some(SockaddrStorage::from(*to))));
            let mut slices = [[IoSlice::new(&[])]; BATCH];
            for ((end, _), slice) in items.iter().zip(&mut slices) {
                *slice = [IoSlice::new(&bytes[start..*end])];
                start = *end;
            }
            let SendState { headers, addresses } = self;
            // Bypasses the runtime's readiness: it is unknown on a new socket, and a full buffer returns an error
            // anyway.
            let (slices, flags) = (&slices[..items.len()], MsgFlags::MSG_DONTWAIT);
            Ok(sendmmsg(socket.as_raw_fd(), headers, slices, addresses, [], flags)?.count())
        }
    }

    fn to_std(address: &SockaddrStorage) -> Option<SocketAddr> {
        match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
            (Some(v4), _) => Some(SocketAddr::V4((*v4).into())),
            (_, Some(v6)) => Some(SocketAddr::V6((*v6).into())),
            _ => None,
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    //! One system call for each datagram.

    use std::io;
    use std::net::SocketAddr;

    use tokio::net::UdpSocket;

    use super::{BATCH, SLOT};

    pub struct ReceiveState;

    impl ReceiveState {
        pub fn new() -> ReceiveState {
            ReceiveState
        }

        pub fn receive(
            &mut self,
            socket: &UdpSocket,
            slots: &mut [[u8; SLOT]; BATCH],
            heads: &mut [(usize, Option<SocketAddr>); BATCH],
        ) -> io::Result<usize> {
            let mut count = 0;
            for (slot, head) in slots.iter_mut().zip(heads) {
                match socket.try_recv_from(slot) {
                    Ok((len, from)) => *head = (len, Some(from)),
                    Err(error) if count == 0 => return Err(error),
                    Err(_) => break,
                }
                count += 1;
            }
            Ok(count)
        }
    }

    pub struct SendState;

    impl SendState {
        pub fn new() -> SendState {
            SendState
        }

        pub fn send(
            &mut self,
            socket: &UdpSocket,
            bytes: &[u8],
            start: usize,
            items: &[(usize, SocketAddr)],
        ) -> io::Result<usize> {
            let (end, to) = items[0];
            // Bypasses the runtime's readiness: it is unknown on a new socket.
            socket2::SockRef::from(socket).send_to(&bytes[start..end], &to.into()).map(|_| 1)
        }
    }
}
