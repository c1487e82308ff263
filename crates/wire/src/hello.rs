//! The handshake: the first message of a link, with identity, intent and a proof of the passphrase, and its answer.
//!
//! ```text
//! Hello   magic "STCK" · version (u16) · seconds (u64) · nonce (16) · keyed hash (32) · postcard body
//! Answer  magic "STCK" · version (u16) · postcard body
//! ```
//! The head is the same in all versions, so that any two versions can tell each other that they differ.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::{BuildId, SchemaHash};
use serde::{Deserialize, Serialize};

use crate::access::{AccessKey, ProofId, Silence, Source, UsedProofs, check_time};
use crate::codec::{Malformed, Reader};

/// What every first message and its answer begin with.
pub const MAGIC: [u8; 4] = *b"STCK";

/// The version of everything this crate puts on the wire.
pub const VERSION: u16 = 1;

/// The longest name of a player, in bytes.
pub const MAX_NAME: usize = 48;

/// The longest name of a session or a room, in bytes.
pub const MAX_SESSION: usize = 64;

/// The longest pass, in bytes.
pub const MAX_PASS: usize = 128;

/// The longest first message: with the Noise handshake around it, it fits one datagram.
pub const MAX_HELLO: usize = 1_024;

/// The longest answer.
pub const MAX_ANSWER: usize = 512;

const STAMP_LEN: usize = 4 + 2 + 8 + 16;
const MAC_LEN: usize = 32;

/// What has to be equal on both sides before they can play together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The build of the simulation (L10).
    pub build: BuildId,
    /// The types on the wire (V3).
    pub schema: SchemaHash,
}

/// A client's request to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Measure the link.
    Ping,
    /// Join a session in lockstep.
    Join {
        /// Its name.
        session: String,
    },
    /// Join an authoritative room.
    Enter {
        /// Its name.
        room: String,
    },
}

impl Intent {
    /// The name of the session or room.
    fn place(&self) -> Option<&str> {
        match self {
            Intent::Ping => None,
            Intent::Join { session: place } | Intent::Enter { room: place } => Some(place),
        }
    }
}

/// The first message of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The client's build and schema.
    pub identity: Identity,
    /// The client's request.
    pub intent: Intent,
    /// The player's name.
    pub name: String,
    /// The pass that identifies the player, if the server has issued one. Only the server can decode it.
    pub pass: Option<Vec<u8>>,
}

/// The unique part of a first message: passed in, since this crate reads neither clocks nor randomness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The Unix time in seconds.
    pub unix_s: u64,
    /// From the operating system's randomness.
    pub nonce: [u8; 16],
}

/// The body on the wire; borrows, so that reading it allocates nothing.
#[derive(Serialize, Deserialize)]
struct Body<'a> {
    identity: Identity,
    #[serde(borrow)]
    intent: BodyIntent<'a>,
    name: &'a str,
    pass: Option<&'a [u8]>,
}

#[derive(Serialize, Deserialize)]
enum BodyIntent<'a> {
    Ping,
    Join { session: &'a str },
    Enter { room: &'a str },
}

/// Why a first message cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelloError {
    /// The player's name is longer than [`MAX_NAME`] bytes.
    NameTooLong,
    /// The name of the session or room is longer than [`MAX_SESSION`] bytes.
    SessionTooLong,
    /// The pass is longer than [`MAX_PASS`] bytes.
    PassTooLong,
}

impl core::fmt::Display for HelloError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            HelloError::NameTooLong => write!(f, "a player's name has at most {MAX_NAME} bytes"),
            HelloError::SessionTooLong => {
                write!(f, "the name of a session or room has at most {MAX_SESSION} bytes")
            }
            HelloError::PassTooLong => write!(f, "a pass has at most {MAX_PASS} bytes"),
        }
    }
}

impl core::error::Error for HelloError {}

