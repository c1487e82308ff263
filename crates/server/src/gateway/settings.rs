//! Settings of a gateway for its hosts, from the command line or a file.

use std::net::SocketAddr;

use clap::Args;
use sametick_session::fleet::{PORTS, SPARE};

use super::command::HostPorts;

/// The placeholder of the port in an address.
pub(crate) const PORT: &str = "{port}";

/// The settings of hosts.
#[derive(Clone, Debug, Default, Args)]
pub struct HostsArgs {
    /// The address that hosts call; those on other machines have to reach it [default: 127.0.0.1, any free port]
    #[arg(long, value_name = "IP:PORT")]
    pub hosts: Option<SocketAddr>,

    /// The ports of hosts that are started here, one for each session; "off" starts none [default: 8081-8180]
    #[arg(long, value_name = "FIRST-LAST")]
    pub host_ports: Option<HostPorts>,

    /// How many hosts without a session are kept ready once a visitor looks for one [default: 2]
    #[arg(long, value_name = "N")]
    pub spare_hosts: Option<usize>,

    /// What players are told to connect to, such as `wss://example.org:{port}` [default: the name and scheme of the page]
    #[arg(long, value_name = "URL", value_parser = template)]
    pub host_address: Option<String>,
}

fn template(text: &str) -> Result<String, &'static str> {
    if !text.contains(PORT) {
        return Err("an address with {port} in it, such as wss://example.org:{port}");
    }
    crate::hosting::command::address(&text.replace(PORT, "1")).map(|_| text.to_owned())
}

impl HostsArgs {
    /// These settings, with `below` as defaults.
    #[must_use]
    pub fn over(self, below: HostsArgs) -> HostsArgs {
        HostsArgs {
            hosts: self.hosts.or(below.hosts),
            host_ports: self.host_ports.or(below.host_ports),
            spare_hosts: self.spare_hosts.or(below.spare_hosts),
            host_address: self.host_address.or(below.host_address),
        }
    }

    /// A setting as text, if it is given; `None` if there is no such setting.
    pub fn value(&self, name: &str) -> Option<Option<String>> {
        match name {
            "hosts" => Some(self.hosts.map(|hosts| hosts.to_string())),
            "host-ports" => Some(self.host_ports.as_ref().map(ToString::to_string)),
            "spare-hosts" => Some(self.spare_hosts.map(|spare| spare.to_string())),
            "host-address" => Some(self.host_address.clone()),
            _ => None,
        }
    }

    /// An example value for a setting.
    pub fn example(name: &str) -> Option<String> {
        match name {
            "hosts" => Some("0.0.0.0:8079".into()),
            "host-ports" => Some(format!("{}-{}", PORTS.start(), PORTS.end())),
            "spare-hosts" => Some(SPARE.to_string()),
            "host-address" => Some(format!("wss://example.org:{PORT}")),
            _ => None,
        }
    }
}
