//! `tickwright cron explain`, as typed in a shell.

use std::process::Command;

#[test]
fn the_answer_has_the_words_and_the_fires_in_both_zones() {
    let answer = explain("'0 30 1 ? * SUN' --zone Europe/London -n 3 --from 2026-10-18T00:30:00Z");
    assert_eq!(
        answer,
        "0 30 1 ? * SUN\n\
         At 01:30, on Sunday\n\
         zone: Europe/London, daylight-saving rule: natural\n\
         \n\
         previous fire:\n\
         \x20 Sun 2026-10-11 01:30:00 +01:00  2026-10-11T00:30:00Z\n\
         \n\
         next fires:\n\
         \x20 Sun 2026-10-25 01:30:00 +01:00  2026-10-25T00:30:00Z\n\
         \x20 Sun 2026-11-01 01:30:00 +00:00  2026-11-01T01:30:00Z\n\
         \x20 Sun 2026-11-08 01:30:00 +00:00  2026-11-08T01:30:00Z\n"
    );
}

#[test]
fn the_rules_of_a_timetable_are_explained_together() {
    let rules = "--rule 'daily 9:00-17:30 every 4h on Mon-Fri' --rule 'workday -1 of month at 18:00'";
    let answer = explain(&format!("{rules} --zone Europe/London -n 3 --from 2026-10-30T12:00:00Z"));
    assert_eq!(
        answer,
        "daily 09:00-17:30 every 4h on Mon-Fri\n\
         workday -1 of month at 18:00\n\
         Every 4 hours from 09:00 to 17:30, Mon-Fri; On the last workday of each month at 18:00 (Europe/London)\n\
         zone: Europe/London, daylight-saving rule: natural\n\
         \n\
         previous fire:\n\
         \x20 Fri 2026-10-30 09:00:00 +00:00  2026-10-30T09:00:00Z\n\
         \n\
         next fires:\n\
         \x20 Fri 2026-10-30 13:00:00 +00:00  2026-10-30T13:00:00Z\n\
         \x20 Fri 2026-10-30 17:00:00 +00:00  2026-10-30T17:00:00Z\n\
         \x20 Fri 2026-10-30 18:00:00 +00:00  2026-10-30T18:00:00Z\n"
    );
}

#[test]
fn every_option_is_heard() {
    let check = |arguments: &str, expected: &str| {
        let answer = explain(arguments);
        assert!(answer.contains(expected), "{arguments}: no `{expected}` in\n{answer}");
    };
    check("'*/5 9 * * *' --dialect unix --from 2026-06-21T00:00:00Z -n 1", "2026-06-21T09:00:00Z");
    check("'0 0/15 9-17 ? * MON-FRI' --lang zh", "每周一至周五");
    check("'0 0 9 ? * MON' --lang zh --from 2026-06-21T00:00:00Z", "周一 2026-06-22 09:00:00");
    check("'0 0 9 * * ?' --zone asia/shanghai", "zone: Asia/Shanghai, daylight-saving rule: natural");
    // Without its own zone a job follows the machine's clock and the old rule.
    check("'0 0 9 * * ?'", "zone: UTC, daylight-saving rule: quartz");
    // 01:30 occurs twice that night; the rule selects one of the two.
    let night = "'0 30 1 25 10 ?' --zone Europe/London --from 2026-10-24T12:00:00Z -n 1";
    check(&format!("{night} --dst skip-first"), "2026-10-25T00:30:00Z");
    check(&format!("{night} --dst quartz"), "2026-10-25T01:30:00Z");
}

#[test]
fn an_end_and_a_beginning_are_named() {
    let over = explain("'0 0 0 1 1 ? 2020' --from 2026-06-21T00:00:00Z");
    assert!(over.ends_with("next fires:\n  no more until 2200\n"), "{over}");
    let to_come = explain("'0 0 0 1 1 ? 2099' --from 2026-06-21T00:00:00Z");
    assert!(to_come.contains("previous fire:\n  none since 1970\n"), "{to_come}");
}

#[test]
fn what_is_wrong_is_refused_with_a_way_out() {
    let check = |arguments: &str, code: i32, expected: &str| {
        let Outcome { code: found, stdout, stderr } = run(arguments);
        assert_eq!(found, Some(code), "{arguments}: {stderr}");
        assert_eq!(stdout, "", "{arguments}");
        assert!(stderr.starts_with("error: ") && stderr.contains(expected), "{arguments}: {stderr}");
    };
    check("cron explain '0 60 * * * ?'", 1, "write 0-59");
    check("cron explain '*/5 * * * *'", 1, "add `--dialect unix`");
    check("cron explain --dialect unix '0 0 9 * * ?'", 1, "add `--dialect quartz`");
    check("cron explain '0 0 0 * * ?' --zone Europe/Lodnon", 2, "did you mean `Europe/London`?");
    check("cron explain '0 0 0 * * ?' --dst sometimes", 2, "write `quartz`, `natural`");
    check("cron explain '0 0 0 * * ?' --from yesterday", 2, "for example 2026-10-24T12:00:00Z");
    check("cron explain '0 0 0 * * ?' -n 0", 2, "1..=1000");
    check(
        "cron explain --rule 'workday 1 of month at 9:00' --rule hourly",
        1,
        "rule 2: `hourly` is not a rule",
    );
    check("cron explain '0 0 0 * * ?' --rule 'cron 0 0 0 * * ?'", 2, "cannot be used with");
}

#[test]
fn the_version_is_the_package_s() {
    assert_eq!(run("--version").stdout, format!("tickwright {}\n", env!("CARGO_PKG_VERSION")));
}

fn explain(arguments: &str) -> String {
    let Outcome { code, stdout, stderr } = run(&format!("cron explain {arguments}"));
    assert_eq!(code, Some(0), "{arguments}: {stderr}");
    stdout
}

struct Outcome {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs the binary with the time zone UTC.
fn run(arguments: &str) -> Outcome {
    let output = Command::new(env!("CARGO_BIN_EXE_tickwright"))
        .args(words(arguments))
        .env("TZ", "UTC")
        .output()
        .expect("the binary was built for this test");
    let text = |bytes| String::from_utf8(bytes).expect("we print UTF-8");
    Outcome { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Splits as a shell would: at blanks, except within single quotes.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    parts
        .flat_map(|(i, part)| match i % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}