impl Hello {
    /// Encodes a first message that proves `key`. Each one needs a stamp of its own.
    pub fn to_bytes(&self, key: &AccessKey, stamp: Stamp) -> Result<Vec<u8>, HelloError> {
        self.check_lengths()?;
        let body = Body {
            identity: self.identity,
            intent: match &self.intent {
                Intent::Ping => BodyIntent::Ping,
                Intent::Join { session } => BodyIntent::Join { session },
                Intent::Enter { room } => BodyIntent::Enter { room },
            },
            name: &self.name,
            pass: self.pass.as_deref(),
        };
        let mut out = Vec::with_capacity(MAX_HELLO);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&stamp.unix_s.to_le_bytes());
        out.extend_from_slice(&stamp.nonce);
        let body = postcard::to_allocvec(&body).expect("texts and arrays always serialise");
        let mac = key.hello_mac([&out, &body]);
        out.extend_from_slice(mac.as_bytes());
        out.extend_from_slice(&body);
        Ok(out)
    }

    fn check_lengths(&self) -> Result<(), HelloError> {
        if self.name.len() > MAX_NAME {
            return Err(HelloError::NameTooLong);
        }
        if self.intent.place().is_some_and(|place| place.len() > MAX_SESSION) {
            return Err(HelloError::SessionTooLong);
        }
        if self.pass.as_ref().is_some_and(|pass| pass.len() > MAX_PASS) {
            return Err(HelloError::PassTooLong);
        }
        Ok(())
    }

    fn from_body(bytes: &[u8]) -> Option<Hello> {
        let (body, rest) = postcard::take_from_bytes::<Body<'_>>(bytes).ok()?;
        let hello = Hello {
            identity: body.identity,
            intent: match body.intent {
                BodyIntent::Ping => Intent::Ping,
                BodyIntent::Join { session } => Intent::Join { session: session.into() },
                BodyIntent::Enter { room } => Intent::Enter { room: room.into() },
            },
            name: body.name.into(),
            pass: body.pass.map(Into::into),
        };
        (rest.is_empty() && hello.check_lengths().is_ok()).then_some(hello)
    }
}

/// Why a server refuses a client whose proof is valid. Names both sides' values, so that a person can act on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The protocols differ.
    Version {
        /// The server's.
        server: u16,
        /// The client's.
        client: u16,
    },
    /// The simulations differ.
    Build {
        /// The server's.
        server: BuildId,
        /// The client's.
        client: BuildId,
    },
    /// The types on the wire differ.
    Schema {
        /// The server's.
        server: SchemaHash,
        /// The client's.
        client: SchemaHash,
    },
    /// Something else, in a sentence of at most [`MAX_REFUSAL_TEXT`] bytes.
    Other(String),
}

/// The longest sentence in a refusal.
pub const MAX_REFUSAL_TEXT: usize = 300;

/// The end of a sentence that was cut.
const CUT: &str = "…";

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Refusal::Version { server, client } => {
                write!(f, "the server speaks protocol version {server}, this client version {client}")
            }
            Refusal::Build { server, client } => {
                write!(f, "the server runs build {server}, this client build {client}")
            }
            Refusal::Schema { server, client } => {
                write!(f, "the server's schema is {server}, this client's {client}")
            }
            Refusal::Other(text) => f.write_str(text),
        }
    }
}

impl Identity {
    /// The refusal for a client whose identity differs from this, the server's.
    pub fn refusal(&self, client: &Identity) -> Option<Refusal> {
        if self.build != client.build {
            Some(Refusal::Build { server: self.build, client: client.build })
        } else if self.schema != client.schema {
            Some(Refusal::Schema { server: self.schema, client: client.schema })
        } else {
            None
        }
    }
}

/// A server's answer to a first message with a valid proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The link is open.
    Welcome,
    /// It is not, for this reason.
    Refused(Refusal),
}

