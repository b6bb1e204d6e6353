//! `#[scheduled]` and `#[job]`: macros for `tickwright-timer` and `tickwright-executor`, which re-export and
//! document them.
//!
//! Arguments are checked at compile time where possible; an error points at the wrong literal.

mod declaration;
mod job;
mod scheduled;

use proc_macro::TokenStream;

/// Runs a function on a schedule. See the timer crate, which re-exports it, for its arguments.
#[proc_macro_attribute]
pub fn scheduled(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let expanded = scheduled::expand(arguments.into(), function.into());
    expanded.unwrap_or_else(|error| error.into_compile_error()).into()
}

/// Makes a function a handler. See the executor crate, which re-exports it, for its arguments.
#[proc_macro_attribute]
pub fn job(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let expanded = job::expand(arguments.into(), function.into());
    expanded.unwrap_or_else(|error| error.into_compile_error()).into()
}
