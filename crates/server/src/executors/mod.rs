//! Executors: registration, access tokens and routing.

mod directory;
mod registrar;
mod route;
mod secrets;
mod silence;
mod tokens;

pub use directory::{Arrival, Destination, Directory, Sighting};
pub use registrar::Registrar;
pub use route::{Candidates, Choices};
pub use tokens::{Key, Scope, Tokens, fingerprint, generate, is_well_known, random};
pub(crate) use tokens::{hex, unhex};
