//! Encryption of raw UDP: a Noise handshake with the passphrase as pre-shared key, then sealed datagrams.
//!
//! ```text
//! first   tag (8) · NNpsk0 message 1 with the hello inside     client → server
//! answer  NNpsk0 message 2 with the answer inside              server → client
//! after   number (2, in the clear) · ciphertext · tag (16)     the number is the link's own packet number
//! ```
//! The tag is a keyed hash over the rest of the first packet: garbage costs one hash and no Noise state. The tag does
//! not authenticate clients; the pre-shared key and the hello's proof do.

use sametick_wire::access::AccessKey;
use sametick_wire::hello::{MAX_ANSWER, MAX_HELLO};
use sametick_wire::packet::{MAX_DATAGRAM, widen};

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"sametick udp";

/// The cipher's own bytes around the payload of each handshake message: an ephemeral key and a tag.
const NOISE_LEN: usize = 32 + 16;
const FIRST_TAG_LEN: usize = 8;

/// The tag at the start of a first packet.
pub type FirstTag = [u8; FIRST_TAG_LEN];

/// The bytes of the packet number that travel in the clear.
const NUMBER_LEN: usize = 2;

/// The bytes that sealing adds to a datagram.
pub const SEAL_LEN: usize = 16;

/// The longest packet on the wire.
pub const MAX_PACKET: usize = MAX_DATAGRAM + SEAL_LEN;

/// Why a handshake packet is dropped. It gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stranger;

impl From<snow::Error> for Stranger {
    fn from(_: snow::Error) -> Self {
        Stranger
    }
}

fn builder(psk: &[u8; 32]) -> Result<snow::Builder<'_>, Stranger> {
    let params = PATTERN.parse().map_err(|_| Stranger)?;
    Ok(snow::Builder::new(params).psk(0, psk)?.prologue(PROLOGUE)?)
}

/// The keys that raw UDP derives from a passphrase.
#[derive(Clone)]
pub struct Psk {
    psk: [u8; 32],
    tag_key: [u8; 32],
}

impl std::fmt::Debug for Psk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Psk(…)")
    }
}

impl Psk {
    /// Derives the keys.
    pub fn new(key: &AccessKey) -> Psk {
        let psk = key.noise_psk();
        Psk { psk, tag_key: blake3::derive_key("sametick 1 udp first packet", &psk) }
    }

    /// Whether a packet may be a first one, at the cost of one hash; the tag is different for each.
    pub fn check_first(&self, packet: &[u8]) -> Result<FirstTag, Stranger> {
        let (tag, rest) = packet.split_first_chunk::<FIRST_TAG_LEN>().ok_or(Stranger)?;
        let is_first =
            (NOISE_LEN..=MAX_HELLO + NOISE_LEN).contains(&rest.len()) && self.first_tag(rest) == *tag;
        if is_first { Ok(*tag) } else { Err(Stranger) }
    }

    fn first_tag(&self, rest: &[u8]) -> FirstTag {
        *blake3::keyed_hash(&self.tag_key, rest).as_bytes().first_chunk().expect("a hash is longer")
    }
}

/// A client that has sent its first packet and waits for the answer.
pub struct Calling {
    state: snow::HandshakeState,
    first: Vec<u8>,
}

impl Calling {
    /// Prepares the first packet with this hello in it.
    pub fn new(psk: &Psk, hello: &[u8]) -> Result<Calling, Stranger> {
        let mut state = builder(&psk.psk)?.build_initiator()?;
        let mut first = vec![0; FIRST_TAG_LEN + NOISE_LEN + hello.len()];
        let len = state.write_message(hello, &mut first[FIRST_TAG_LEN..])?;
        first.truncate(FIRST_TAG_LEN + len);
        let tag = psk.first_tag(&first[FIRST_TAG_LEN..]);
        first[..FIRST_TAG_LEN].copy_from_slice(&tag);
        Ok(Calling { state, first })
    }

    /// The first packet, to be sent until an answer comes.
    pub fn first(&self) -> &[u8] {
        &self.first
    }

    /// Takes the answer. A packet that is no answer changes nothing.
    pub fn on_answer(&mut self, packet: &[u8]) -> Result<Vec<u8>, Stranger> {
        if packet.len() > MAX_ANSWER + NOISE_LEN {
            return Err(Stranger);
        }
        let mut payload = vec![0; packet.len()];
        let len = self.state.read_message(packet, &mut payload)?;
        payload.truncate(len);
        Ok(payload)
    }

    /// The cipher that follows an answer.
    pub fn seal(self) -> Result<Seal, Stranger> {
        Ok(Seal::new(self.state.into_stateless_transport_mode()?))
    }
}

/// A server's side of a first packet from a client that knows the passphrase.
pub struct Called {
    state: snow::HandshakeState,
}

impl Called {
    /// Takes a packet that has passed [`Psk::check_first`].
    pub fn new(psk: &Psk, packet: &[u8]) -> Result<(Called, Vec<u8>), Stranger> {
        let rest = packet.get(FIRST_TAG_LEN..).ok_or(Stranger)?;
        let mut state = builder(&psk.psk)?.build_responder()?;
        let mut hello = vec![0; rest.len()];
        let len = state.read_message(rest, &mut hello)?;
        hello.truncate(len);
        Ok((Called { state }, hello))
    }

