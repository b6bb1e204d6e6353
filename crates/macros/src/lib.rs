//! `#[scheduled]`, sugar over `tickwright-timer`, which re-exports and documents it.
//!
//! What can be checked is checked while compiling, and an error points at the literal that is wrong.

mod duration;
mod scheduled;

use proc_macro::TokenStream;

/// Runs a function on a schedule. The timer crate, which re-exports it, says how.
#[proc_macro_attribute]
pub fn scheduled(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let expanded = scheduled::expand(arguments.into(), function.into());
    expanded.unwrap_or_else(|error| error.into_compile_error()).into()
}
