//! Settings of `sametick up`, from the command line or a file: both have the same names and values, and the command
//! line overrides the file.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, Parser};
use sametick_store::saves::Retention;
use sametick_transport::connection_slots::MAX_EACH;
use sametick_wire::claims::HOLD_US;
use toml::de::{DeTable, DeValue};

use crate::app::SESSIONS_PER_ADDRESS;
use crate::gateway::settings::HostsArgs;
use crate::identity::IdentityArgs;
use crate::identity::settings::SECTION;
use crate::listen::{Doors, Port, Web};
use crate::rooms::RoomLimits;
use crate::serve::RelayOptions;

/// The default address of pages.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT);
const DEFAULT_PORT: u16 = 8080;

/// The default UDP port of native players.
const DEFAULT_UDP: u16 = 7777;
const DEFAULT_QUIC: u16 = 7778;

/// For how many days a token is valid after its last use, by default.
pub(super) const DEFAULT_TOKEN_DAYS: u64 = 30;

/// How often the database of players is backed up by default; a lost file loses at most this much.
pub(super) const DEFAULT_BACKUP_MINUTES: u64 = 10;

/// The default data folder.
const DEFAULT_DATA: &str = "sametick-data";

/// The arguments of `sametick up`.
#[derive(Clone, Debug, Default, Args)]
pub struct UpArgs {
    /// Read settings from this file, in TOML, under the names of these options. The command line overrides it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Print all settings in the form of such a file, with what they mean, and end
    #[arg(long)]
    pub print_config: bool,

    #[command(flatten)]
    settings: Settings,
}

/// All settings; those that are not given have their default.
#[derive(Clone, Debug, Default, Args)]
pub struct Settings {
    /// The address of pages and WebSocket; 0.0.0.0 or `[::]` is reached by others too [default: 127.0.0.1:8080]
    #[arg(long, value_name = "IP[:PORT]", value_parser = address)]
    pub listen: Option<SocketAddr>,

    /// The port for raw UDP (0: any free one, "off": none) [default: 7777]
    #[arg(long, value_name = "PORT")]
    pub udp: Option<Port>,

    /// The port for native QUIC, likewise [default: 7778]
    #[arg(long, value_name = "PORT")]
    pub quic: Option<Port>,

    /// The UDP port for WebTransport, likewise [default: the number of the pages' port]
    #[arg(long, value_name = "PORT")]
    pub wt: Option<Port>,

    /// Where sessions, used proofs and self-signed certificates are kept [default: sametick-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,

    /// A PEM file with a certificate chain; the pages are https:// then. Read again on SIGHUP and every hour
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// A PEM file with the certificate's key
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,

    /// A page's origin that may connect besides those of this server, such as `https://example.org`; more than one may
    /// be given. Its name is a name of this server, too: it answers to no others than addresses and names of this
    /// machine
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    pub origin: Vec<String>,

    /// How many connections one address may have at a time on each port [default: 512]
    #[arg(long, value_name = "N")]
    pub per_address: Option<usize>,

    /// A file with the passphrase on its first line; read again on SIGHUP. Without it, $SAMETICK_SECRET counts
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,

    /// For how many seconds the seat of a disconnected player is reserved [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub hold: Option<u64>,

    /// For how many days players are known by the token they were given last [default: 30]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=3_650))]
    pub token_days: Option<u64>,

    /// Every so many minutes the database of players is copied beside itself, if something in it is new; 0: never
    /// [default: 10]
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(0..=10_080))]
    pub backup_every: Option<u64>,

    /// How many rooms one address may have begun, of those that are open; 0: any number [default: 16]
    #[arg(long, value_name = "N")]
    pub rooms_per_address: Option<usize>,

    /// How many bots the rooms of one address may have together; 0: any number [default: 256]
    #[arg(long, value_name = "N")]
    pub bots_per_address: Option<u64>,

    /// How many sessions of the relay one address may have begun, of those that go on; 0: any number [default: 64]
    #[arg(long, value_name = "N")]
    pub sessions_per_address: Option<usize>,

    #[command(flatten)]
    pub(super) relay: RelayOptions,

    #[command(flatten)]
    pub(super) hosts: HostsArgs,

    /// A proxy stands before the pages' port: trust its headers about the client's address (X-Forwarded-For) and the
    /// host (X-Forwarded-Host). Only if nobody else can reach the port
    #[arg(long)]
    pub behind_proxy: bool,

    #[command(flatten)]
    pub(super) identity: IdentityArgs,
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    match (bare.parse::<IpAddr>(), text.parse()) {
        (Ok(ip), _) => Ok(SocketAddr::new(ip, DEFAULT_PORT)),
        (_, Ok(addr)) => Ok(addr),
        _ => Err("an address such as 0.0.0.0, or with a port such as 127.0.0.1:8080"),
    }
}

