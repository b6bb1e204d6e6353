//! `tickwright key`.

use std::os::unix::fs::PermissionsExt;

use crate::kit::{APP, Centre, Shell};

#[test]
fn a_key_is_shown_once_opens_what_it_may_and_ends_when_it_is_deleted() {
    let centre = Centre::signed_in();
    let made = centre.json(&format!("key add reader --app {APP} --expires 90d"));
    let (id, secret) = (made["id"].as_i64().unwrap(), made["key"].as_str().unwrap().to_owned());
    let program = |key: &str| Shell { key: Some(key.into()), ..centre.shell() };
    program(&secret).run("job list").succeeds();
    program(&secret).run(&format!("job add x --app {APP} --handler h")).fails(3, "job `x`: ");

    let keys = centre.json("key list");
    assert_eq!(keys[0]["rights"], serde_json::json!(["view"]));
    assert_eq!(keys[0]["apps"], serde_json::json!([APP]));
    assert!(keys[0]["expires_at"].is_string() && !keys.to_string().contains(&secret), "{keys}");
    let listed = centre.says("key list");
    assert!(listed.starts_with("KEY") && listed.contains("reader") && !listed.contains(&secret), "{listed}");

    let file = centre.folder.path().join("writer.key");
    let line = format!("key add writer --rights edit,operate --to {}", file.display());
    assert_eq!(centre.says(&line), "", "a key that goes to a file is shown nowhere");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let writer = std::fs::read_to_string(&file).unwrap();
    program(writer.trim()).run(&format!("job add x --app {APP} --handler h")).succeeds();

    centre.shell().run(&format!("key rm {id}")).fails(1, "add --yes to confirm");
    assert_eq!(centre.says(&format!("key rm {id} --yes")), format!("key {id} deleted\n"));
    program(&secret).run("job list").fails(3, "TICKWRIGHT_API_KEY");
    centre.shell().run(&format!("key rm {id} --yes")).fails(4, &format!("key {id}: "));
    centre.shell().run("key add x --app nobodys").fails(1, "the app `nobodys` does not exist");
    centre.shell().run("key add x --rights all").fails(2, "view, operate, edit, script");
    // An API key cannot create keys.
    program(writer.trim()).run("key list").fails(3, "");
    centre.stop();
}
