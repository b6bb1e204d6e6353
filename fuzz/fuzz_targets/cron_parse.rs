//! Feeds random bytes to the parsers of cron expressions, and searches fires of the expressions they accept.
//!
//! On stable Rust: `cargo install cargo-fuzz`, then in the repository's root
//! `cargo fuzz run -s none cron_parse -- -max_total_time=60`.
//!
//! The first eight bytes are the time to search from; the rest is the expression.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tickwright_cron::{Cron, Dialect, DstRule, Language, Timestamp, Zone};

fuzz_target!(|bytes: &[u8]| {
    let Some((instant, text)) = bytes.split_first_chunk::<8>() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let t = Timestamp::from_millis(i64::from_le_bytes(*instant) % 8_000_000_000_000);

    for dialect in [Dialect::Quartz, Dialect::Unix] {
        if let Ok(cron) = Cron::parse_in(dialect, text) {
            let printed = cron.to_string();
            assert_eq!(Cron::parse_in(dialect, &printed).as_ref(), Ok(&cron), "prints as it reads");
            check(&cron, t);
        }
    }
    if let Ok((cron, warnings)) = Cron::parse_lenient(text) {
        assert_eq!(Cron::parse(&cron.to_string()).as_ref(), Ok(&cron), "what was kept is strictly right");
        assert_eq!(Cron::parse(text).is_ok(), warnings.is_empty(), "strict is lenient without warnings");
        check(&cron, t);
    }
});

fn check(cron: &Cron, t: Timestamp) {
    assert!(!cron.describe(Language::English).is_empty());
    assert!(!cron.describe(Language::Chinese).is_empty());
    let utc = Zone::utc();
    if let Some(next) = cron.next_after(t, &utc, DstRule::QUARTZ) {
        assert!(next > t, "strictly after");
        assert!(cron.previous_before(next, &utc, DstRule::QUARTZ).is_none_or(|previous| previous <= t));
        fits_single_values(cron, next);
    }
    for dst in [DstRule::QUARTZ, DstRule::NATURAL] {
        let zone = Zone::parse("Australia/Lord_Howe").expect("the zone exists");
        assert!(cron.next_after(t, &zone, dst).is_none_or(|next| next > t));
    }
}

/// Checks fields that are a single number, which needs no knowledge of cron.
fn fits_single_values(cron: &Cron, fire: Timestamp) {
    let at = jiff::Timestamp::from_millisecond(fire.as_millis()).expect("within the calendar");
    let at = at.to_zoned(jiff::tz::TimeZone::UTC);
    let text = cron.to_string();
    let fields: Vec<&str> = text.split(' ').collect();
    let shown = [at.second(), at.minute(), at.hour(), at.day(), at.month()].map(i64::from);
    let (fields, shown) = match (cron.dialect(), fields.len()) {
        (Dialect::Quartz, _) => (&fields[..5], &shown[..]),
        // The day may differ: if both day fields are given, either may match.
        (Dialect::Unix, 5) => (&fields[..2], &shown[1..3]),
        (Dialect::Unix, _) => return,
    };
    for (field, shown) in fields.iter().zip(shown) {
        if let Ok(value) = field.parse::<i64>() {
            assert_eq!(value, *shown, "{cron} at {at}");
        }
    }
}
