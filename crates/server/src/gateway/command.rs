//! Starts a gateway: the address for hosts, and the host processes to start.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;

use sametick_session::fleet::{FleetConfig, PORTS, SPARE};
use sametick_sim::Time;
use sametick_transport::control_connection::ControlConnections;
use sametick_transport::hub_waker::HubWaker;
use tokio::net::TcpListener;

use super::GatewaySide;
use super::catalog::{FILE, Kept};
use super::lists::Lists;
use super::processes::{HOSTS, Launch, Processes};
use crate::games::Games;
use crate::hosting::folder::replace;
use crate::secret::kept_key;

/// The shared key of hosts and gateways, in the folder of hosts.
pub(crate) const KEY: &str = "key";

/// The file in that folder with the address of this data folder's gateway.
pub(crate) const WHERE: &str = "gateway";

/// The ports of the hosts that this gateway starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPorts {
    /// The hosts use these ports.
    On(RangeInclusive<u16>),
    /// The gateway starts no hosts.
    Off,
}

impl Default for HostPorts {
    fn default() -> HostPorts {
        HostPorts::On(PORTS)
    }
}

impl FromStr for HostPorts {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<HostPorts, Self::Err> {
        let range = || {
            let (first, last) = text.split_once('-')?;
            let range: RangeInclusive<u16> = first.trim().parse().ok()?..=last.trim().parse().ok()?;
            (!range.is_empty() && *range.start() > 0).then_some(range)
        };
        match text {
            "off" => Ok(HostPorts::Off),
            _ => range().map(HostPorts::On).ok_or("a range of ports such as 8081-8180, or \"off\""),
        }
    }
}

impl std::fmt::Display for HostPorts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HostPorts::On(ports) => write!(f, "{}-{}", ports.start(), ports.end()),
            HostPorts::Off => f.write_str("off"),
        }
    }
}

/// The configuration of a gateway.
pub(crate) struct Gatewaying<'a> {
    /// The address that hosts connect to.
    pub hosts: SocketAddr,
    pub ports: HostPorts,
    pub spare: Option<usize>,
    pub data: &'a Path,
    /// The command that starts hosts.
    pub launch: Launch,
    pub lists: Lists,
    /// The games of which sessions can be created.
    pub games: Games,
}

impl Gatewaying<'_> {
    /// Starts the gateway; hosts can find it from then on.
    pub async fn start(self, now: Time, waker: HubWaker) -> io::Result<GatewaySide> {
        let folder = self.data.join(HOSTS);
        std::fs::create_dir_all(&folder)?;
        let key = kept_key(&folder.join(KEY))?;
        let listener = TcpListener::bind(self.hosts).await.map_err(|error| {
            let why =
                format!("cannot listen for hosts on {}: {error}; choose another with --hosts", self.hosts);
            io::Error::new(error.kind(), why)
        })?;
        replace(&folder.join(WHERE), listener.local_addr()?.to_string().as_bytes())?;
        let connections = ControlConnections::listen(listener, key, waker.clone());
        let processes = match self.ports {
            HostPorts::On(ports) => {
                let config = FleetConfig { ports, spare: self.spare.unwrap_or(SPARE) };
                Some(Processes::new(now, config, self.data, self.launch, waker))
            }
            HostPorts::Off => None,
        };
        let catalog = Kept::open(now, &folder.join(FILE));
        Ok(GatewaySide::new(now, connections, catalog, processes, (self.lists, self.games)))
    }
}

/// Adds an option of a host that follows from a setting of the gateway.
pub(crate) fn option(args: &mut Vec<OsString>, name: &str, value: Option<impl Into<OsString>>) {
    if let Some(value) = value {
        args.push(name.into());
        args.push(value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_a_range_or_off() {
        assert_eq!("8081-8180".parse(), Ok(HostPorts::On(8081..=8180)));
        assert_eq!("off".parse(), Ok(HostPorts::Off));
        assert_eq!(HostPorts::default().to_string(), "8081-8180");
        for bad in ["", "8081", "9-8", "0-5", "1-70000", "a-b"] {
            assert!(bad.parse::<HostPorts>().is_err(), "{bad}");
        }
    }
}
