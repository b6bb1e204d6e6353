//! What this kind of program has been attacked with, tried here: docs/security.md lists the attacks by number.
//!
//! A refused attempt changes no row, calls nobody, is put on record, and does not tell whether what it names is there.

mod addresses;
mod browsers;
mod deserialisers;
mod disclosures;
mod evidence;
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
