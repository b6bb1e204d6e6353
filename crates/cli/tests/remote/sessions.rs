//! `tickwright login` and `logout`, and keys for programs.

use std::os::unix::fs::PermissionsExt;

use crate::kit::{APP, Centre, Shell};

#[test]
fn a_session_is_kept_where_nobody_else_can_read_it_until_the_end() {
    let centre = Centre::start();
    centre.shell().run("job list").fails(3, &format!("run: tickwright login {}", centre.url));
    let said = centre.shell().input(&centre.password).run("login --user admin").succeeds();
    assert_eq!(said, format!("signed in to {} as admin\n", centre.url));
    let file = centre.shell().home.join("tickwright/sessions.toml");
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(file.clone()), 0o600);
    assert_eq!(mode(file.parent().unwrap().to_owned()), 0o700);
    assert!(!std::fs::read_to_string(&file).unwrap().contains(&centre.password));

    // After signing in, the address is optional.
    let shell = Shell { url: None, ..centre.shell() };
    shell.run("job list").succeeds();
    // A file that others can read is rejected.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    shell.run("job list").fails(1, "chmod 600");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();

    let session = std::fs::read_to_string(&file).unwrap();
    assert_eq!(shell.run("logout").succeeds(), format!("signed out of {}\n", centre.url));
    centre.shell().run("job list").fails(3, "not signed in");
    // The session has ended on the server, too.
    std::fs::write(&file, session).unwrap();
    centre.shell().run("job list").fails(3, "not signed in");
    centre.stop();
}

#[test]
fn a_session_goes_to_no_other_centre() {
    let (centre, other) = (Centre::signed_in(), Centre::start());
    let shell = Shell { url: Some(other.url.clone()), ..centre.shell() };
    shell.run("job list").fails(3, &format!("run: tickwright login {}", other.url));
    shell.run("logout").fails(1, "not signed in to");
    centre.stop();
    other.stop();
}

#[test]
fn a_program_comes_with_a_key_and_has_no_more_rights_than_it() {
    let centre = Centre::signed_in();
    let file = std::fs::read_to_string(centre.shell().home.join("tickwright/sessions.toml")).unwrap();
    let session = file.lines().find_map(|line| line.strip_prefix("session = ")).unwrap().trim_matches('"');
    let key = centre.post("/v1/keys", session, r#"{"name":"reader","rights":["view"]}"#);
    let key = key["key"].as_str().unwrap().to_owned();
    let home = centre.folder.path().join("nobody");
    let shell = Shell { home, key: Some(key), ..centre.shell() };
    assert_eq!(shell.run("job list --output json").succeeds(), "[]\n");
    shell.run(&format!("job add x --app {APP} --handler h")).fails(3, "job `x`: ");
    centre.stop();
}

#[test]
fn a_password_or_key_that_is_wrong_is_told_so() {
    let centre = Centre::start();
    centre.shell().input("wrong").run("login --user admin").fails(3, "wrong user name or password");
    centre.shell().run("login --user admin").fails(1, "no password;");
    centre.shell().input("x").run("login").fails(1, "missing --user");
    let shell = Shell { key: Some("tw_0000".into()), ..centre.shell() };
    shell.run("job list").fails(3, "TICKWRIGHT_API_KEY");
    centre.stop();
}
