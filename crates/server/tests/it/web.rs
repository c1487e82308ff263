//! Test harness: an HTTP client written by hand, so that tests see every byte, and a `sametick up` to call.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::process::{Folder, command};

/// Longer than any deadline.
pub const IN_VAIN: Duration = Duration::from_secs(20);

/// `sametick up` on free ports.
pub struct Up {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    /// Its output until it was up.
    pub greeting: String,
    pub addr: SocketAddr,
}

impl Up {
    pub fn start(folder: &Folder, args: &[&str], secret: Option<&str>) -> Up {
        let secret = secret.map(|secret| ("SAMETICK_SECRET", secret));
        Up::start_with(folder, args, secret.as_slice())
    }

    /// The same with these variables in its environment.
    pub fn start_with(folder: &Folder, args: &[&str], variables: &[(&str, &str)]) -> Up {
        let mut up = command(&["up", "--listen", "127.0.0.1:0", "--udp", "0", "--quic", "0"]);
        up.args(args).envs(variables.iter().copied()).current_dir(folder.path());
        let log = std::fs::File::create(folder.path().join("stderr.txt")).unwrap();
        Up::spawn(folder, up.stderr(log))
    }

    /// Starts one whose output has no reader any more once it is up.
    pub fn start_unread(folder: &Folder, args: &[&str]) -> Up {
        let mut up = command(&["up", "--listen", "127.0.0.1:0", "--udp", "0", "--quic", "0"]);
        up.args(args).current_dir(folder.path()).stderr(Stdio::piped());
        let mut up = Up::spawn(folder, &mut up);
        drop((up.stdout.take(), up.child.stderr.take()));
        up
    }

    fn spawn(folder: &Folder, up: &mut Command) -> Up {
        let mut child = up.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        while !greeting.contains("Ctrl-C") {
            let len = stdout.read_line(&mut greeting).unwrap();
            assert_ne!(len, 0, "it ended: {greeting} {}", Up::log_in(folder));
        }
        let url = greeting.lines().find_map(|line| line.trim().strip_prefix("open")).unwrap().trim();
        let addr = url.split('/').nth(2).unwrap().parse().unwrap();
        Up { child, stdout: Some(stdout), greeting, addr }
    }

    /// Its log so far.
    pub fn log_in(folder: &Folder) -> String {
        std::fs::read_to_string(folder.path().join("stderr.txt")).unwrap_or_default()
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end after a signal. Returns whether it was clean, and the output.
    pub fn end(mut self) -> (bool, String) {
        let mut out = String::new();
        if let Some(stdout) = &mut self.stdout {
            stdout.read_to_string(&mut out).unwrap();
        }
        (self.child.wait().unwrap().success(), out)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "")
    }

    /// Sends a request with these headers, each with its end of line.
    pub fn ask(&self, method: &str, path: &str, headers: &str) -> Answer {
        let mut stream = TcpStream::connect(self.addr).unwrap();
        stream.set_read_timeout(Some(IN_VAIN)).unwrap();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.addr);
        stream.write_all(format!("{head}{headers}\r\n").as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        Answer::parse(&answer)
    }

    /// The API's answer for this path.
    pub fn api(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    /// The URL of a native transport.
    pub fn native(&self, scheme: &str) -> String {
        let server = self.api("/api/server");
        let urls = server["native"].as_array().unwrap().iter().filter_map(Value::as_str);
        { urls }.find(|url| url.starts_with(scheme)).unwrap().to_owned()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A parsed answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Answer {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer has a head");
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.into(), value.into()));
        Answer { status, headers: lines.filter_map(header).collect(), body: bytes[end + 4..].to_vec() }
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }
}
