//! Known attacks on this kind of program: docs/security.md lists them by number.
//!
//! A rejected attempt changes no row, calls no address, is audited, and does not disclose if the object exists.

mod addresses;
mod browsers;
mod deserialisers;
mod disclosures;
pub mod evidence;
mod foreign_apps;
mod hosts;
mod large_bodies;
mod leaks;
mod limits;
mod no_token;
mod operating;
mod passwords;
mod scripts;
mod sessions;
mod texts;