impl Answer {
    /// Encodes the answer. A sentence that is too long is cut.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(MAX_ANSWER);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        let cut = match self {
            Answer::Refused(Refusal::Other(text)) if text.len() > MAX_REFUSAL_TEXT => {
                let longest = MAX_REFUSAL_TEXT - CUT.len();
                let end = (0..=longest).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
                &Answer::Refused(Refusal::Other(format!("{}{CUT}", &text[..end])))
            }
            whole => whole,
        };
        postcard::to_extend(cut, out).expect("texts and arrays always serialise")
    }

    /// Decodes an answer. One of another version reads as a refusal that says so.
    pub fn from_bytes(bytes: &[u8]) -> Result<Answer, Malformed> {
        if bytes.len() > MAX_ANSWER {
            return Err(Malformed::TooLong);
        }
        let mut reader = Reader::new(bytes);
        if reader.array()? != MAGIC {
            return Err(Malformed::UnknownKind);
        }
        let server = reader.u16()?;
        if server != VERSION {
            return Ok(Answer::Refused(Refusal::Version { server, client: VERSION }));
        }
        match postcard::take_from_bytes(reader.rest()) {
            Ok((Answer::Refused(Refusal::Other(text)), _)) if text.len() > MAX_REFUSAL_TEXT => {
                Err(Malformed::TooLong)
            }
            Ok((answer, [])) => Ok(answer),
            _ => Err(Malformed::Forbidden(
                "an answer to a hello is of a known kind and ends where its fields end",
            )),
        }
    }
}

/// A server's reaction to a first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HelloOutcome {
    /// The proof is valid: decide on the hello, then answer.
    Proven(Proven),
    /// The proof is valid, but the link is impossible: send this answer and forget the client.
    Refused(Refusal),
    /// Send no answer at all.
    Silent(Silence),
}

/// A first message with a valid proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proven {
    /// The message.
    pub hello: Hello,
    /// The proof, if it still has to be [spent](HelloVerifier::spend) once the client has proven its address.
    pub unspent: Option<ProofId>,
}

/// The server's side of the handshake: checks proofs and remembers them.
///
/// With a passphrase a proof is spent before anything is answered. Without one any client can make any number of
/// proofs, from spoofed addresses: there a proof is spent when its source is proven, and nothing is remembered before.
#[derive(Clone, Debug)]
pub struct HelloVerifier {
    key: AccessKey,
    is_open: bool,
    used: UsedProofs,
    fresh: Vec<ProofId>,
}

impl HelloVerifier {
    /// A verifier for proofs of `key`.
    pub fn new(key: AccessKey) -> HelloVerifier {
        let is_open = key == AccessKey::open();
        HelloVerifier { key, is_open, used: UsedProofs::default(), fresh: Vec::new() }
    }

    /// Changes the passphrase. Links that are open stay open.
    pub fn set_key(&mut self, key: AccessKey) {
        self.is_open = key == AccessKey::open();
        self.key = key;
    }

    /// The present key.
    pub fn key(&self) -> &AccessKey {
        &self.key
    }

    /// Whether there is no passphrase.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Restores a proof that was spent before a restart, unless it is stale.
    pub fn restore(&mut self, unix_s: u64, noted: ProofId) {
        self.used.restore(unix_s, noted);
    }

    /// The proofs spent since the last call, to be stored before anything is answered.
    pub fn take_fresh(&mut self) -> Vec<ProofId> {
        core::mem::take(&mut self.fresh)
    }

    /// All proofs that have to survive a restart.
    pub fn used(&self) -> &UsedProofs {
        &self.used
    }

    /// Checks the proof in a native QUIC client's first connection id. Without a passphrase it is not remembered: the
    /// handshake that follows cannot be replayed, and the first message in it is remembered.
    pub fn check_connection_id(&mut self, unix_s: u64, source: Source, id: &[u8]) -> Result<(), Silence> {
        let proof = self.key.check_connection_id(unix_s, id)?;
        if self.must_wait(source) { Ok(()) } else { self.spend(unix_s, source, proof) }
    }

    /// Spends a proof, which succeeds once.
    pub fn spend(&mut self, unix_s: u64, source: Source, proof: ProofId) -> Result<(), Silence> {
        let noted = self.used.note(unix_s, source, proof)?;
        self.fresh.push(noted);
        Ok(())
    }

    /// Whether the proof is spent later, once the source is proven.
    fn must_wait(&self, source: Source) -> bool {
        self.is_open && !source.is_proven
    }