fn origin(text: &str) -> Result<String, &'static str> {
    match text.split_once("://") {
        Some(("http" | "https", host)) if !host.is_empty() && !host.contains('/') => Ok(text.into()),
        _ => Err("an origin such as https://example.org, without a path"),
    }
}

/// Why settings cannot be used. Each error says what to do.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("the configuration {} cannot be read: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A setting in the file is wrong.
    #[error("{} line {line}: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What is wrong, and what is allowed.
        why: String,
    },
    /// A certificate without its key, or a key without its certificate.
    #[error("--tls-cert and --tls-key go together: name a file for {missing} as well")]
    HalfCertificate {
        /// What is missing.
        missing: &'static str,
    },
}

impl UpArgs {
    /// The settings of the command line, with those of the file, if there is one, as defaults.
    pub fn settings(&self) -> Result<Settings, SettingsError> {
        let file = self.config.as_deref().map_or(Ok(Settings::default()), Settings::read)?;
        let settings = self.settings.clone().over(file);
        match (&settings.tls_cert, &settings.tls_key) {
            (Some(_), None) => Err(SettingsError::HalfCertificate { missing: "--tls-key" }),
            (None, Some(_)) => Err(SettingsError::HalfCertificate { missing: "--tls-cert" }),
            _ => Ok(settings),
        }
    }
}

/// The settings as a command of their own, so that a value in a file is parsed as on the command line.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Alone {
    #[command(flatten)]
    settings: Settings,
}

impl Settings {
    /// Reads a file.
    fn read(path: &Path) -> Result<Settings, SettingsError> {
        let text =
            fs::read_to_string(path).map_err(|error| SettingsError::Read { path: path.to_owned(), error })?;
        Settings::parse(&text).map_err(|(at, why)| {
            let line = text.get(..at).map_or(1, |before| before.matches('\n').count() + 1);
            SettingsError::Line { path: path.to_owned(), line, why }
        })
    }

    /// Parses the text of a file. The error has the line and the reason.
    fn parse(text: &str) -> Result<Settings, (usize, String)> {
        let table = DeTable::parse(text).map_err(|error| {
            let why = error.message().lines().collect::<Vec<_>>().join(", ");
            (error.span().map_or(0, |span| span.start), why)
        })?;
        Settings::default().with(table.get_ref(), None)
    }

