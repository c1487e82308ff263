//! The sametick server as a library.
