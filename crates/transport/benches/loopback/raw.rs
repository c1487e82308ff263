//! The raw socket calls that our endpoints are compared with: one packet a call, and a batch a call.

use std::net::{SocketAddr, UdpSocket};

use crate::FLYING;

/// Two sockets.
pub struct Raw {
    pub socket: UdpSocket,
    pub buffer: Vec<u8>,
    #[cfg(target_os = "linux")]
    batch: batch::Batch,
}

impl Raw {
    pub fn new() -> Raw {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        Raw {
            socket,
            buffer: vec![0; 2_048],
            #[cfg(target_os = "linux")]
            batch: batch::Batch::new(),
        }
    }

    pub fn addr(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    pub fn send_one_by_one(&self, to: SocketAddr, packet: &[u8]) {
        for _ in 0..FLYING {
            self.socket.send_to(packet, to).unwrap();
        }
    }

    pub fn receive_one_by_one(&mut self) {
        for _ in 0..FLYING {
            self.socket.recv_from(&mut self.buffer).unwrap();
        }
    }

    /// Echoes packets until none has arrived for a second.
    pub fn echo_one_by_one(&mut self) {
        self.socket.set_read_timeout(Some(std::time::Duration::from_secs(1))).unwrap();
        while let Ok((len, from)) = self.socket.recv_from(&mut self.buffer) {
            let _ = self.socket.send_to(&self.buffer[..len], from);
        }
    }

    /// The same, a batch a call where the system can.
    #[cfg(target_os = "linux")]
    pub fn echo_in_batches(&mut self) {
        self.socket.set_read_timeout(Some(std::time::Duration::from_secs(1))).unwrap();
        while let Some(count @ 1..) = self.batch.receive(&self.socket) {
            self.batch.send_back(&self.socket, count);
        }
    }

    #[cfg(target_os = "linux")]
    pub fn send_in_batches(&mut self, to: SocketAddr, packet: &[u8]) {
        self.batch.send(&self.socket, to, packet);
    }

    #[cfg(target_os = "linux")]
    pub fn receive_in_batches(&mut self) -> usize {
        let mut count = 0;
        while count < FLYING {
            count += self.batch.receive(&self.socket).unwrap();
        }
        count
    }
}

#[cfg(target_os = "linux")]
mod batch {
    //! recvmmsg and sendmmsg.

    use std::io::{IoSlice, IoSliceMut};
    use std::net::{SocketAddr, UdpSocket};
    use std::os::fd::AsRawFd;

    use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrIn, recvmmsg, sendmmsg};

    use crate::FLYING;

    pub struct Batch {
        received: MultiHeaders<SockaddrIn>,
        sent: MultiHeaders<SockaddrIn>,
        slots: Vec<[u8; 2_048]>,
        heads: Vec<(usize, Option<SockaddrIn>)>,
    }

    impl Batch {
        pub fn new() -> Batch {
            Batch {
                received: MultiHeaders::preallocate(FLYING, None),
                sent: MultiHeaders::preallocate(FLYING, None),
                slots: vec![[0; 2_048]; FLYING],
                heads: vec![],
            }
        }

        pub fn receive(&mut self, socket: &UdpSocket) -> Option<usize> {
            let mut slices: Vec<_> = self.slots.iter_mut().map(|slot| [IoSliceMut::new(slot)]).collect();
            let flags = MsgFlags::MSG_WAITFORONE;
            let results =
                recvmmsg(socket.as_raw_fd(), &mut self.received, slices.iter_mut(), flags, None).ok()?;
            self.heads.clear();
            self.heads.extend(results.map(|result| (result.bytes, result.address)));
            Some(self.heads.len())
        }

        pub fn send_back(&mut self, socket: &UdpSocket, count: usize) {
            let slices: Vec<_> = self
                .slots
                .iter()
                .zip(&self.heads)
                .map(|(slot, (len, _))| [IoSlice::new(&slot[..*len])])
                .collect();
            let to: Vec<_> = self.heads.iter().take(count).map(|(_, from)| *from).collect();
            let _ = sendmmsg(socket.as_raw_fd(), &mut self.sent, &slices, to, [], MsgFlags::empty());
        }

        pub fn send(&mut self, socket: &UdpSocket, to: SocketAddr, packet: &[u8]) {
            let SocketAddr::V4(to) = to else { return };
            let slices = [[IoSlice::new(packet)]; FLYING];
            let to = [Some(SockaddrIn::from(to)); FLYING];
            let sent = sendmmsg(socket.as_raw_fd(), &mut self.sent, &slices, to, [], MsgFlags::empty());
            assert_eq!(sent.unwrap().count(), FLYING);
        }
    }
}