    /// These settings, overridden by those of a table: of the file, or of a section in it.
    fn with(mut self, table: &DeTable<'_>, section: Option<&str>) -> Result<Settings, (usize, String)> {
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            if let (SECTION, DeValue::Table(inner), None) = (name, value.get_ref(), section) {
                self = self.with(inner, Some(SECTION))?;
                continue;
            }
            let one = one_setting(section, name, value.get_ref());
            self = one.map_err(|why| (key.span().start, why))?.over(self);
        }
        Ok(self)
    }

    /// These settings, with the others as defaults.
    fn over(self, below: Settings) -> Settings {
        let origin = if self.origin.is_empty() { below.origin } else { self.origin };
        let keeper = if self.relay.keeper.is_empty() { below.relay.keeper } else { self.relay.keeper };
        Settings {
            listen: self.listen.or(below.listen),
            udp: self.udp.or(below.udp),
            quic: self.quic.or(below.quic),
            wt: self.wt.or(below.wt),
            data: self.data.or(below.data),
            tls_cert: self.tls_cert.or(below.tls_cert),
            tls_key: self.tls_key.or(below.tls_key),
            origin,
            per_address: self.per_address.or(below.per_address),
            secret_file: self.secret_file.or(below.secret_file),
            hold: self.hold.or(below.hold),
            token_days: self.token_days.or(below.token_days),
            backup_every: self.backup_every.or(below.backup_every),
            rooms_per_address: self.rooms_per_address.or(below.rooms_per_address),
            bots_per_address: self.bots_per_address.or(below.bots_per_address),
            sessions_per_address: self.sessions_per_address.or(below.sessions_per_address),
            relay: RelayOptions {
                ticks_per_packet: self.relay.ticks_per_packet.or(below.relay.ticks_per_packet),
                store: self.relay.store.or(below.relay.store),
                keeper,
                keep_sessions: self.relay.keep_sessions.or(below.relay.keep_sessions),
                status: self.relay.status.or(below.relay.status),
                trace: self.relay.trace.or(below.relay.trace),
            },
            hosts: self.hosts.over(below.hosts),
            behind_proxy: self.behind_proxy || below.behind_proxy,
            identity: self.identity.over(below.identity),
        }
    }

    /// The limits of rooms per address.
    pub(super) fn room_limits(&self) -> RoomLimits {
        let usual = RoomLimits::default();
        RoomLimits {
            rooms_per_address: any_if_zero(self.rooms_per_address.unwrap_or(usual.rooms_per_address)),
            bots_per_address: match self.bots_per_address.unwrap_or(usual.bots_per_address) {
                0 => u64::MAX,
                bots => bots,
            },
        }
    }

    /// How many sessions of the relay one address may have begun.
    pub(super) fn sessions_per_address(&self) -> usize {
        any_if_zero(self.sessions_per_address.unwrap_or(SESSIONS_PER_ADDRESS))
    }

    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| DEFAULT_DATA.into())
    }

    /// The ports that these settings open.
    pub fn doors(&self) -> Doors {
        let listen = self.listen.unwrap_or(DEFAULT_LISTEN);
        Doors {
            ip: listen.ip(),
            udp: self.udp.unwrap_or(Port::On(DEFAULT_UDP)),
            quic: self.quic.unwrap_or(Port::On(DEFAULT_QUIC)),
            tcp: Port::On(listen.port()),
            wt: self.wt.unwrap_or(Port::On(listen.port())),
            tls: self.tls_cert.clone().zip(self.tls_key.clone()),
            origins: self.origin.clone(),
            names: Vec::new(),
            per_address: self.per_address.unwrap_or(MAX_EACH),
            secret_file: self.secret_file.clone(),
            data: self.data(),
            web: Some(Web { behind_proxy: self.behind_proxy, pages_port: None }),
        }
    }

    /// The settings as a file: each with its explanation; those that have their default are commented out.
    pub fn to_file(&self) -> String {
        let mut text =
            String::from("# Settings of `sametick up --config FILE`. The command line overrides them.\n");
        let mut section = None;
        for argument in Alone::command().get_arguments() {
            let Some(name) = argument.get_long() else { continue };
            if section_of(name) != section {
                section = section_of(name);
                let _ = section.map(|section| write!(text, "\n[{section}]\n"));
            }
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let _ = write!(text, "\n# {help}\n");
            let _ = match self.value(name) {
                Some(value) => writeln!(text, "{name} = {value}"),
                None => writeln!(text, "# {name} = {}", example(name)),
            };
        }
        text
    }

    /// The value of a setting as it is written in a file, if it is given.
    fn value(&self, name: &str) -> Option<String> {
        let quoted = |text: String| toml::Value::String(text).to_string();
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| quoted(path.display().to_string()));
        let port = |port: Option<Port>| {
            port.map(|port| match port {
                Port::On(port) => port.to_string(),
                Port::Off => quoted("off".into()),
            })
        };
        match name {
            "listen" => self.listen.map(|addr| quoted(addr.to_string())),
            "udp" => port(self.udp),
            "quic" => port(self.quic),
            "wt" => port(self.wt),
            "data" => path(&self.data),
            "tls-cert" => path(&self.tls_cert),
            "tls-key" => path(&self.tls_key),
            "origin" if self.origin.is_empty() => None,
            "origin" => Some(toml::Value::from(self.origin.clone()).to_string()),
            "per-address" => self.per_address.map(|most| most.to_string()),
            "secret-file" => path(&self.secret_file),
            "hold" => self.hold.map(|seconds| seconds.to_string()),
            "token-days" => self.token_days.map(|days| days.to_string()),
            "backup-every" => self.backup_every.map(|minutes| minutes.to_string()),
            "rooms-per-address" => self.rooms_per_address.map(|rooms| rooms.to_string()),
            "bots-per-address" => self.bots_per_address.map(|bots| bots.to_string()),
            "sessions-per-address" => self.sessions_per_address.map(|sessions| sessions.to_string()),
            "ticks-per-packet" => self.relay.ticks_per_packet.map(|ticks| ticks.to_string()),
            "store" => self.relay.store.as_ref().map(|place| quoted(place.to_string())),
            "keeper" if self.relay.keeper.is_empty() => None,
            "keeper" => Some(toml::Value::from(self.relay.keeper.clone()).to_string()),
            "keep-sessions" => self.relay.keep_sessions.map(|sessions| sessions.to_string()),
            "status" => path(&self.relay.status),
            "trace" => path(&self.relay.trace),
            "behind-proxy" => self.behind_proxy.then(|| "true".into()),
            other if let Some(value) = self.hosts.value(other) => value.map(quoted),
            other => match &self.identity.value(other).expect("every setting has a value")[..] {
                [] => None,
                [one] => Some(quoted(one.clone())),
                more => Some(toml::Value::from(more.to_vec()).to_string()),
            },
        }
    }
}

