//! Authorization: every route of the table, for every kind of caller, with own and foreign objects.

use engine::Store as _;
use serde_json::{Value, json};
use store::Rights;
use tickwright_server::{RouteLine, routes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::{Client, body};
use crate::kit::Bench;

/// A caller and its rights in the sample app.
struct Caller<'a> {
    name: &'static str,
    client: Client<'a>,
    kind: Kind,
    rights: Rights,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nobody,
    Person,
    Key,
    Admin,
}

/// Objects that paths name: of the sample app and its users, or of others.
struct Things {
    app: String,
    job: &'static str,
    run: i64,
    backfill: i64,
    user: &'static str,
    token: i64,
    key: i64,
    session: String,
}

impl Things {
    fn path(&self, route: &RouteLine) -> String {
        let id = match route.object {
            "token" => self.token.to_string(),
            "key" => self.key.to_string(),
            _ => self.session.clone(),
        };
        let named =
            [("{app}", self.app.clone()), ("{job}", self.job.into()), ("{run}", self.run.to_string())];
        let others = [("{name}", self.user.to_owned()), ("{id}", id), ("{step}", "load".to_owned())];
        let others =
            others.into_iter().chain([("{version}", "1".to_owned()), ("{calendar}", "cn".to_owned())]);
        let others = others.into_iter().chain([("{backfill}", self.backfill.to_string())]);
        let named = named.into_iter().chain(others);
        named.fold(route.path.to_owned(), |path, (name, value)| path.replace(name, &value))
    }
}

/// Returns the expected status of a call, as far as rights decide it.
fn expected(route: &RouteLine, caller: &Caller<'_>, is_own: bool) -> Option<u16> {
    let needed = match route.needs {
        "view" => Rights::VIEW,
        "operate" => Rights::OPERATE,
        "edit" => Rights::EDIT,
        "script" => Rights::SCRIPT,
        _ => Rights::NONE,
    };
    let is_of_app = matches!(route.object, "app" | "job" | "run" | "backfill");
    match () {
        () if route.plane == "open" => None,
        () if caller.kind == Kind::Nobody => Some(401),
        () if route.plane == "person" && caller.kind == Kind::Key => Some(403),
        () if route.needs == "admin" => (caller.kind != Kind::Admin).then_some(403),
        // A user sees only its own sessions; administrators see all keys.
        () if route.object == "session" => Some(404),
        () if route.object == "key" => (caller.kind != Kind::Admin).then_some(404),
        () if !is_of_app || caller.kind == Kind::Admin => None,
        () if !is_own || !caller.rights.contains(Rights::VIEW) => Some(404),
        () if !caller.rights.contains(needed) => Some(403),
        () => None,
    }
}

/// Returns the status of an answer; its body may never end.
async fn status(bench: &Bench, client: &Client<'_>, method: &str, path: &str) -> u16 {
    let (kind, body) = if method == "GET" { ("", "") } else { ("Content-Type: application/json\r\n", "{}") };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: centre\r\n{kind}{}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        client.headers,
        body.len()
    );
    let mut stream = TcpStream::connect(bench.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.unwrap();
    std::str::from_utf8(&head[9..]).unwrap().parse().unwrap()
}

async fn ensure_jobs(bench: &Bench) {
    let admin = bench.admin().await;
    admin.done("PUT", "/v1/work-calendars/cn", &json!({})).await;
    for (key, app) in [("own", bench.app.as_str()), ("foreign", "other1")] {
        admin.done("PUT", &format!("/v1/jobs/{key}"), &body(app, key)).await;
    }
}

async fn things(bench: &Bench) -> (Things, Things) {
    let admin = bench.admin().await;
    admin.done("PUT", "/v1/apps/other1", &json!({ "title": "Other" })).await;
    ensure_jobs(bench).await;
    let victim = bench.person("victim", Rights::VIEW).await;
    let key = json!({ "name": "k", "rights": ["view"] });
    let key = victim.post("/v1/keys", &key).await["id"].as_i64().unwrap();
    let session = victim.get("/v1/me/sessions").await[0]["id"].as_str().unwrap().to_owned();
    let mut things = Vec::new();
    for (app, job) in [(bench.app.as_str(), "own"), ("other1", "foreign")] {
        let run = admin.post(&format!("/v1/jobs/{job}/trigger"), &Value::Null).await["run"].as_i64().unwrap();
        let token = admin.post(&format!("/v1/apps/{app}/tokens"), &Value::Null).await["id"].as_i64().unwrap();
        let days = json!({ "from": "2026-01-01", "to": "2026-01-02" });
        let backfill =
            admin.post(&format!("/v1/jobs/{job}/backfills"), &days).await["backfill"]["id"].as_i64();
        let backfill = backfill.unwrap();
        let (app, session) = (app.to_owned(), session.clone());
        things.push(Things { app, job, run, backfill, user: "victim", token, key, session });
    }
    let foreign = things.pop().unwrap();
    (things.pop().unwrap(), foreign)
}

