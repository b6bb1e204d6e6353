//! Settings that work but could be safer.

use super::Finding;
use crate::settings::Settings;

/// Weaknesses of these settings, or one finding that there are none.
pub fn settings(settings: &Settings) -> Vec<Finding> {
    let open = !settings.listen.ip().is_loopback();
    let token = settings.token.as_ref().map(|token| token.value());
    let weak = [
        (
            open && settings.identity.is_none() && settings.proxies.is_empty(),
            "passwords and tokens are sent unencrypted (--insecure-http)",
            "set --tls-cert and --tls-key, or --behind-proxy",
        ),
        (
            token.is_some_and(|token| crate::executors::is_well_known(token) || token.len() < TOKEN_MIN),
            "the token shared by all executors is short or publicly known (--allow-weak-token)",
            "give each app its own token, or use a random shared token of 32 characters or more",
        ),
        (
            settings.allow_no_token,
            "executors are accepted without a token (--allow-no-token)",
            "set a token in each executor, then remove the option",
        ),
        (
            settings.trust.accept_invalid,
            "certificates of executors are not verified (--executor-any-certificate)",
            "set your own certificate authorities with --executor-ca",
        ),
        (
            open && settings.executor_networks.is_empty(),
            "executors may register with any address, and the scheduling centre calls it",
            "limit the networks with --executor-networks",
        ),
        (
            settings.channels.is_empty(),
            "no notifications are sent for alerts",
            "set --alert-webhook or --alert-mail",
        ),
        (
            open && settings.scripts,
            "scripts can be edited here and run on executors (--allow-scripts)",
            "remove the option if no job is a script",
        ),
    ];
    let found: Vec<Finding> = weak
        .into_iter()
        .filter(|(is_weak, ..)| *is_weak)
        .map(|(_, what, advice)| Finding::weak(what, advice))
        .collect();
    if found.is_empty() { vec![Finding::good("the settings have no known weaknesses")] } else { found }
}

/// Shortest token that cannot be guessed.
const TOKEN_MIN: usize = 32;
