//! Executors: registration, access tokens and routing.

mod directory;
mod keeper;
mod route;
mod silence;
mod tokens;

pub use directory::{Arrival, Destination, Directory, Sighting};
pub use keeper::{Keeper, POLL, RegisterError};
pub use route::{Candidates, Choices, Route};
pub use tokens::{Key, Scope, Tokens, fingerprint, generate, is_well_known, random};
pub(crate) use tokens::{hex, unhex};