/// A limit as given on the command line: 0 means no limit.
pub(crate) fn any_if_zero(limit: usize) -> usize {
    if limit == 0 { usize::MAX } else { limit }
}

/// An example line for a setting that is not given: its default if it has one.
fn example(name: &str) -> String {
    match name {
        "listen" => format!("\"{DEFAULT_LISTEN}\""),
        "udp" => DEFAULT_UDP.to_string(),
        "quic" => DEFAULT_QUIC.to_string(),
        "wt" => DEFAULT_PORT.to_string(),
        "data" => format!("\"{DEFAULT_DATA}\""),
        "origin" => "[\"https://example.org\"]".into(),
        "per-address" => MAX_EACH.to_string(),
        "hold" => (HOLD_US / 1_000_000).to_string(),
        "token-days" => DEFAULT_TOKEN_DAYS.to_string(),
        "backup-every" => DEFAULT_BACKUP_MINUTES.to_string(),
        "rooms-per-address" => RoomLimits::default().rooms_per_address.to_string(),
        "bots-per-address" => RoomLimits::default().bots_per_address.to_string(),
        "sessions-per-address" => SESSIONS_PER_ADDRESS.to_string(),
        "ticks-per-packet" => "2".into(),
        "store" => "\"s3://bucket/prefix?endpoint=https://s3.example.org\"".into(),
        "keeper" => "[\"pong\"]".into(),
        "keep-sessions" => Retention::default().sessions.to_string(),
        "behind-proxy" => "true".into(),
        name => {
            let example = HostsArgs::example(name).unwrap_or_else(|| IdentityArgs::example(name).into());
            format!("\"{example}\"")
        }
    }
}

/// The section of the file that a setting belongs to.
fn section_of(name: &str) -> Option<&'static str> {
    IdentityArgs::default().value(name).map(|_| SECTION)
}

/// Parses one setting of a file as the command line does.
fn one_setting(section: Option<&str>, name: &str, value: &DeValue<'_>) -> Result<Settings, String> {
    let command = Alone::command();
    let all = command.get_arguments().filter_map(clap::Arg::get_long);
    let names: Vec<&str> = all.filter(|name| section_of(name) == section).collect();
    if !names.contains(&name) {
        let (place, more) = match section {
            Some(section) => (format!(" in [{section}]"), String::new()),
            None => (String::new(), format!(", and the section [{SECTION}]")),
        };
        return Err(format!("there is no setting {name:?}{place}; there are {}{more}", names.join(", ")));
    }
    let texts = texts(value).ok_or_else(|| format!("{name}: a text, a number, or a list of texts"))?;
    let arguments: Vec<String> = match (name, &texts[..]) {
        ("behind-proxy", [said]) if said == "true" => vec!["--behind-proxy".into()],
        ("behind-proxy", [said]) if said == "false" => vec![],
        ("behind-proxy", _) => return Err("behind-proxy: true or false".into()),
        _ => texts.iter().map(|text| format!("--{name}={text}")).collect(),
    };
    match Alone::try_parse_from(arguments) {
        Ok(alone) => Ok(alone.settings),
        Err(error) => {
            let said = error.to_string();
            let first = said.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            let why = error.source().map_or(first, ToString::to_string);
            Err(format!("{name} cannot be {}: {}", texts.join(", "), in_words(&why)))
        }
    }
}

