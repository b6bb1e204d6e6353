//! Checks of a database with several hosts: their clocks, and how soon and how safely they fail over.

use std::time::Duration;

use engine::LEASE;
use store::{HostClock, HostFacts, Replication};

use super::Finding;

/// Asks all hosts, and judges their answers.
pub async fn check(url: &str, findings: &mut Vec<Finding>) {
    match store::hosts(url).await {
        Ok(answers) => findings.extend(judge(&answers)),
        Err(error) => findings.push(Finding::bad(error.to_string(), "correct --database-url")),
    }
}

fn judge(answers: &[Result<HostFacts, String>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, answer) in answers.iter().enumerate() {
        if let Err(reason) = answer
            && answers.len() > 1
        {
            findings.push(Finding::weak(
                format!("host {} of the database does not respond: {reason}", index + 1),
                "start it, or remove it from --database-url: it cannot take over",
            ));
        }
    }
    let facts: Vec<(usize, &HostFacts)> = answers
        .iter()
        .enumerate()
        .filter_map(|(index, answer)| Some((index + 1, answer.as_ref().ok()?)))
        .collect();
    findings.extend(clocks(&facts.iter().map(|(host, facts)| (*host, facts.clock)).collect::<Vec<_>>()));
    for (host, facts) in &facts {
        findings.extend(facts.galera.as_deref().and_then(|options| galera(*host, options)));
    }
    let replications: Vec<(usize, &Replication)> =
        facts.iter().filter_map(|(host, facts)| Some((*host, facts.replication.as_ref()?))).collect();
    findings.extend(replication(&replications));
    findings
}

/// Compares all hosts with each other. A lease that one host writes is judged by the clock of another.
fn clocks(hosts: &[(usize, HostClock)]) -> Option<Finding> {
    let pairs =
        hosts.iter().enumerate().flat_map(|(at, one)| hosts[at + 1..].iter().map(move |other| (one, other)));
    // What is certain: the answers took some time.
    let apart = |one: &HostClock, other: &HostClock| {
        ((one.offset_ms - other.offset_ms).abs() - one.within_ms - other.within_ms).max(0)
    };
    let ((one, first), (other, second)) = pairs.max_by_key(|(one, other)| apart(&one.1, &other.1))?;
    let millis = apart(first, second);
    Some(match millis <= CLOCKS_APART_MAX_MS {
        true => Finding::good(format!("the clocks of the {} hosts of the database agree", hosts.len())),
        false => Finding::bad(
            format!(
                "the clocks of the hosts {one} and {other} of the database differ by {millis} ms; after a failover, \
                 leases would end too early or too late"
            ),
            "synchronize the hosts of the database with the same time servers (chrony, systemd-timesyncd)",
        ),
    })
}

/// Checks how long a dead server stops the writes of the others.
fn galera(host: usize, options: &str) -> Option<Finding> {
    let suspect = option(options, "evs.suspect_timeout").and_then(period)?;
    let stops = format!(
        "if another server of the Galera cluster dies, host {host} accepts no writes for {} s (evs.suspect_timeout)",
        suspect.as_secs_f64()
    );
    Some(match suspect < LEASE {
        true => Finding::good(stops),
        false => Finding::weak(
            format!("{stops}; that is as long as a lease, and fires are late meanwhile"),
            format!("add to wsrep_provider_options on each server: {FAST_GALERA}"),
        ),
    })
}

/// Settings with which a dead server stops the others for about one second.
const FAST_GALERA: &str = "evs.keepalive_period=PT0.25S; evs.inactive_check_period=PT0.25S; \
     evs.suspect_timeout=PT1S; evs.inactive_timeout=PT3S";

/// Value of one of Galera's options, which are separated by semicolons.
fn option<'a>(options: &'a str, name: &str) -> Option<&'a str> {
    let pairs = options.split(';').filter_map(|option| option.split_once('='));
    pairs.map(|(key, value)| (key.trim(), value.trim())).find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// Reads a period of ISO 8601, for example `PT0.25S` or `PT1M30S`.
fn period(text: &str) -> Option<Duration> {
    let mut left = text.strip_prefix("PT")?;
    let mut seconds = 0.0;
    while !left.is_empty() {
        let at = left.find(|letter: char| letter.is_ascii_alphabetic())?;
        let number: f64 = left[..at].parse().ok()?;
        seconds += number
            * match &left[at..=at] {
                "H" => 3_600.0,
                "M" => 60.0,
                "S" => 1.0,
                _ => return None,
            };
        left = &left[at + 1..];
    }
    Duration::try_from_secs_f64(seconds).ok()
}

