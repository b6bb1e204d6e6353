//! Colours and progress bars are for people: they are printed on a terminal only.

use std::process::{Command, Stdio};

use crate::kit::{APP, Centre, TICKWRIGHT};

/// Output of a command on a terminal, including all control sequences.
fn at_a_terminal(centre: &Centre, line: &str, variables: &[(&str, &str)]) -> String {
    // `script` runs the command in a terminal and captures its output.
    let mut command = Command::new("script");
    command.args(["-q", "-e", "-c", &format!("{TICKWRIGHT} {line}"), "/dev/null"]);
    command
        .env("XDG_CONFIG_HOME", centre.shell().home)
        .env("TICKWRIGHT_URL", &centre.url)
        .env("TERM", "xterm");
    command.env_remove("NO_COLOR").env_remove("TICKWRIGHT_API_KEY").envs(variables.iter().copied());
    let output = command.stdin(Stdio::null()).output().expect("`script` of util-linux is installed");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{line}: {shown}");
    shown
}

const COLOR: &str = "\x1b[";

#[test]
fn colours_come_to_a_terminal_unless_somebody_says_no() {
    let centre = Centre::signed_in();
    centre.says(&format!("job add stock/count --app {APP} --handler h --every 1h --start"));
    for line in ["job list", "app list", "job show stock/count"] {
        let shown = at_a_terminal(&centre, line, &[]);
        assert!(shown.contains(COLOR), "{line}: {shown:?}");
        let plain = at_a_terminal(&centre, line, &[("NO_COLOR", "1")]);
        assert!(!plain.contains(COLOR), "{line}: {plain:?}");
        assert!(at_a_terminal(&centre, line, &[("NO_COLOR", "")]).contains(COLOR), "empty means nothing");
        // In a pipe there are no colours; `says` checks that.
        assert!(!centre.says(line).is_empty());
        let json = at_a_terminal(&centre, &format!("{line} --output json"), &[]);
        assert!(!json.contains(COLOR), "{line}: what programs read has none: {json:?}");
    }
    centre.stop();
}

#[test]
fn progress_is_shown_at_a_terminal_and_not_in_a_pipe() {
    let centre = Centre::signed_in();
    for number in 0..3 {
        centre.says(&format!("job add stock/{number} --app {APP} --handler h"));
    }
    let file = centre.folder.path().join("jobs.yaml");
    let export = format!("export {}", file.display());
    assert!(at_a_terminal(&centre, &export, &[]).contains("reading"), "a bar at a terminal");
    let import = format!("import {}", file.display());
    assert!(at_a_terminal(&centre, &import, &[]).contains("importing"), "a bar at a terminal");
    for line in [export, import] {
        let quiet = centre.shell().run(&line);
        let said = format!("{}{}", quiet.stdout, quiet.stderr);
        quiet.succeeds();
        assert!(!said.contains("reading") && !said.contains("importing"), "{line}: {said}");
    }
    centre.stop();
}