    /// The packet with the answer, and the cipher that follows it.
    pub fn answer(mut self, answer: &[u8]) -> Result<(Vec<u8>, Seal), Stranger> {
        let mut packet = vec![0; NOISE_LEN + answer.len()];
        let len = self.state.write_message(answer, &mut packet)?;
        packet.truncate(len);
        Ok((packet, Seal::new(self.state.into_stateless_transport_mode()?)))
    }
}

/// The cipher of one link. Each packet number is used once in each direction; the link drops repeats.
pub struct Seal {
    state: snow::StatelessTransportState,
    next_out: u64,
    next_in: u64,
}

impl Seal {
    fn new(state: snow::StatelessTransportState) -> Seal {
        Seal { state, next_out: 0, next_in: 0 }
    }

    /// Appends a sealed datagram to `out`. The cipher relies on a link giving each number to one datagram only; the
    /// same datagram may come twice or out of order, if a simulated bad network stands in between.
    pub fn seal(&mut self, datagram: &[u8], out: &mut Vec<u8>) {
        let (number, rest) =
            datagram.split_first_chunk::<NUMBER_LEN>().expect("a link's datagram has a number");
        let full = widen(u16::from_le_bytes(*number), self.next_out);
        out.extend_from_slice(number);
        let start = out.len();
        out.resize(start + rest.len() + SEAL_LEN, 0);
        let written = self.state.write_message(full, rest, &mut out[start..]);
        assert_eq!(written.ok(), Some(rest.len() + SEAL_LEN), "a datagram is never too long to seal");
        self.next_out = self.next_out.max(full + 1);
    }

    /// Opens a packet into `out`, which then holds the link's datagram. False if the packet was not sealed by the peer,
    /// or its number is not near the expected one.
    pub fn open(&mut self, packet: &[u8], out: &mut Vec<u8>) -> bool {
        let Some((number, rest)) = packet.split_first_chunk::<NUMBER_LEN>() else { return false };
        if rest.len() < SEAL_LEN || packet.len() > MAX_PACKET {
            return false;
        }
        let full = widen(u16::from_le_bytes(*number), self.next_in);
        out.clear();
        out.extend_from_slice(number);
        out.resize(NUMBER_LEN + rest.len(), 0);
        let Ok(len) = self.state.read_message(full, rest, &mut out[NUMBER_LEN..]) else { return false };
        out.truncate(NUMBER_LEN + len);
        self.next_in = self.next_in.max(full + 1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(client: &AccessKey, server: &AccessKey) -> Option<(Seal, Seal)> {
        let mut calling = Calling::new(&Psk::new(client), b"hello").unwrap();
        let server = Psk::new(server);
        server.check_first(calling.first()).ok()?;
        let (called, hello) = Called::new(&server, calling.first()).ok()?;
        assert_eq!(hello, b"hello");
        let (packet, server) = called.answer(b"welcome").unwrap();
        assert_eq!(calling.on_answer(&packet), Ok(b"welcome".to_vec()));
        Some((calling.seal().unwrap(), server))
    }

    #[test]
    fn the_passphrase_decides() {
        assert!(pair(&AccessKey::open(), &AccessKey::open()).is_some());
        assert!(pair(&AccessKey::from_passphrase("a"), &AccessKey::open()).is_none());
    }

    #[test]
    fn a_first_packet_with_any_flipped_bit_is_a_strangers() {
        let psk = Psk::new(&AccessKey::open());
        let calling = Calling::new(&psk, b"hello").unwrap();
        for bit in 0..calling.first().len() * 8 {
            let mut packet = calling.first().to_vec();
            packet[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(psk.check_first(&packet), Err(Stranger));
        }
        for len in 0..calling.first().len() {
            assert_eq!(psk.check_first(&calling.first()[..len]), Err(Stranger));
        }
    }

    #[test]
    fn garbage_does_not_spoil_a_call() {
        let psk = Psk::new(&AccessKey::open());
        let mut calling = Calling::new(&psk, b"hello").unwrap();
        let (called, _) = Called::new(&psk, calling.first()).unwrap();
        let (packet, _) = called.answer(b"welcome").unwrap();
        for bit in 0..packet.len() * 8 {
            let mut flipped = packet.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(calling.on_answer(&flipped).is_err());
        }
        assert!(calling.on_answer(&[]).is_err());
        assert_eq!(calling.on_answer(&packet), Ok(b"welcome".to_vec()));
    }

    #[test]
    fn sealed_datagrams_open_in_any_order_and_damaged_ones_do_not() {
        let (mut client, mut server) = pair(&AccessKey::open(), &AccessKey::open()).unwrap();
        let datagram = |number: u16| [&number.to_le_bytes()[..], b"what a link sent"].concat();
        let sealed: Vec<Vec<u8>> = (0..100)
            .map(|number| {
                let mut out = vec![];
                client.seal(&datagram(number), &mut out);
                out
            })
            .collect();
        let mut out = vec![];
        for number in (0..100).rev() {
            assert!(server.open(&sealed[number], &mut out));
            assert_eq!(out, datagram(number as u16));
        }
        for bit in 0..sealed[5].len() * 8 {
            let mut flipped = sealed[5].clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!server.open(&flipped, &mut out));
        }
    }
}