/// X8, X13, X14 of docs/security.md.
#[tokio::test]
async fn every_route_lets_in_exactly_who_may() {
    let bench = Bench::start().await;
    let (own, foreign) = things(&bench).await;
    let over = bench.person("gone", Rights::ALL).await;
    let editor = bench.person("editor", Rights::MEMBER).await;
    let key = editor.post("/v1/keys", &json!({ "name": "less", "rights": ["view"] })).await;
    let person = |name, client, rights| Caller { name, client, kind: Kind::Person, rights };
    let callers = [
        Caller { name: "nobody", client: bench.nobody(), kind: Kind::Nobody, rights: Rights::NONE },
        Caller { name: "expired", client: over.clone(), kind: Kind::Nobody, rights: Rights::NONE },
        person("stranger", bench.person("stranger", Rights::NONE).await, Rights::NONE),
        person("viewer", bench.person("viewer", Rights::VIEW).await, Rights::VIEW),
        person(
            "operator",
            bench.person("operator", Rights::VIEW.with(Rights::OPERATE)).await,
            Rights::VIEW.with(Rights::OPERATE),
        ),
        person("editor", editor, Rights::MEMBER),
        person("writer", bench.person("writer", Rights::ALL).await, Rights::ALL),
        Caller {
            name: "key",
            client: bench.bearer(key["key"].as_str().unwrap()),
            kind: Kind::Key,
            rights: Rights::VIEW,
        },
        Caller { name: "admin", client: bench.admin().await, kind: Kind::Admin, rights: Rights::ALL },
    ];
    over.done("DELETE", "/v1/session", &Value::Null).await;
    let mut table = routes();
    // Deletes last, because a job that is created again has other runs.
    table.sort_by_key(|route| route.method == "DELETE");
    for route in table {
        for (thing, is_own) in [(&own, true), (&foreign, false)] {
            let path = thing.path(&route);
            for caller in &callers {
                let wanted = expected(&route, caller, is_own);
                let destroys = route.method == "DELETE" && wanted.is_none();
                // Deleting objects that the other callers need is tested elsewhere.
                if destroys && (route.object != "job" || caller.kind == Kind::Admin) {
                    continue;
                }
                // For a caller that cannot see it, a used key looks like a free one.
                let wanted = match wanted {
                    Some(404) if (route.method, route.path) == ("PUT", "/v1/jobs/{job}") => {
                        Some(status(&bench, &caller.client, "PUT", "/v1/jobs/free").await)
                    }
                    wanted => wanted,
                };
                let found = status(&bench, &caller.client, route.method, &path).await;
                let case = format!("{} {path} as {}", route.method, caller.name);
                match wanted {
                    Some(wanted) => assert_eq!(found, wanted, "{case}"),
                    None => assert!(![401, 403, 404, 405, 500].contains(&found), "{case}: {found}"),
                }
                if destroys {
                    ensure_jobs(&bench).await;
                }
            }
        }
    }
    bench.stop().await;
}

/// X9, X10, X11, X12 of docs/security.md.
#[tokio::test]
async fn a_foreign_app_cannot_be_reached_through_a_body_or_a_query() {
    let bench = Bench::start().await;
    let (own, foreign) = things(&bench).await;
    let writer = bench.person("writer", Rights::ALL).await;
    let number = bench.database.job_by_key("foreign").await.unwrap().unwrap().id;
    let mut moved = body("other1", "own");
    assert_eq!(writer.refused("PUT", "/v1/jobs/own", &moved).await, "invalid_fields", "moving it there");
    assert_eq!(writer.refused("POST", "/v1/jobs", &moved).await, "invalid_fields", "adding one there");
    moved["app"] = json!(own.app);
    for child in [json!("foreign"), json!(number.to_string())] {
        moved["children"] = json!([child]);
        let there = writer.send("PUT", "/v1/jobs/own", &moved).await.json();
        moved["children"] = json!(["nothing"]);
        let nothing = writer.send("PUT", "/v1/jobs/own", &moved).await.json();
        assert_eq!(there["code"], "invalid_fields");
        assert_eq!(there["title"], nothing["title"], "what is foreign reads like what is not there");
    }
    moved["children"] = json!([]);
    assert_eq!(writer.refused("PUT", "/v1/jobs/foreign", &moved).await, "not_found", "taking one over");
    let bulk = json!({ "jobs": [number.0], "action": "delete" });
    assert_eq!(writer.post("/v1/jobs/bulk", &bulk).await[0]["problem"]["code"], "not_found");
    for clear in [
        json!({ "app": "other1", "before": "2096-01-01T00:00:00Z" }),
        json!({ "app": own.app, "job": "foreign", "before": "2096-01-01T00:00:00Z" }),
        json!({ "app": own.app, "job": format!("id:{number}"), "before": "2096-01-01T00:00:00Z" }),
    ] {
        assert_eq!(writer.refused("POST", "/v1/runs/clear", &clear).await, "invalid_fields", "{clear}");
    }
    for path in ["/v1/jobs?app=other1", "/v1/runs?app=other1", "/v1/runs?job=foreign"] {
        assert_eq!(writer.get(path).await["items"], json!([]), "{path}");
    }
    let runs = writer.get(&format!("/v1/runs?job=id:{number}")).await;
    assert_eq!(runs["items"], json!([]));
    assert_eq!(writer.get(&format!("/v1/statistics?job=id:{number}")).await["buckets"], json!([]));
    assert_eq!(writer.get("/v1/jobs").await["items"].as_array().unwrap().len(), 1);
    assert!(bench.database.run(engine::RunId(foreign.run)).await.unwrap().is_some());
    let overview = writer.get("/v1/overview").await;
    assert_eq!(overview["jobs"], 1);
    assert!(!overview.to_string().contains("foreign"), "{overview}");
    bench.stop().await;
}