    /// Checks a first message: form and proof before anything else.
    pub fn knock(&mut self, unix_s: u64, source: Source, bytes: &[u8]) -> HelloOutcome {
        match self.prove(unix_s, source, bytes) {
            Err(silence) => HelloOutcome::Silent(silence),
            Ok((client, ..)) if client != VERSION => {
                HelloOutcome::Refused(Refusal::Version { server: VERSION, client })
            }
            Ok((_, body, unspent)) => match Hello::from_body(body) {
                Some(hello) => HelloOutcome::Proven(Proven { hello, unspent }),
                None => HelloOutcome::Refused(Refusal::Other("the first message cannot be read".into())),
            },
        }
    }

    /// Checks the head, which is the same in every version. Returns the version, the body, and the proof if it is not
    /// spent yet.
    fn prove<'a>(
        &mut self,
        unix_s: u64,
        source: Source,
        bytes: &'a [u8],
    ) -> Result<(u16, &'a [u8], Option<ProofId>), Silence> {
        let no_proof = |_| Silence::NoProof;
        let mut reader = Reader::new(bytes);
        let stamped = Reader::new(bytes).take(STAMP_LEN).map_err(no_proof)?;
        if bytes.len() > MAX_HELLO || reader.array().map_err(no_proof)? != MAGIC {
            return Err(Silence::NoProof);
        }
        let version = reader.u16().map_err(no_proof)?;
        let stamped_s = reader.u64().map_err(no_proof)?;
        let id = reader.array().map_err(no_proof)?;
        let mac = reader.array::<MAC_LEN>().map_err(no_proof)?;
        // The comparison of blake3's hashes takes constant time.
        if self.key.hello_mac([stamped, reader.rest()]) != mac {
            return Err(Silence::NoProof);
        }
        check_time(unix_s, stamped_s)?;
        let proof = ProofId { id, stamped_s };
        let unspent = self.must_wait(source).then_some(proof);
        match unspent {
            Some(proof) => self.used.check(proof)?,
            None => self.spend(unix_s, source, proof)?,
        }
        Ok((version, reader.rest(), unspent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: u64 = 1_800_000_000;

    const SOURCE: Source = Source::proven(core::net::IpAddr::V4(core::net::Ipv4Addr::LOCALHOST));

    fn stamp(n: u8) -> Stamp {
        Stamp { unix_s: NOW, nonce: [n; 16] }
    }

    fn identity(n: u8) -> Identity {
        Identity { build: BuildId::from_bytes([n; 16]), schema: SchemaHash::from_bytes([n; 32]) }
    }

    fn hello() -> Hello {
        let intent = Intent::Join { session: "den".into() };
        Hello { identity: identity(2), intent, name: "ada".into(), pass: None }
    }

    #[test]
    fn golden_hello() {
        let bytes = hello().to_bytes(&AccessKey::open(), stamp(9)).unwrap();
        let (head, rest) = bytes.split_at(STAMP_LEN);
        let mut golden = b"STCK\x01\x00\x00\xd2\x49\x6b\x00\x00\x00\x00".to_vec();
        golden.extend([9; 16]);
        assert_eq!(head, golden);
        let mut golden = alloc::vec![2; 16 + 32];
        golden.extend(b"\x01\x03den\x03ada\x00");
        assert_eq!(rest[MAC_LEN..], golden);
        let enter = Hello { intent: Intent::Enter { room: "den".into() }, ..hello() };
        let bytes = enter.to_bytes(&AccessKey::open(), stamp(9)).unwrap();
        golden[16 + 32] = 2;
        assert_eq!(bytes[STAMP_LEN + MAC_LEN..], golden);
    }

    #[test]
    fn golden_answers() {
        assert_eq!(Answer::Welcome.to_bytes(), b"STCK\x01\x00\x00");
        let refused = Answer::Refused(Refusal::Version { server: 1, client: 300 });
        assert_eq!(refused.to_bytes(), b"STCK\x01\x00\x01\x00\x01\xac\x02");
    }

    #[test]
    fn a_good_proof_is_answered_once() {
        let mut door = HelloVerifier::new(AccessKey::open());
        let bytes = hello().to_bytes(&AccessKey::open(), stamp(1)).unwrap();
        assert_eq!(
            door.knock(NOW, SOURCE, &bytes),
            HelloOutcome::Proven(Proven { hello: hello(), unspent: None })
        );
        assert_eq!(door.knock(NOW, SOURCE, &bytes), HelloOutcome::Silent(Silence::Replayed));
        let mut restarted = HelloVerifier::new(AccessKey::open());
        door.take_fresh().into_iter().for_each(|proof| restarted.restore(NOW, proof));
        assert_eq!(restarted.knock(NOW, SOURCE, &bytes), HelloOutcome::Silent(Silence::Replayed));
        assert_eq!(restarted.knock(NOW + 500, SOURCE, &bytes), HelloOutcome::Silent(Silence::Stale));
    }

    #[test]
    fn without_a_passphrase_unproven_sources_use_no_memory() {
        let made_up = Source { is_proven: false, ..SOURCE };
        let (open, locked) = (AccessKey::open(), AccessKey::from_passphrase("shut"));
        for (key, is_open) in [(open, true), (locked, false)] {
            let mut door = HelloVerifier::new(key.clone());
            let bytes = hello().to_bytes(&key, stamp(1)).unwrap();
            let HelloOutcome::Proven(Proven { unspent, .. }) = door.knock(NOW, made_up, &bytes) else {
                panic!()
            };
            let id = key.connection_id(NOW, [1; 6]);
            assert_eq!(door.check_connection_id(NOW, made_up, &id), Ok(()));
            assert_eq!((unspent.is_some(), door.take_fresh().len()), (is_open, if is_open { 0 } else { 2 }));
            // Once spent, it is invalid for every client.
            if let Some(proof) = unspent {
                assert!(matches!(door.knock(NOW, made_up, &bytes), HelloOutcome::Proven(_)));
                assert_eq!(door.spend(NOW, SOURCE, proof), Ok(()));
                assert_eq!(door.spend(NOW, SOURCE, proof), Err(Silence::Replayed));
            }
            assert_eq!(door.knock(NOW, made_up, &bytes), HelloOutcome::Silent(Silence::Replayed));
        }
    }

    #[test]
    fn after_a_change_the_old_passphrase_is_refused() {
        let mut door = HelloVerifier::new(AccessKey::open());
        door.set_key(AccessKey::from_passphrase("new"));
        let bytes = hello().to_bytes(&AccessKey::open(), stamp(1)).unwrap();
        assert_eq!(door.knock(NOW, SOURCE, &bytes), HelloOutcome::Silent(Silence::NoProof));
        let bytes = hello().to_bytes(&AccessKey::from_passphrase("new"), stamp(2)).unwrap();
        assert!(matches!(door.knock(NOW, SOURCE, &bytes), HelloOutcome::Proven(_)));
    }

    #[test]
    fn differences_name_both_sides() {
        let (server, client) = (identity(1), identity(2));
        let text = server.refusal(&client).unwrap();
        assert_eq!(
            format!("{text}"),
            "the server runs build 01010101010101010101010101010101, this client build 02020202020202020202020202020202"
        );
        let schema = Identity { build: server.build, ..client };
        assert!(matches!(server.refusal(&schema), Some(Refusal::Schema { .. })));
        assert_eq!(server.refusal(&server), None);
    }

    #[test]
    fn another_version_is_told_so_in_both_directions() {
        let mut bytes = hello().to_bytes(&AccessKey::open(), stamp(1)).unwrap();
        bytes[4] = 9;
        let mac = AccessKey::open().hello_mac([&bytes[..STAMP_LEN], &bytes[STAMP_LEN + MAC_LEN..]]);
        bytes[STAMP_LEN..STAMP_LEN + MAC_LEN].copy_from_slice(mac.as_bytes());
        let refusal = Refusal::Version { server: VERSION, client: 9 };
        assert_eq!(
            HelloVerifier::new(AccessKey::open()).knock(NOW, SOURCE, &bytes),
            HelloOutcome::Refused(refusal)
        );
        let answer = Answer::from_bytes(b"STCK\x07\x00whatever version 7 says");
        assert_eq!(answer, Ok(Answer::Refused(Refusal::Version { server: 7, client: VERSION })));
    }

    #[test]
    fn texts_that_are_too_long_are_refused_here_and_there() {
        let long = Hello { name: "x".repeat(MAX_NAME + 1), ..hello() };
        assert_eq!(long.to_bytes(&AccessKey::open(), stamp(1)), Err(HelloError::NameTooLong));
        let long = "r".repeat(MAX_SESSION + 1);
        for intent in [Intent::Join { session: long.clone() }, Intent::Enter { room: long }] {
            let long = Hello { intent, ..hello() };
            assert_eq!(long.to_bytes(&AccessKey::open(), stamp(1)), Err(HelloError::SessionTooLong));
        }
        let longest = Hello {
            intent: Intent::Join { session: "s".repeat(MAX_SESSION) },
            name: "n".repeat(MAX_NAME),
            pass: Some(alloc::vec![0; MAX_PASS]),
            ..hello()
        };
        assert!(longest.to_bytes(&AccessKey::open(), stamp(1)).unwrap().len() <= MAX_HELLO);
        let long = Hello { pass: Some(alloc::vec![0; MAX_PASS + 1]), ..hello() };
        assert_eq!(long.to_bytes(&AccessKey::open(), stamp(1)), Err(HelloError::PassTooLong));
        let answer = Answer::Refused(Refusal::Other("é".repeat(1_000)));
        assert!(answer.to_bytes().len() <= MAX_ANSWER);
        let Ok(Answer::Refused(Refusal::Other(text))) = Answer::from_bytes(&answer.to_bytes()) else {
            panic!("a cut sentence can be read");
        };
        assert!(text.len() <= MAX_REFUSAL_TEXT && text.ends_with("éé…"), "{text}");
        let body = postcard::to_allocvec(&Answer::Refused(Refusal::Other("x".repeat(MAX_REFUSAL_TEXT + 1))));
        let bytes = [&MAGIC[..], &VERSION.to_le_bytes(), &body.unwrap()].concat();
        assert_eq!(Answer::from_bytes(&bytes), Err(Malformed::TooLong));
    }

    proptest! {
        #[test]
        fn hellos_round_trip(
            name in ".{0,12}", place: Option<(bool, String)>, pass: Option<Vec<u8>>, nonce: [u8; 16],
        ) {
            let intent = match place {
                None => Intent::Ping,
                Some((false, session)) => Intent::Join { session },
                Some((true, room)) => Intent::Enter { room },
            };
            let hello = Hello { identity: identity(3), intent, name, pass };
            let mut door = HelloVerifier::new(AccessKey::open());
            match hello.to_bytes(&AccessKey::open(), Stamp { unix_s: NOW, nonce }) {
                Ok(bytes) => prop_assert_eq!(door.knock(NOW, SOURCE, &bytes), HelloOutcome::Proven(Proven { hello, unspent: None })),
                Err(_) => prop_assert!(hello.check_lengths().is_err()),
            }
        }

        #[test]
        fn answers_round_trip(text in ".{0,60}", server: u16, client: u16) {
            for refusal in [Refusal::Other(text), Refusal::Version { server, client }] {
                let answer = Answer::Refused(refusal);
                prop_assert_eq!(Answer::from_bytes(&answer.to_bytes()), Ok(answer));
            }
        }

        #[test]
        fn a_flipped_bit_or_a_cut_gets_silence(flip in 0usize..1_000, cut in 0usize..200) {
            let bytes = hello().to_bytes(&AccessKey::open(), stamp(1)).unwrap();
            let mut flipped = bytes.clone();
            flipped[flip / 8 % bytes.len()] ^= 1 << (flip % 8);
            let mut door = HelloVerifier::new(AccessKey::open());
            prop_assert_eq!(door.knock(NOW, SOURCE, &flipped), HelloOutcome::Silent(Silence::NoProof));
            let cut = &bytes[..cut.min(bytes.len() - 1)];
            prop_assert_eq!(door.knock(NOW, SOURCE, cut), HelloOutcome::Silent(Silence::NoProof));
        }
    }
}
