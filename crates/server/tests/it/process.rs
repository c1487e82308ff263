//! Test harness: starts the command, reads its output, ends it.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT_FOLDER: AtomicU32 = AtomicU32::new(0);

/// A test's own folder, deleted when the test ends.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        let number = NEXT_FOLDER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("sametick-it-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that is left behind is better than a panic in a drop.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn command(args: &[&str]) -> Command {
    command_of(Path::new(env!("CARGO_BIN_EXE_sametick")), args)
}

/// The command of a program with other games.
pub fn command_of(program: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    for variable in ["SAMETICK_SECRET", "SAMETICK_LOG", "SAMETICK_STATUS_KEY"] {
        command.env_remove(variable);
    }
    for variable in ["ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "ENDPOINT_URL", "REGION"] {
        command.env_remove(format!("AWS_{variable}"));
    }
    // The configuration of the user who runs the tests must not be touched.
    let config = concat!(env!("CARGO_TARGET_TMPDIR"), "/config.toml");
    command.env("SAMETICK_CONFIG", config);
    command
}

/// Runs the command to its end.
pub fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

/// A command that listens, on free ports.
pub struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub urls: Vec<String>,
}

impl Server {
    /// A ping server.
    pub fn start(folder: &Folder, args: &[&str], secret: Option<&str>) -> Server {
        Server::start_as(&["ping", "serve"], folder, args, secret)
    }

    /// Starts any command that listens.
    pub fn start_as(what: &[&str], folder: &Folder, args: &[&str], secret: Option<&str>) -> Server {
        let secret = secret.map(|secret| ("SAMETICK_SECRET", secret));
        Server::start_in(what, folder, args, secret.as_slice())
    }

    /// The same with these variables in its environment.
    pub fn start_in(what: &[&str], folder: &Folder, args: &[&str], environment: &[(&str, &str)]) -> Server {
        let mut serve = command(what);
        for port in ["--udp", "--quic", "--ws", "--wt"] {
            let any = [port, "0"];
            serve.args(if args.contains(&port) { &[][..] } else { &any });
        }
        serve.args(args).current_dir(folder.path()).envs(environment.iter().copied());
        Server::spawn(&mut serve)
    }

    /// Starts a command that prints its URLs and its data folder.
    pub fn spawn(serve: &mut Command) -> Server {
        let mut child =
            serve.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut server = Server { child, stdout, urls: Vec::new() };
        server.read_urls();
        server
    }

    /// Reads the URLs that the command prints.
    fn read_urls(&mut self) {
        let mut line = String::new();
        while !line.contains("data:") {
            line.clear();
            let len = self.stdout.read_line(&mut line).unwrap();
            assert_ne!(len, 0, "the server ended: {}", rest(&mut self.child));
            self.urls.extend(line.split('\'').nth(1).map(str::to_owned));
        }
    }

    pub fn url(&self, scheme: &str) -> &str {
        self.urls.iter().find(|url| url.starts_with(&format!("{scheme}://"))).unwrap()
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Waits for the end after a signal; returns whether it was clean, the output and the log.
    pub fn end(mut self) -> (bool, String, String) {
        let mut out = String::new();
        self.stdout.read_to_string(&mut out).unwrap();
        let log = rest(&mut self.child);
        (self.child.wait().unwrap().success(), out, log)
    }

    /// Reads the log up to a line with these words.
    pub fn await_log(&mut self, words: &str) {
        let log = self.child.stderr.as_mut().unwrap();
        let mut seen = Vec::new();
        let mut byte = [0];
        while !String::from_utf8_lossy(&seen).contains(words) {
            assert_eq!(log.read(&mut byte).unwrap(), 1, "the log ended: {}", String::from_utf8_lossy(&seen));
            seen.push(byte[0]);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn rest(child: &mut Child) -> String {
    let mut text = String::new();
    child.stderr.as_mut().unwrap().read_to_string(&mut text).unwrap();
    text
}
