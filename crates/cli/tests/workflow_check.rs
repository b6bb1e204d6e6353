//! `tickwright workflow check`: bad files are refused at the right place, at a bounded cost.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Output};

const TICKWRIGHT: &str = env!("CARGO_BIN_EXE_tickwright");

/// Checks a file. The process may use 2 GiB of address space.
fn check(text: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file.yaml");
    fs::write(&file, text).unwrap();
    let limited = "ulimit -v 2097152 && exec \"$0\" workflow check \"$1\"";
    Command::new("sh").args(["-c", limited, TICKWRIGHT]).arg(&file).output().unwrap()
}

/// Lines of the problems, without the name of the file.
fn problems(text: &str) -> Vec<String> {
    let output = check(text);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| line.split_once("file.yaml:").unwrap().1.to_owned()).collect()
}

fn workflow(steps: &str) -> String {
    format!("workflows:\n  w:\n    app: x\n    name: W\n    steps:\n{steps}")
}

#[test]
fn problems_have_a_line_and_a_column() {
    let check = |steps: &str, place: &str, detail: &str| {
        let found = problems(&workflow(steps));
        assert!(found[0].starts_with(place) && found[0].contains(detail), "{found:?}");
    };
    let load = "      load: { handler: load }\n";
    check(
        "      a: { needs: [b], handler: x }\n      b: { needs: [a], handler: x }\n",
        "6:",
        "circle: a → b → a",
    );
    check(&format!("{load}      a: {{ needs: [lod], handler: x }}\n"), "7:20:", "there is no step `lod`");
    check(
        &format!("      a: {{ handler: x, with: {{ rows: \"${{{{ steps.load.output }}}}\" }} }}\n{load}"),
        "6:",
        "`load` may not have ended here",
    );
    check(
        &format!("{load}      a: {{ needs: [load], handler: x, if: \"1 +\" }}\n"),
        "7:",
        "w: workflow.steps.a.if",
    );
    check(&format!("{load}      a: {{ depends: {{ on: y, date: soon }} }}\n"), "7:", "`soon` is not a date");
    check("      a: { handler: x, http: { url: \"http://y\" } }\n", "6:", "exactly one of");
    check("      a: { handler: x, if: \"secret('db') == ''\" }\n", "6:", "`secret` can be used only in");
}

#[test]
fn a_workflow_has_at_most_ten_thousand_steps() {
    let mut steps = String::new();
    for number in 0..10_001 {
        let _ = writeln!(steps, "      s{number}: {{ handler: x }}");
    }
    let found = problems(&workflow(&steps));
    assert!(found[0].contains("10001 steps, at most 10000"), "{found:?}");
}

#[test]
fn large_and_deep_files_are_read_or_refused() {
    let refused = |text: &str| {
        let output = check(text);
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{why}");
        why
    };
    // 10 MB in one text.
    let long = workflow(&format!("      a: {{ handler: x, param: \"{}\" }}\n", "y".repeat(10_000_000)));
    assert!(check(&long).status.code().is_some(), "it neither crashed nor was killed");
    // 10 MB of keys.
    let mut many = workflow("      a:\n        handler: x\n        with:\n");
    for number in 0..600_000 {
        let _ = writeln!(many, "          k{number}: {number}");
    }
    assert!(check(&many).status.code().is_some(), "it neither crashed nor was killed");
    let deep = format!("      a: {{ handler: x, with: {}1{} }}\n", "[".repeat(1_000), "]".repeat(1_000));
    let why = refused(&workflow(&deep));
    assert!(why.contains("line ") || why.contains("depth") || why.contains("nest"), "{why}");
    // Each alias doubles the one before it.
    let mut bomb = String::from("a0: &a0 [x, x]\n");
    for number in 1..40 {
        let _ = writeln!(bomb, "a{number}: &a{number} [*a{0}, *a{0}]", number - 1);
    }
    refused(&bomb);
}