/// Checks whether a commit survives the loss of the primary.
fn replication(hosts: &[(usize, &Replication)]) -> Option<Finding> {
    let (host, primary) = hosts.iter().find(|(_, replication)| !replication.is_standby)?;
    let Replication { timeline, synchronous_names, standbys, synchronous, .. } = primary;
    let described = format!(
        "host {host} is the primary (timeline {timeline}) with {standbys} standbys, {synchronous} of them synchronous; \
         synchronous_standby_names is `{synchronous_names}`"
    );
    Some(match (standbys, synchronous) {
        (0, _) if hosts.len() == 1 => return None,
        (_, sync) if *sync == 0 || synchronous_names.is_empty() => Finding::weak(
            format!("{described}; after a failover the last commits are lost"),
            "set synchronous_standby_names, or `synchronous_mode: on` in Patroni",
        ),
        _ => Finding::good(described),
    })
}

/// Maximum difference between the clocks of two hosts: half of what a node may differ from its database.
const CLOCKS_APART_MAX_MS: i64 = engine::Skew::MAX_MILLIS / 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Health;

    fn clock(offset_ms: i64, within_ms: i64) -> HostClock {
        HostClock { offset_ms, within_ms }
    }

    #[test]
    fn clocks_that_differ_are_found_if_that_is_certain() {
        let check = |clocks_of: &[HostClock], expected: Option<Health>| {
            let hosts: Vec<_> =
                clocks_of.iter().enumerate().map(|(host, clock)| (host + 1, *clock)).collect();
            let found = clocks(&hosts);
            assert_eq!(found.as_ref().map(|finding| finding.health), expected, "{found:?}");
        };
        check(&[], None);
        check(&[clock(5_000, 1)], None);
        check(&[clock(5_000, 1), clock(5_252, 1)], Some(Health::Good));
        check(&[clock(5_000, 1), clock(5_253, 1)], Some(Health::Bad));
        check(&[clock(5_000, 1), clock(5_400, 200)], Some(Health::Good));
        check(&[clock(5_000, 1), clock(5_200, 1), clock(4_800, 1)], Some(Health::Bad));
    }

    #[test]
    fn periods_of_galera_are_read() {
        let check =
            |text, millis: Option<u64>| assert_eq!(period(text), millis.map(Duration::from_millis), "{text}");
        check("PT5S", Some(5_000));
        check("PT0.25S", Some(250));
        check("PT1M30S", Some(90_000));
        check("PT2H", Some(7_200_000));
        check("5", None);
        check("PTS", None);
        check("PT5", None);
        check("PT5X", None);
    }

    #[test]
    fn a_galera_cluster_that_stops_for_longer_than_a_lease_is_found() {
        let check = |options: &str, expected: Option<Health>| {
            assert_eq!(galera(1, options).map(|finding| finding.health), expected, "{options}");
        };
        check("base_host = 127.0.0.1; evs.suspect_timeout = PT5S; gcache.size = 32M", Some(Health::Weak));
        check("evs.suspect_timeout = PT3S", Some(Health::Weak));
        check(FAST_GALERA, Some(Health::Good));
        check("base_host = 127.0.0.1", None);
    }

    #[test]
    fn standbys_that_no_commit_waits_for_are_found() {
        let server = |is_standby, standbys, synchronous| Replication {
            is_standby,
            timeline: 3,
            synchronous_names: if synchronous > 0 { "*".into() } else { String::new() },
            standbys,
            synchronous,
        };
        let check = |hosts: &[Replication], expected: Option<Health>| {
            let hosts: Vec<_> = hosts.iter().enumerate().map(|(host, facts)| (host + 1, facts)).collect();
            let found = replication(&hosts);
            assert_eq!(found.as_ref().map(|finding| finding.health), expected, "{found:?}");
        };
        check(&[server(false, 0, 0)], None);
        check(&[server(false, 1, 0)], Some(Health::Weak));
        check(&[server(true, 0, 0), server(false, 2, 1)], Some(Health::Good));
        check(&[server(true, 0, 0), server(false, 0, 0)], Some(Health::Weak));
        check(&[server(true, 0, 0)], None);
    }
}
