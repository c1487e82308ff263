//! Locks a players database, as another program might: `cargo run -p sametick-store --features players --example hold
//! -- FILE SECONDS`.
#![allow(clippy::disallowed_methods, reason = "it waits on purpose")]

use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (path, seconds) = arguments.next().zip(arguments.next()).ok_or("FILE SECONDS")?;
    let database = rusqlite::Connection::open(path)?;
    database.busy_timeout(Duration::from_secs(10))?;
    database.execute_batch("BEGIN EXCLUSIVE")?;
    println!("locked");
    std::thread::sleep(Duration::from_secs(seconds.parse()?));
    database.execute_batch("ROLLBACK")?;
    Ok(())
}
