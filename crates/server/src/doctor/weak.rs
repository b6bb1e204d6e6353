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
            "passwords and tokens travel in clear (--insecure-http)",
            "give --tls-cert and --tls-key, or --behind-proxy",
        ),
        (
            token.is_some_and(|token| crate::executors::is_well_known(token) || token.len() < TOKEN_MIN),
            "the token of all executors is short or one that everybody knows (--allow-weak-token)",
            "give each app its own token, or set a random one of 32 characters or more in all executors",
        ),
        (
            settings.allow_no_token,
            "executors come in without a token (--allow-no-token)",
            "set a token in each executor, then leave the option out",
        ),
        (
            settings.trust.accept_invalid,
            "any certificate of an executor is believed (--executor-any-certificate)",
            "name your own authorities with --executor-ca",
        ),
        (
            open && settings.executor_networks.is_empty(),
            "executors may be anywhere: whoever registers one makes the centre call it",
            "name their networks with --executor-networks",
        ),
        (
            settings.channels.is_empty(),
            "nobody is told of failed runs",
            "set --alert-webhook or --alert-mail",
        ),
        (
            open && settings.scripts,
            "scripts may be written here and run on executors (--allow-scripts)",
            "leave the option out if no job is a script",
        ),
    ];
    let found: Vec<Finding> = weak
        .into_iter()
        .filter(|(is_weak, ..)| *is_weak)
        .map(|(_, what, advice)| Finding::weak(what, advice))
        .collect();
    if found.is_empty() { vec![Finding::good("the settings have no known weakness")] } else { found }
}

/// Shortest token that cannot be guessed.
const TOKEN_MIN: usize = 32;
