//! `#[scheduled]` and `#[job]`, sugar over `tickwright-timer` and `tickwright-executor`, which re-export and
//! document them.
//!
//! What can be checked is checked while compiling, and an error points at the literal that is wrong.

mod declaration;
mod duration;
mod job;
mod scheduled;

use proc_macro::TokenStream;

/// Runs a function on a schedule. The timer crate, which re-exports it, says how.
#[proc_macro_attribute]
pub fn scheduled(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let expanded = scheduled::expand(arguments.into(), function.into());
    expanded.unwrap_or_else(|error| error.into_compile_error()).into()
}

/// Makes a function a handler. The executor crate, which re-exports it, says how.
#[proc_macro_attribute]
pub fn job(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let expanded = job::expand(arguments.into(), function.into());
    expanded.unwrap_or_else(|error| error.into_compile_error()).into()
}
