//! The players database: saved writes are on disk, newest by key, whatever queue, database, disk and threads do.

mod damage;
mod failures;
mod files;
mod kills;
mod kit;
mod losses;
mod mending;
mod order;
mod queue;
mod steady;
