//! What this kind of program has been attacked with, tried here: docs/security.md lists the attacks by number.
//!
//! A refused attempt changes no row, calls nobody, is put on record, and does not tell whether what it names is there.

mod addresses;
mod browsers;
mod deserialisers;
mod evidence;
mod foreign_apps;
mod leaks;
mod passwords;
mod scripts;
mod sessions;
mod texts;
