//! Work calendars: saved, imported, exported, and kept to by jobs.

use serde_json::{Value, json};
use store::Rights;

use super::client::body;
use crate::kit::Bench;

/// Fires of a job, as local times without their offsets.
fn locals(preview: &Value) -> Vec<String> {
    let fires = preview["fires"].as_array().unwrap();
    fires.iter().map(|fire| fire["local"].as_str().unwrap()[..16].to_owned()).collect()
}

/// National Day of 2098 in the form of Chinese feeds: Wednesday to Friday off, and a Saturday to work.
fn feed() -> String {
    let day = |date: &str, off: bool| json!({ "name": "国庆节", "date": date, "isOffDay": off });
    let days =
        [day("2098-10-01", true), day("2098-10-02", true), day("2098-10-03", true), day("2098-10-11", false)];
    json!({ "year": 2098, "days": days }).to_string()
}

#[tokio::test]
async fn an_import_shows_what_moves_and_moves_it() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let made = admin.send("PUT", "/v1/work-calendars/cn", &json!({})).await;
    assert_eq!((made.status, &made.json()["week"]), (201, &json!("Mon-Fri")), "{made:?}");

    let mut job = body(&bench.app, "Report");
    job["schedule"] = json!({ "kind": "cron", "expression": "0 0 9 1 10 ?", "zone": "Asia/Shanghai" });
    job["workdays"] = json!({ "calendar": "cn", "shift": "next" });
    job["valid_from"] = json!("2098-01-01T00:00:00Z");
    job["enabled"] = json!(true);
    let saved = admin.send("PUT", "/v1/jobs/report", &job).await;
    assert_eq!(saved.status, 201, "{saved:?}");
    assert_eq!(saved.json()["workdays"], json!({ "calendar": "cn", "on": "work", "shift": "next" }));
    assert!(
        saved.json()["schedule_text"]
            .as_str()
            .unwrap()
            .ends_with(", on workdays of cn, else on the next one")
    );
    assert_eq!(locals(&admin.get("/v1/jobs/report/fires?count=1").await), ["2098-10-01T09:00"]);

    let path = "/v1/work-calendars/cn/import";
    let dry = admin.post(path, &json!({ "text": feed(), "dry_run": true })).await;
    assert_eq!((&dry["added"], &dry["removed"]), (&json!(4), &json!(0)));
    let moved = &dry["jobs"][0];
    assert_eq!((&moved["key"], &moved["removed"]), (&json!("report"), &json!(["2098-10-01T01:00:00.000Z"])));
    // The 4th and 5th are a weekend.
    assert_eq!(moved["added"], json!(["2098-10-06T01:00:00.000Z"]));
    assert_eq!(locals(&admin.get("/v1/jobs/report/fires?count=1").await), ["2098-10-01T09:00"]);

    let done = admin.post(path, &json!({ "text": feed() })).await;
    assert_eq!(done["calendar"]["known_until"], "2098-12-31");
    let fires = admin.get("/v1/jobs/report/fires?count=1").await;
    assert_eq!(locals(&fires), ["2098-10-06T09:00"]);
    let excluded = &fires["excluded"][0];
    assert_eq!((&excluded["local"], &excluded["holiday"]), (&json!("2098-10-01T09:00:00"), &json!("国庆节")));
    assert_eq!(excluded["moved_to"], "2098-10-06T01:00:00.000Z");
    assert_eq!(admin.get("/v1/jobs/report").await["next_fire_at"], "2098-10-06T01:00:00.000Z");

    let preview = json!({
        "schedule": { "kind": "timetable", "rules": ["workday 1 of month at 09:00"], "zone": "Asia/Shanghai" },
        "workdays": { "calendar": "cn" },
        "after": "2098-09-20T00:00:00Z",
        "count": 5,
    });
    let shown = admin.post("/v1/schedules/preview", &preview).await;
    assert_eq!(locals(&shown)[0], "2098-10-06T09:00", "{shown}");
    assert_eq!(shown["fires"][4]["is_assumed"], json!(true), "the data ends with the year");
    assert_eq!(admin.get("/v1/work-calendars").await[0]["jobs"], json!(1));
}

