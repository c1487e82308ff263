//! Ids of hosts, sessions and requests, as they appear in messages, links and files.

use alloc::string::String;
use core::fmt;

use sametick_wire::hex;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A host: a process that runs sessions. Its operator or its gateway assigns the number, which survives restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostId(pub u32);

/// An incarnation of a host: the number grows by one each time its process starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Incarnation(pub u32);

/// A session id. Only the session's host creates it, and it names that host.
///
/// Its last half cannot be guessed without the host's secret: an unlisted session is found only through its link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    /// The host that has created it.
    pub host: HostId,
    /// The incarnation of the host in which it was created.
    pub born: Incarnation,
    /// Tells it apart from the other sessions of that incarnation.
    pub mark: u64,
}

impl SessionId {
    /// The 16 bytes that are written as 32 hexadecimal digits.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        let parts = self.host.0.to_be_bytes().into_iter().chain(self.born.0.to_be_bytes());
        bytes.iter_mut().zip(parts.chain(self.mark.to_be_bytes())).for_each(|(to, from)| *to = from);
        bytes
    }

    /// Reads the 16 bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> SessionId {
        let whole = u128::from_be_bytes(bytes);
        SessionId {
            host: HostId((whole >> 96) as u32),
            born: Incarnation((whole >> 64) as u32),
            mark: whole as u64,
        }
    }

    /// Reads 32 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<SessionId> {
        hex::from_hex(text).map(SessionId::from_bytes)
    }
}

/// An idempotency key: a request with the same key is done once. The client makes it from random bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// Reads 32 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Key> {
        hex::from_hex(text).map(Key)
    }
}

/// The source of a connection, for rate limits: a hash of its network. The driver makes it and never shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Source(pub u64);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::to_hex(&self.to_bytes()))
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({self})")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", hex::to_hex(&self.0))
    }
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 16], D::Error> {
    let text = String::deserialize(deserializer)?;
    hex::from_hex(&text).ok_or_else(|| D::Error::custom("32 hexadecimal digits were expected"))
}

impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::to_hex(&self.to_bytes()))
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer).map(SessionId::from_bytes)
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::to_hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer).map(Key)
    }
}

/// Serialises a player id as digits, as everywhere else.
pub mod player {
    use super::{Deserializer, Serializer, hex, read};
    use sametick_wire::identity::PlayerId;

    /// Writes one.
    pub fn serialize<S: Serializer>(player: &PlayerId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::to_hex(&player.to_bytes()))
    }

    /// Reads one.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PlayerId, D::Error> {
        read(deserializer).map(PlayerId::from_bytes)
    }
}

/// Serialises an optional player id.
pub mod maybe_player {
    use super::{Deserialize, Deserializer, Serialize, Serializer, player};
    use sametick_wire::identity::PlayerId;

    #[derive(Serialize, Deserialize)]
    struct Digits(#[serde(with = "player")] PlayerId);

    /// Writes it.
    pub fn serialize<S: Serializer>(player: &Option<PlayerId>, serializer: S) -> Result<S::Ok, S::Error> {
        player.map(Digits).serialize(serializer)
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PlayerId>, D::Error> {
        Ok(Option::<Digits>::deserialize(deserializer)?.map(|Digits(player)| player))
    }
}

/// Serialises a list of player ids.
pub mod players {
    use super::{Deserialize, Deserializer, Serialize, Serializer, player};
    use alloc::vec::Vec;
    use sametick_wire::identity::PlayerId;

    #[derive(Serialize, Deserialize)]
    struct Digits(#[serde(with = "player")] PlayerId);

    /// Writes them.
    pub fn serialize<S: Serializer>(players: &[PlayerId], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(players.iter().copied().map(Digits))
    }

    /// Reads them.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PlayerId>, D::Error> {
        let digits = Vec::<Digits>::deserialize(deserializer)?;
        Ok(digits.into_iter().map(|Digits(player)| player).collect())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_session_id_has_the_host_its_incarnation_and_a_random_part() {
        let id = SessionId { host: HostId(0x0102), born: Incarnation(3), mark: 0xfeed_0000_0000_0001 };
        let text = "0000010200000003feed000000000001";
        assert_eq!(id.to_string(), text);
        assert_eq!(SessionId::from_hex(text), Some(id));
        assert_eq!(serde_json::to_string(&id).unwrap(), alloc::format!("\"{text}\""));
        assert_eq!(serde_json::from_str::<SessionId>(&alloc::format!("\"{text}\"")).unwrap(), id);
        assert!(serde_json::from_str::<SessionId>("\"01\"").is_err());
    }
}
