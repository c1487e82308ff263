//! Starts the host processes of this machine, notices their end, and kills those that do not end.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, channel};

use sametick_session::fleet::{Fleet, FleetConfig, Input, Output};
use sametick_sim::Time;
use sametick_transport::hub_waker::HubWaker;
use tokio::process::Command;

use super::settings::PORT;
use crate::hosting::Downward;
use crate::hosting::folder::glance;

/// How often the gateway checks whether a host that it adopted still runs.
const LOOK_EVERY_US: u64 = 1_000_000;

/// The folder with the folders of hosts, below the data folder.
pub(crate) const HOSTS: &str = "hosts";

/// The fleet of host processes and its driver.
pub(crate) struct Processes {
    fleet: Fleet,
    folder: PathBuf,
    /// The command that starts a host, without the port.
    command: Launch,
    /// Channels that end the processes started by this gateway.
    children: HashMap<u16, tokio::sync::oneshot::Sender<()>>,
    exits: Receiver<u16>,
    sender: Sender<u16>,
    waker: HubWaker,
    /// The deadline for running games once the gateway ends.
    end_at: Option<Time>,
    look_at: Time,
    wake_at: Option<Time>,
    is_done: bool,
    spare: usize,
}

/// How to start a host.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub program: PathBuf,
    pub args: Vec<std::ffi::OsString>,
    /// The address that a host listens on, without the port.
    pub ip: IpAddr,
    /// The address that players are told, with a placeholder for the port.
    pub address: Option<String>,
}

impl Processes {
    /// A fleet with its folders below this data folder.
    pub fn new(now: Time, config: FleetConfig, data: &Path, command: Launch, waker: HubWaker) -> Processes {
        let spare = config.spare;
        let config = FleetConfig { spare: 0, ..config };
        let (sender, exits) = channel();
        let folder = data.join(HOSTS);
        let mut fleet = Fleet::new(now, config.clone());
        for port in config.ports {
            let seen = glance(&folder.join(port.to_string()));
            if seen.is_running || seen.has_sessions {
                let (is_up, has_sessions) = (seen.is_running, seen.has_sessions);
                fleet.handle(now, Input::Found { port, is_up, has_sessions });
            }
        }
        Processes {
            fleet,
            folder,
            command,
            children: HashMap::new(),
            exits,
            sender,
            waker,
            end_at: None,
            look_at: now,
            wake_at: Some(now),
            is_done: false,
            spare,
        }
    }

    /// The next wake time.
    pub fn wake_at(&self) -> Option<Time> {
        let look = (!self.is_done).then_some(self.look_at);
        self.wake_at.into_iter().chain(look).min()
    }

    /// Whether all hosts have ended after [`Processes::end`].
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Starts the first hosts.
    pub fn begin(&mut self, now: Time) {
        self.fleet.handle(now, Input::Timeout);
    }

    /// Ends all hosts; running games may go on for `within_us`.
    pub fn end(&mut self, now: Time, within_us: u64) {
        let at = now.plus_micros(within_us);
        self.end_at = Some(self.end_at.map_or(at, |earlier| earlier.min(at)));
        self.fleet.handle(now, Input::Drain);
    }

    /// A visitor looks for a session: from now on spare hosts are kept ready.
    pub fn wake(&mut self, now: Time) {
        self.fleet.handle(now, Input::Spare(self.spare));
    }

    /// Sets how many sessions wait for a host.
    pub fn wanted(&mut self, now: Time, wanted: usize) {
        self.fleet.handle(now, Input::Wanted(wanted));
    }

    /// Handles a status report of a host.
    pub fn heard(&mut self, now: Time, port: u16, sessions: usize, is_draining: bool) {
        self.fleet.handle(now, Input::Heard { port, sessions, is_draining });
    }

    /// Carries out the fleet's outputs. Returns which hosts to tell to end, and how.
    pub fn carry_out(&mut self, now: Time) -> Vec<(u16, Downward)> {
        while let Ok(port) = self.exits.try_recv() {
            self.children.remove(&port);
            let has_sessions = glance(&self.folder_of(port)).has_sessions;
            self.fleet.handle(now, Input::Exited { port, has_sessions });
        }
        if self.look_at <= now {
            self.look_at = now.plus_micros(LOOK_EVERY_US);
            self.look(now);
        }
        let mut stops = Vec::new();
        self.wake_at = loop {
            match self.fleet.poll_output() {
                Output::Start(port) => self.start(port),
                Output::Stop(port) => {
                    let said =
                        self.end_at.map_or(Downward::EndIfIdle, |at| Downward::End(at.micros_since(now)));
                    stops.push((port, said));
                }
                Output::Kill(port) => self.kill(port),
                Output::Done => self.is_done = true,
                Output::WakeAt(at) => break at,
            }
        };
        stops
    }

    fn folder_of(&self, port: u16) -> PathBuf {
        self.folder.join(port.to_string())
    }

    /// Checks adopted hosts: the end of a process that is no child is not reported.
    fn look(&mut self, now: Time) {
        for port in self.fleet.ports().collect::<Vec<_>>() {
            if !self.children.contains_key(&port) {
                let seen = glance(&self.folder_of(port));
                if !seen.is_running {
                    let has_sessions = seen.has_sessions;
                    self.fleet.handle(now, Input::Exited { port, has_sessions });
                }
            }
        }
    }

    fn start(&mut self, port: u16) {
        let Launch { program, args, ip, address } = &self.command;
        let mut command = Command::new(program);
        command
            .args(args)
            .arg("--listen")
            .arg(SocketAddr::new(*ip, port).to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        if let Some(address) = address {
            command.arg("--address").arg(address.replace(PORT, &port.to_string()));
        }
        // Ctrl-C in a terminal must reach only the gateway, which tells its hosts. Hosts outlive a gateway that is
        // killed.
        #[cfg(unix)]
        command.process_group(0);
        let (ender, end) = tokio::sync::oneshot::channel::<()>();
        let (exits, waker) = (self.sender.clone(), self.waker.clone());
        match command.spawn() {
            Ok(mut child) => {
                self.children.insert(port, ender);
                tokio::spawn(async move {
                    let status = tokio::select! {
                        status = child.wait() => status,
                        Ok(()) = end => {
                            let _ = child.start_kill();
                            child.wait().await
                        }
                    };
                    match status {
                        Ok(status) if status.success() => tracing::info!(port, "a host has ended"),
                        Ok(status) => tracing::error!(port, %status, "a host has died"),
                        Err(error) => tracing::error!(port, %error, "a host cannot be waited for"),
                    }
                    let _ = exits.send(port);
                    waker.ring();
                });
            }
            Err(error) => {
                tracing::error!(port, %error, program = %program.display(), "a host cannot be started");
                let _ = self.sender.send(port);
                self.waker.ring();
            }
        }
    }

    fn kill(&mut self, port: u16) {
        tracing::error!(port, "a host does not answer and is ended");
        match self.children.remove(&port) {
            Some(ender) => drop(ender.send(())),
            None => {
                if let Some(pid) = glance(&self.folder_of(port)).pid {
                    kill_process(pid);
                }
            }
        }
    }
}

#[cfg(unix)]
fn kill_process(pid: u32) {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    if let Err(error) = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL) {
        tracing::error!(pid, %error, "a host cannot be ended");
    }
}

#[cfg(not(unix))]
fn kill_process(pid: u32) {
    tracing::error!(pid, "a host that was started by another gateway has to be ended by hand");
}