#[tokio::test]
async fn a_calendar_is_exported_replaced_and_deleted() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let import = json!({ "text": "2098-10-01,off,国庆节\n2098-10-11,work,国庆节\n" });
    assert_eq!(
        admin.post("/v1/work-calendars/cn/import", &import).await["added"],
        json!(2),
        "a new calendar"
    );
    let csv = admin.send("GET", "/v1/work-calendars/cn/export", &Value::Null).await;
    assert!(csv.body.contains("2098-10-01,off,国庆节"), "{csv:?}");
    for format in ["ical", "json"] {
        let file =
            admin.send("GET", &format!("/v1/work-calendars/cn/export?format={format}"), &Value::Null).await;
        let again = json!({ "text": file.body, "replace": true });
        let done = admin.post("/v1/work-calendars/cn/import", &again).await;
        assert_eq!((&done["added"], &done["replaced"], &done["removed"]), (&json!(0), &json!(0), &json!(0)));
    }

    let found = admin.send("GET", "/v1/work-calendars/cn", &Value::Null).await;
    let stale = admin.with("If-Match: \"1\"").send("PUT", "/v1/work-calendars/cn", &json!({})).await;
    assert_eq!((stale.status, &stale.json()["code"]), (412, &json!("outdated")), "{found:?}");

    let mut job = body(&bench.app, "Report");
    job["schedule"] = json!({ "kind": "cron", "expression": "0 0 9 * * ?" });
    job["workdays"] = json!({ "calendar": "cn" });
    admin.done("PUT", "/v1/jobs/report", &job).await;
    let used = admin.send("DELETE", "/v1/work-calendars/cn", &Value::Null).await;
    assert_eq!(used.status, 409, "{used:?}");
    job["workdays"] = Value::Null;
    admin.done("PUT", "/v1/jobs/report", &job).await;
    assert_eq!(admin.send("DELETE", "/v1/work-calendars/cn", &Value::Null).await.status, 204);

    let viewer = bench.person("viewer", Rights::VIEW).await;
    assert_eq!(viewer.get("/v1/work-calendars").await, json!([]));
    assert_eq!(viewer.send("PUT", "/v1/work-calendars/cn", &json!({})).await.status, 403);
}

#[tokio::test]
async fn what_is_wrong_with_a_calendar_is_said() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let import = async |text: &str| {
        let answer = admin.send("POST", "/v1/work-calendars/cn/import", &json!({ "text": text })).await;
        (answer.status, answer.json()["fields"][0]["detail"].as_str().unwrap_or_default().to_owned())
    };
    let check = async |text: &str, expected: &str| {
        let (status, detail) = import(text).await;
        assert!(status == 422 && detail.contains(expected), "{status} {detail}");
    };
    check("2026-10-01,holiday", "line 1: `holiday` is not a kind of day").await;
    check("2026-10-01,off\n2026-10-01,work", "2026-10-01 is both a workday and a day off").await;
    check("", "no holidays or workdays").await;
    check("BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:x\nDTSTART;VALUE=DATE:20260101\nRRULE:FREQ=DAILY\nEND:VEVENT\nEND:VCALENDAR", "RRULE").await;
    let huge = "x".repeat(10 * 1_024 * 1_024);
    let answer = admin.send("POST", "/v1/work-calendars/cn/import", &json!({ "text": huge })).await;
    assert_eq!(answer.status, 413, "{answer:?}");
    assert_eq!(admin.get("/v1/work-calendars").await, json!([]), "nothing was created");

    let mut job = body(&bench.app, "Report");
    job["workdays"] = json!({ "calendar": "cn" });
    job["schedule"] = json!({ "kind": "cron", "expression": "0 0 9 * * ?" });
    let refused = admin.send("PUT", "/v1/jobs/report", &job).await;
    assert_eq!(refused.json()["fields"][0]["field"], "workdays.calendar", "{refused:?}");
    admin.done("PUT", "/v1/work-calendars/cn", &json!({ "week": "Mon-Thu,Sun" })).await;
    job["schedule"] = json!({ "kind": "fixed_rate", "every_ms": 60_000 });
    let refused = admin.send("PUT", "/v1/jobs/report", &job).await;
    assert_eq!(refused.json()["fields"][0]["field"], "workdays", "{refused:?}");
}
