//! What a person reads when the centre has started: where it is, and what to paste into an executor.

use std::fmt::Write;
use std::time::Duration;

use server::{FirstAdmin, FirstStart};

/// The lines. Secrets are in it only at the first start, and only for a terminal or whoever started us: never a log file.
pub fn text(
    url: &str,
    first: Option<&FirstStart>,
    admin: Option<&FirstAdmin>,
    took: Duration,
    colour: bool,
) -> String {
    let bold = |text: &str| if colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() };
    let mut page = String::new();
    let version = env!("CARGO_PKG_VERSION");
    let _ = writeln!(page, "\n  {} {version} is ready in {} ms", bold("Tickwright"), took.as_millis());
    let _ = writeln!(page, "  listening   {}", bold(url));
    if let Some(FirstAdmin { name, password }) = admin {
        let _ = writeln!(page, "  sign in     as {} with {} (shown only now)", bold(name), bold(password));
    }
    if let Some(FirstStart { app, token, .. }) = first {
        let _ = writeln!(page, "\n  Paste into an executor's settings (the token is shown only now):");
        let _ = writeln!(page, "    xxl.job.admin.addresses={url}/xxl-job-admin");
        let _ = writeln!(page, "    xxl.job.accessToken={token}");
        let _ = writeln!(page, "    xxl.job.executor.appname={app}");
    }
    page
}