/// Rewords the standard library's errors about numbers.
fn in_words(why: &str) -> &str {
    match why {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "a whole number is expected"
        }
        "number too large to fit in target type" => "the number is too large",
        "number too small to fit in target type" => "the number is too small",
        why => why,
    }
}

/// A value as it would be on the command line; several for a list. `None` if it has no such form.
fn texts(value: &DeValue<'_>) -> Option<Vec<String>> {
    match value {
        DeValue::String(text) => Some(vec![text.to_string()]),
        DeValue::Integer(number) => Some(vec![number.to_string()]),
        DeValue::Boolean(said) => Some(vec![said.to_string()]),
        DeValue::Array(values) => {
            values.iter().map(|value| value.get_ref().as_str().map(str::to_owned)).collect()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_sets_what_the_command_line_does() {
        let text = "listen = '0.0.0.0'\nudp = 'off'\nquic = 9000\norigin = ['https://a.example', 'http://b:1']\n\
                    behind-proxy = true\ndata = 'here'\nticks-per-packet = 2\n";
        let settings = Settings::parse(text).unwrap();
        assert_eq!(settings.listen, "0.0.0.0:8080".parse().ok());
        assert_eq!((settings.udp, settings.quic, settings.wt), (Some(Port::Off), Some(Port::On(9000)), None));
        assert_eq!(settings.origin, ["https://a.example", "http://b:1"]);
        assert!(settings.behind_proxy);
        assert_eq!(settings.relay.ticks_per_packet, Some(2));
        let flags = Alone::parse_from(["--quic=1", "--listen=[::1]:9"]).settings;
        let both = flags.over(settings);
        assert_eq!((both.quic, both.listen), (Some(Port::On(1)), "[::1]:9".parse().ok()));
        assert_eq!(both.data(), Path::new("here"));
    }

    #[test]
    fn printed_settings_are_read_back_unchanged() {
        let printed = Settings::default().to_file();
        assert!(Settings::parse(&printed).unwrap().to_file() == printed, "{printed}");
        let text = "listen = '[::1]:9'\nudp = 'off'\norigin = 'https://a.example'\ntls-key = 'a\"b'\ntrace = 't'\n\
                    wt = 5\nbehind-proxy = true";
        let settings = Settings::parse(text).unwrap();
        let printed = settings.to_file();
        for line in ["listen = \"[::1]:9\"", "udp = \"off\"", "behind-proxy = true", "# status = ", "wt = 5"]
        {
            assert!(printed.lines().any(|printed| printed.starts_with(line)), "{line}: {printed}");
        }
        assert_eq!(Settings::parse(&printed).unwrap().to_file(), printed);
        // Every line that is commented out is a valid example.
        let defaults = Settings::default().to_file();
        let is_example = |line: &&str| line.contains(" = ") || line.starts_with('[');
        let examples: String = { defaults.lines() }
            .map(|line| line.strip_prefix("# ").unwrap_or(line))
            .filter(is_example)
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(examples.lines().count(), 27 + 1 + 8, "{examples}");
        Settings::parse(&examples).unwrap();
    }

    #[test]
    fn an_error_names_the_setting_and_the_allowed_values() {
        for (text, at, why) in [
            ("udp = 1\nudo = 7", 8, "there is no setting \"udo\"; there are listen, udp, quic, wt, data, "),
            ("udp = 'x'", 0, "udp cannot be x: a port is a number up to 65535, or \"off\""),
            ("udp = 70000", 0, "udp cannot be 70000: a port is a number"),
            ("udp = 1.5", 0, "udp: a text, a number, or a list of texts"),
            ("behind-proxy = 'x'", 0, "behind-proxy: true or false"),
            ("ticks-per-packet = 9", 0, "ticks-per-packet cannot be 9: 9 is not in 1..=8"),
            ("origin = 'example.org'", 0, "origin cannot be example.org: an origin such as https://"),
            ("listen = 'here'", 0, "listen cannot be here: an address such as 0.0.0.0"),
            ("udp = [1]", 0, "udp: a text"),
            ("udp", 3, "="),
        ] {
            let (found_at, found) = Settings::parse(text).unwrap_err();
            assert!(found.contains(why), "{text}: {found}");
            assert_eq!((found_at, found.lines().count()), (at, 1), "{text}: {found}");
        }
    }
}
