//! `tickwright calendar`, and jobs with work calendars.

use std::fs;

use serde_json::json;

use crate::kit::{APP, Centre};

#[test]
fn a_calendar_is_imported_shown_exported_and_used() {
    let centre = Centre::signed_in();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cn.csv");
    fs::write(&file, "2098-10-01,off,国庆节\n2098-10-11,work,国庆节\n").unwrap();
    let file = file.display();

    let dry = centre.says(&format!("calendar import cn {file} --dry-run"));
    assert!(dry.contains("cn: 2 days added, 0 replaced, 0 removed"), "{dry}");
    assert_eq!(centre.json("calendar list"), json!([]));
    centre.says(&format!("calendar import cn {file}"));
    let shown = centre.says("calendar show cn");
    assert!(shown.contains("2098-10-01  off   国庆节") && shown.contains("2098-12-31"), "{shown}");
    assert_eq!(
        centre.says("calendar export cn"),
        "date,kind,name\n2098-10-01,off,国庆节\n2098-10-11,work,国庆节\n"
    );
    let ical = folder.path().join("cn.ics");
    centre.says(&format!("calendar export cn {} --format ical", ical.display()));
    assert!(fs::read_to_string(&ical).unwrap().starts_with("BEGIN:VCALENDAR"));
    centre.says("calendar set cn --beyond stop --week Mon-Sat");
    let set = centre.json("calendar show cn");
    assert_eq!(
        (&set["beyond"], &set["week"], &set["day_count"]),
        (&json!("stop"), &json!("Mon-Sat"), &json!(2))
    );

    let add = "job add report --handler h --cron '0 0 9 1 10 ? 2098' --zone Asia/Shanghai --calendar cn --shift next";
    centre.says(&format!("{add} --app {APP}"));
    let next = centre.says("job next report");
    assert!(next.contains("2098-10-02T09:00:00+08:00"), "{next}");
    assert!(next.contains("2098-10-01T09:00:00  国庆节  (moved to "), "{next}");
    centre.shell().run("calendar rm cn").fails(1, "is used by job `report`");
    centre.says("job edit report --on off");
    let job = centre.json("job show report");
    assert_eq!(job["workdays"], json!({ "calendar": "cn", "on": "off", "shift": "next" }));

    let yaml = centre.says("export");
    assert!(yaml.contains("workdays:") && yaml.contains("calendar: cn"), "{yaml}");
    centre.says("job edit report --no-calendar");
    assert_eq!(centre.json("job show report")["workdays"], json!(null));
    centre.says("calendar rm cn");
    centre.shell().run("calendar show cn").fails(4, "this calendar does not exist");
    centre.shell().run("job edit report --shift next").fails(1, "set one with --calendar");
    centre.shell().run("job edit report --calendar us").fails(1, "the work calendar `us` does not exist");
    centre.stop();
}

#[test]
fn a_timetable_is_added_shown_and_exported() {
    let centre = Centre::signed_in();
    let rules = "--rule 'daily 9:00-17:30 every 30m on Mon-Fri' --rule 'workday -1 of month at 18:00'";
    centre.says(&format!("job add office --app {APP} --handler h --zone Europe/London {rules}"));
    let job = centre.json("job show office");
    let expected = json!(["daily 09:00-17:30 every 30m on Mon-Fri", "workday -1 of month at 18:00"]);
    assert_eq!((&job["schedule"]["kind"], &job["schedule"]["rules"]), (&json!("timetable"), &expected));
    let next = centre.says("job next office");
    assert!(next.starts_with("Every 30 minutes from 09:00 to 17:30, Mon-Fri; On the last workday"), "{next}");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.yaml").display().to_string();
    centre.says(&format!("export {file}"));
    centre.says("job rm office --yes");
    centre.says(&format!("import {file}"));
    assert_eq!(centre.json("job show office")["schedule"], job["schedule"]);
    centre.says("job edit office --zone UTC");
    assert_eq!(
        centre.json("job show office")["schedule"]["rules"],
        expected,
        "an edit of the zone keeps the rules"
    );
    centre.shell().run("job edit office --rule hourly").fails(1, "rule 1: `hourly` is not a rule");
    centre.stop();
}
