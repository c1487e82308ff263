//! The hosts that `sametick up` starts, with settings derived from its own.

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use super::{Role, Settings};
use crate::games::Games;
use crate::gateway::command::{Gatewaying, HostPorts, option};
use crate::gateway::lists::Lists;
use crate::gateway::processes::Launch;

impl Settings {
    /// The gateway of these settings. A gateway alone starts hosts only if the settings name their ports.
    pub(super) fn gatewaying<'a>(
        &self,
        role: Role,
        data: &'a Path,
        (lists, games): (Lists, Games),
        pages_port: u16,
    ) -> io::Result<Gatewaying<'a>> {
        let usual = if role == Role::Gateway { HostPorts::Off } else { HostPorts::default() };
        let here = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        Ok(Gatewaying {
            hosts: self.hosts.hosts.unwrap_or(here),
            ports: self.hosts.host_ports.clone().unwrap_or(usual),
            spare: self.hosts.spare_hosts,
            data,
            launch: self.launch(data, pages_port)?,
            lists,
            games,
        })
    }

    fn launch(&self, data: &Path, pages_port: u16) -> io::Result<Launch> {
        let mut args: Vec<OsString> = vec!["host".into(), "--started".into()];
        option(&mut args, "--data", Some(data.as_os_str()));
        option(&mut args, "--pages-port", Some(pages_port.to_string()));
        option(&mut args, "--tls-cert", self.tls_cert.clone());
        option(&mut args, "--tls-key", self.tls_key.clone());
        option(&mut args, "--secret-file", self.secret_file.clone());
        option(&mut args, "--store", self.relay.store.as_ref().map(ToString::to_string));
        option(&mut args, "--keep-sessions", self.relay.keep_sessions.map(|sessions| sessions.to_string()));
        option(&mut args, "--ticks-per-packet", self.relay.ticks_per_packet.map(|ticks| ticks.to_string()));
        self.relay.keeper.iter().for_each(|game| option(&mut args, "--keeper", Some(game)));
        option(&mut args, "--per-address", self.per_address.map(|most| most.to_string()));
        self.origin.iter().for_each(|origin| option(&mut args, "--origin", Some(origin)));
        args.extend(self.behind_proxy.then(|| "--behind-proxy".into()));
        let (program, address) = (std::env::current_exe()?, self.hosts.host_address.clone());
        let ip = self.doors().ip;
        Ok(Launch { program, args, ip, address })
    }
}
