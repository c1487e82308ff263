//! Names of hosts, sessions and requests, as they stand in messages, links and files.

use alloc::string::String;
use core::fmt;

use sametick_wire::hex;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A host: a place where sessions run. Its operator or the gateway that starts it gives it, and it keeps it over restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostId(pub u32);

/// Which life of a host: one more each time its process starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Incarnation(pub u32);

/// A session. Only its host makes one, and everybody can see from it which host that is.
///
/// Its last half cannot be guessed by who does not know the host's secret: a session that is in no list is found only by those
/// who were given its link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    /// Whose it is.
    pub host: HostId,
    /// In which life of the host it began.
    pub born: Incarnation,
    /// Tells it from the others of that life.
    pub mark: u64,
}

impl SessionId {
    /// As it is written: 32 hexadecimal digits.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        let parts = self.host.0.to_be_bytes().into_iter().chain(self.born.0.to_be_bytes());
        bytes.iter_mut().zip(parts.chain(self.mark.to_be_bytes())).for_each(|(to, from)| *to = from);
        bytes
    }

    /// From what was written.
    pub fn from_bytes(bytes: [u8; 16]) -> SessionId {
        let whole = u128::from_be_bytes(bytes);
        SessionId {
            host: HostId((whole >> 96) as u32),
            born: Incarnation((whole >> 64) as u32),
            mark: whole as u64,
        }
    }

    /// From 32 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<SessionId> {
        hex::from_hex(text).map(SessionId::from_bytes)
    }
}

/// A request, so that it is done once however often it arrives. Whoever asks makes it up, from random bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// From 32 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Key> {
        hex::from_hex(text).map(Key)
    }
}

/// Where somebody comes from, for limits: a hash of their network. The driver makes it, and shows it to nobody.
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

/// A player in messages and snapshots: digits, as everywhere else.
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

/// Perhaps a player.
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

/// Players.
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
    fn a_session_is_named_by_its_host_the_hosts_life_and_something_nobody_guesses() {
        let id = SessionId { host: HostId(0x0102), born: Incarnation(3), mark: 0xfeed_0000_0000_0001 };
        let text = "0000010200000003feed000000000001";
        assert_eq!(id.to_string(), text);
        assert_eq!(SessionId::from_hex(text), Some(id));
        assert_eq!(serde_json::to_string(&id).unwrap(), alloc::format!("\"{text}\""));
        assert_eq!(serde_json::from_str::<SessionId>(&alloc::format!("\"{text}\"")).unwrap(), id);
        assert!(serde_json::from_str::<SessionId>("\"01\"").is_err());
    }
}
