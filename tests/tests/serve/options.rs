//! Every option of docs/options.md, set on a running program, with its effect observed from outside.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tickwright_tests::database::Database;
use tickwright_tests::process::until;
use tickwright_tests::serve::{
    Certificate, Client, Folder, MailServer, Security, Serve, Served, WAIT_MAX, WebServer,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const APP: &str = "tickwright-sample";
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Response of an executor that accepts everything.
const YES: Option<&str> = Some(r#"{"code":200,"msg":null}"#);

/// Makes a test of each function, and a list of their names.
macro_rules! cases {
    ($($name:ident),+ $(,)?) => {
        const CASES: &[&str] = &[$(stringify!($name)),+];
        mod each {
            $(#[tokio::test] async fn $name() { super::$name().await; })+
        }
    };
}

cases! {
    config, listen, database_url, data_dir, key_file, node, zone, token, allow_weak_token, allow_no_token,
    executor_networks, allow_scripts, declared_jobs, call_timeout, executor_ca, executor_any_certificate, connections,
    java_admins, alert_mail, alert_from, alert_webhook, alert_late_after, sample, keep_runs, keep_runs_max,
    min_interval, max_open_runs, database_wait, tls_cert, tls_key, behind_proxy, insecure_http, hostnames,
}

#[test]
fn every_option_of_the_page_has_a_case() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/options.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `--"));
    let options: Vec<String> =
        rows.map(|row| row.split([' ', '`']).next().unwrap_or_default().replace('-', "_")).collect();
    assert!(options.len() > 20, "the page lists options in a table: {options:?}");
    for option in &options {
        assert!(
            CASES.contains(&option.as_str()),
            "docs/options.md lists `--{}`, and no test sets it: in {}, write `async fn {option}()`, which starts the \
             program with the option (`Serve::new().unwrap().with(\"…\", \"…\").start()`) and asserts what the option \
             changes for a user, and add `{option}` to `cases!`",
            option.replace('_', "-"),
            file!(),
        );
    }
    for case in CASES {
        assert!(
            options.iter().any(|option| option == case),
            "docs/options.md has no row for the option of `{case}`"
        );
    }
}

// ── Address and files ───────────────────────────────────────────────────────────────────────────────────────────

async fn config() {
    let serve = Serve::new().unwrap();
    let file = serve.path("options.toml");
    fs::write(&file, "node = 'from-file'\nzone = 'Asia/Shanghai'\nallow-scripts = true\n").unwrap();
    let serve =
        serve.with("config", &file.display().to_string()).variable("TICKWRIGHT_ZONE", "Europe/Berlin");
    let about = about(&serve.start().await.unwrap()).await;
    assert_eq!((&about["node"], &about["scripts"]), (&json!("from-file"), &json!(true)));
    assert_eq!(about["zone"], "Europe/Berlin", "a variable overrides the file");
}

async fn listen() {
    let served = serve().with("listen", "127.0.0.2:0").start().await.unwrap();
    assert_eq!(served.address().ip().to_string(), "127.0.0.2");
    assert_eq!(served.ask("GET", "/healthz", "", "").await.unwrap().status(), 200);
}

async fn database_url() {
    let serve = serve();
    let file = serve.path("elsewhere.db");
    let served = serve.with("database-url", &format!("sqlite:{}", file.display())).start().await.unwrap();
    served.sign_in().await.unwrap();
    assert!(file.exists() && !served.data_dir().join("tickwright.db").exists());
    for database in Database::available() {
        let home = database.create().await.unwrap();
        let served = self::serve().with("database-url", &home.url()).start().await.unwrap();
        let expected = match database {
            Database::Sqlite => "sqlite",
            Database::MySql { .. } => "mysql",
            Database::Postgres { .. } => "postgres",
        };
        assert_eq!(about(&served).await["database"], expected);
        served.stop().await.unwrap();
        home.remove().await.unwrap();
    }
}

async fn data_dir() {
    let serve = serve();
    let folder = serve.path("here");
    let served = serve.with("data-dir", &folder.display().to_string()).start().await.unwrap();
    for name in ["tickwright.db", "tickwright.key", "initial-credentials.txt"] {
        assert!(folder.join(name).exists(), "{name}");
    }
    assert_eq!(mode(&folder), 0o700);
    drop(served);
}

async fn key_file() {
    let serve = serve();
    let file = serve.path("key/of-the-cluster");
    let served = serve.with("key-file", &file.display().to_string()).start().await.unwrap();
    assert_eq!(mode(&file), 0o600);
    assert!(!served.data_dir().join("tickwright.key").exists());
}

async fn hostnames() {
    let served = serve().with("hostnames", "centre.example.com").start().await.unwrap();
    for (host, expected) in
        [("centre.example.com", "200"), ("other.example.com", "421"), ("127.0.0.1", "200")]
    {
        let mut stream = TcpStream::connect(served.address()).await.unwrap();
        let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer.split(' ').nth(1), Some(expected), "{host}: {answer}");
    }
}

async fn node() {
    let served = serve().with("node", "north-1").start().await.unwrap();
    assert_eq!(about(&served).await["node"], "north-1");
    let nodes = served.sign_in().await.unwrap().get("/v1/nodes").await.unwrap();
    assert_eq!(nodes[0]["name"], "north-1");
}

async fn zone() {
    let served = serve().with("zone", "Asia/Shanghai").start().await.unwrap();
    let client = served.sign_in().await.unwrap();
    let noon = json!({ "schedule": { "kind": "cron", "expression": "0 0 12 * * ?" } });
    let preview = client.done("POST", "/v1/schedules/preview", &noon).await.unwrap();
    assert!(preview["fires"][0]["local"].as_str().unwrap().ends_with("T12:00:00+08:00"), "{preview}");
}

// ── Executors ───────────────────────────────────────────────────────────────────────────────────────────────────

async fn token() {
    let served = serve().with("token", TOKEN).start().await.unwrap();
    let client = served.sign_in().await.unwrap();
    client.done("PUT", "/v1/apps/shared", &json!({ "title": "Shared" })).await.unwrap();
    assert_eq!(served.register("shared", TOKEN, NOWHERE).await.unwrap().0, 200);
    assert_ne!(served.register("shared", "fedcba9876543210fedcba9876543210", NOWHERE).await.unwrap().0, 200);
}

async fn allow_weak_token() {
    let weak = || serve().with("token", "default_token");
    let (started, said) = weak().run("serve").await.unwrap();
    assert!(!started && said.contains("--allow-weak-token"), "{said}");
    let served = weak().with("allow-weak-token", "true").start().await.unwrap();
    let client = served.sign_in().await.unwrap();
    client.done("PUT", "/v1/apps/shared", &json!({ "title": "Shared" })).await.unwrap();
    assert_eq!(served.register("shared", "default_token", NOWHERE).await.unwrap().0, 200);
}

async fn allow_no_token() {
    for allowed in [false, true] {
        let served = serve().with("allow-no-token", &allowed.to_string()).start().await.unwrap();
        let client = served.sign_in().await.unwrap();
        client.done("PUT", "/v1/apps/open", &json!({ "title": "Open" })).await.unwrap();
        let (code, said) = served.register("open", "", NOWHERE).await.unwrap();
        assert_eq!(code == 200, allowed, "{code} {said}");
    }
}

async fn executor_networks() {
    let served = serve().with("executor-networks", "127.0.1.0/24,127.0.2.0/24").start().await.unwrap();
    let client = served.sign_in().await.unwrap();
    client.app("inside", "http://127.0.2.9:9999/").await.unwrap();
    let addressing = json!({ "kind": "manual", "addresses": ["http://127.0.0.1:9999/"] });
    let outside = json!({ "title": "Outside", "addressing": addressing });
    let (status, answer) = client.call("PUT", "/v1/apps/outside", &outside).await.unwrap();
    assert!(status == 422 && answer.to_string().contains("127.0.0.1 is not allowed"), "{status} {answer}");

    // An executor outside these networks is rejected, and logged as that: it never was one that left.
    let token = served.credential("xxl.job.accessToken").unwrap();
    let (outside, inside) = ("http://127.0.0.1:9999/", "http://127.0.1.9:9999/");
    let (code, why) = served.register(APP, &token, outside).await.unwrap();
    assert!(code == 500 && why.contains("outside the networks in --executor-networks"), "{code} {why}");
    for executor in [outside, inside] {
        let registration =
            json!({ "registryGroup": "EXECUTOR", "registryKey": APP, "registryValue": executor });
        if executor == inside {
            assert_eq!(served.register(APP, &token, executor).await.unwrap().0, 200);
        }
        assert_eq!(served.executor_call("registryRemove", &token, &registration).await.unwrap().0, 200);
    }
    let said = until("the log has the last line", WAIT_MAX, async || {
        Some(served.said()).filter(|said| said.contains("executor unregistered"))
    });
    let said = said.await.unwrap();
    let lines = |text: &str| said.lines().filter(|line| line.contains(text)).collect::<Vec<_>>();
    let (rejected, unregistered) = (lines("executor rejected"), lines("executor unregistered"));
    assert!(rejected.len() == 1 && rejected[0].contains(outside), "{said}");
    assert!(unregistered.len() == 1 && unregistered[0].contains(inside), "{said}");
}

async fn allow_scripts() {
    let script = json!({ "language": "shell", "source": "echo hello" });
    let job = json!({ "app": APP, "name": "Script", "schedule": { "kind": "none" }, "script": script });
    for allowed in [false, true] {
        let served = serve().with("allow-scripts", &allowed.to_string()).start().await.unwrap();
        let client = served.sign_in().await.unwrap();
        let (status, answer) = client.call("PUT", "/v1/jobs/script", &job).await.unwrap();
        assert_eq!(status, if allowed { 201 } else { 422 }, "{answer}");
    }
}

async fn declared_jobs() {
    let schedule = json!({ "kind": "fixed_rate", "every_ms": 3_600_000 });
    let said = json!({
        "registryKey": APP, "address": NOWHERE, "handlers": ["sync"],
        "jobs": [{ "handler": "sync", "schedule": schedule }]
    });
    // For an executor with the app's own token, and for one with the shared token of all apps.
    for (value, own, shared) in [("none", false, false), ("own-token", true, false), ("all", true, true)] {
        for (is_own, allowed) in [(true, own), (false, shared)] {
            let serve = serve().with("declared-jobs", value).with("token", TOKEN);
            let served = serve.start().await.unwrap();
            let client = served.sign_in().await.unwrap();
            let token = if is_own { served.credential("xxl.job.accessToken").unwrap() } else { TOKEN.into() };
            served.executor_call("declare", &token, &said).await.unwrap();
            let jobs = client.get("/v1/jobs?handler=sync").await.unwrap();
            let count = jobs["items"].as_array().unwrap().len();
            assert_eq!(count, usize::from(allowed), "{value}, own token: {is_own}");
        }
    }
}

async fn call_timeout() {
    let silent = WebServer::start(None).await.unwrap();
    let served = serve().with("call-timeout", "1500ms").start().await.unwrap();
    let (code, detail) = check_executor(&served, &silent.url()).await;
    assert_eq!(code, "no_answer", "{detail}");
    assert!(detail.contains("within 1.5s"), "{detail}");
    let (started, said) = serve().with("call-timeout", "11s").run("serve").await.unwrap();
    assert!(!started && said.contains("it must be 1s to 10s"), "{said}");
}

async fn executor_ca() {
    let serve = serve();
    let certificate = Certificate::create(&serve.path(".")).unwrap();
    let executor = https_executor(&certificate);
    let served = serve.start().await.unwrap();
    assert_eq!(check_executor(&served, &executor).await.0, "tls_failed");
    let authority = certificate.certificate.display().to_string();
    let trusting = self::serve().with("executor-ca", &authority).start().await.unwrap();
    assert_eq!(check_executor(&trusting, &executor).await.0, "", "no trouble");
}

async fn executor_any_certificate() {
    let serve = serve();
    let executor = https_executor(&Certificate::create(&serve.path(".")).unwrap());
    let served = serve.with("executor-any-certificate", "true").start().await.unwrap();
    assert_eq!(check_executor(&served, &executor).await.0, "", "no trouble");
}

// ── The database ────────────────────────────────────────────────────────────────────────────────────────────────

async fn connections() {
    for database in Database::available() {
        if matches!(database, Database::Sqlite) {
            continue;
        }
        let home = database.create().await.unwrap();
        let few = peak_connections(&home.url(), 2, |_| false).await;
        // One more connection is always open: through it other nodes notice when this one dies.
        assert!(few <= 3, "{}: {few} connections with --connections 2", database.name());
        let many = peak_connections(&home.url(), 12, |peak| peak > 3).await;
        assert!((4..=13).contains(&many), "{}: {many} connections with --connections 12", database.name());
        home.remove().await.unwrap();
    }
    let (started, said) = serve().with("connections", "0").run("serve").await.unwrap();
    assert!(!started && said.contains("connections is 0; it must be 1 or more"), "{said}");
}

/// Starts the program behind a counting proxy, sends many requests at once, and returns the peak number of open
/// connections. Ends when that is enough, or after [`ROUNDS`] rounds.
async fn peak_connections(database: &str, option: usize, is_enough: impl Fn(usize) -> bool) -> usize {
    let (before, rest) = database.split_once('@').unwrap();
    let (server, name) = rest.split_once('/').unwrap();
    let counter = Arc::new(Counter::default());
    let proxy = counting_proxy(server.to_owned(), counter.clone()).await;
    let url = format!("{before}@{proxy}/{name}");
    let serve = serve().with("database-url", &url).with("connections", &option.to_string());
    // Both starts use one database, and only the first finds it new.
    let key = std::env::temp_dir().join(format!("tickwright-key-{name}"));
    let serve = serve.with("key-file", &key.display().to_string());
    let served = serve.start().await.unwrap();
    for _ in 0..ROUNDS {
        // Endpoints that read the database without credentials are rate limited; wrong executor tokens do not reach
        // it.
        let asks = (0..24).map(|_| async { served.ask("GET", "/readyz", "", "").await });
        futures_util::future::join_all(asks).await;
        let asks = (0..24).map(|number| {
            let user = json!({ "user": format!("nobody-{number}"), "password": "x" }).to_string();
            let served = &served;
            async move { served.ask("POST", "/v1/session", "Content-Type: application/json\r\n", &user).await }
        });
        futures_util::future::join_all(asks).await;
        if is_enough(counter.peak.load(Ordering::SeqCst)) {
            break;
        }
    }
    let peak = counter.peak.load(Ordering::SeqCst);
    served.stop().await.unwrap();
    let _ = fs::remove_file(key);
    peak
}

/// Rounds of requests to the centre while its connections are counted.
const ROUNDS: usize = 10;

#[derive(Default)]
struct Counter {
    open: AtomicUsize,
    peak: AtomicUsize,
}

async fn counting_proxy(server: String, counter: Arc<Counter>) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let (server, counter) = (server.clone(), counter.clone());
            tokio::spawn(async move {
                let Ok(mut far) = TcpStream::connect(&server).await else { return };
                let open = counter.open.fetch_add(1, Ordering::SeqCst) + 1;
                counter.peak.fetch_max(open, Ordering::SeqCst);
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                counter.open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    address
}

async fn java_admins() {
    // Nodes that take turns with Java admins use the row `schedule_lock`; without it they must not claim.
    for (value, takes_turns) in [("none", false), ("beside", true)] {
        let mut executor = WebServer::start(YES).await.unwrap();
        let served = serve().with("java-admins", value).start().await.unwrap();
        let client = served.sign_in().await.unwrap();
        client.app("shop", &executor.url()).await.unwrap();
        let database = rusqlite::Connection::open(served.data_dir().join("tickwright.db")).unwrap();
        database.busy_timeout(WAIT_MAX).unwrap();
        database.execute("DELETE FROM xxl_job_lock", []).unwrap();
        every_second(&client, json!({})).await;
        match takes_turns {
            false => drop(executor.next("/run").await.unwrap()),
            true => until("it says why it does not claim", WAIT_MAX, async || {
                served.said().contains("xxl_job_lock has no row `schedule_lock`").then_some(())
            })
            .await
            .unwrap(),
        }
    }
}

async fn keep_runs() {
    is_pruned(serve().with("keep-runs", "1s"), 0).await;
}

async fn keep_runs_max() {
    is_pruned(serve().with("keep-runs-max", "2"), 2).await;
}

async fn min_interval() {
    let served = serve().with("min-interval", "5s").start().await.unwrap();
    let client = served.sign_in().await.unwrap();
    let each = |ms: u64| json!({ "app": APP, "name": "Fast", "handler": "fast", "schedule": { "kind": "fixed_rate", "every_ms": ms } });
    let (status, answer) = client.call("PUT", "/v1/jobs/fast", &each(4_999)).await.unwrap();
    assert!(
        (400..500).contains(&status) && answer.to_string().contains("--min-interval"),
        "{status} {answer}"
    );
    client.done("PUT", "/v1/jobs/fast", &each(5_000)).await.unwrap();
}

async fn max_open_runs() {
    let executor = WebServer::start(YES).await.unwrap();
    let served = serve().with("max-open-runs", "1").start().await.unwrap();
    let client = served.sign_in().await.unwrap();
    client.app("crowded", &executor.url()).await.unwrap();
    let job = json!({ "app": "crowded", "name": "Busy", "handler": "busy", "schedule": { "kind": "none" } });
    client.done("PUT", "/v1/jobs/busy", &job).await.unwrap();
    // The executor accepts runs and reports no result.
    let refused = until("a run is refused", WAIT_MAX, async || {
        let (status, answer) = client.call("POST", "/v1/jobs/busy/trigger", &json!({})).await.ok()?;
        (status >= 400).then_some(answer.to_string())
    });
    let refused = refused.await.unwrap();
    assert!(refused.contains("--max-open-runs"), "{refused}");
}

async fn database_wait() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("mysql://user:secret@{}/tickwright", listener.local_addr().unwrap());
    // A database that is not available yet: it closes every connection.
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = attempts.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            drop(stream);
        }
    });
    let (started, said) =
        serve().with("database-url", &url).with("database-wait", "3s").run("serve").await.unwrap();
    assert!(!started && said.contains("database"), "{said}");
    let waiting = attempts.swap(0, Ordering::SeqCst);
    let (started, _) =
        serve().with("database-url", &url).with("database-wait", "0s").run("serve").await.unwrap();
    let at_once = attempts.load(Ordering::SeqCst);
    assert!(!started && waiting > at_once, "{waiting} attempts in 3 s, {at_once} at once");
}

/// Some runs finish, and all but `kept` are deleted.
async fn is_pruned(serve: Serve, kept: usize) {
    let served = serve.start().await.unwrap();
    let client = served.sign_in().await.unwrap();
    let count = |page: &Value| page["items"].as_array().map_or(0, Vec::len);
    let job = json!({ "app": APP, "name": "Nothing", "handler": "nothing", "schedule": { "kind": "none" } });
    client.done("PUT", "/v1/jobs/nothing", &job).await.unwrap();
    for _ in 0..5 {
        // No executor is available, so each run finishes immediately.
        client.done("POST", "/v1/jobs/nothing/trigger", &json!({})).await.unwrap();
    }
    client.get_until("/v1/runs?state=failed", |page| count(page) == 5).await.unwrap();
    client.get_within(PRUNE_MAX, "/v1/runs", |page| count(page) == kept).await.unwrap();
}

/// Old runs are deleted once a minute.
const PRUNE_MAX: Duration = Duration::from_secs(180);

// ── Alerts ──────────────────────────────────────────────────────────────────────────────────────────────────────

async fn alert_mail() {
    let Some(mut server) = MailServer::start(Security::Plain, None).await.unwrap() else { return };
    // A secret should be in a file.
    let serve = serve();
    let file = serve.path("mail");
    fs::write(&file, format!("smtp://127.0.0.1:{}", server.port)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let served = serve.with("alert-mail", &format!("file:{}", file.display())).start().await.unwrap();
    raise_alert(&served).await;
    let mail = server.next().await.unwrap();
    assert_eq!((mail.to, mail.from.as_str()), (vec!["ops@example.com".into()], "tickwright@localhost"));
    let (started, said) = self::serve().with("alert-mail", "mail.example.com").run("serve").await.unwrap();
    assert!(!started && said.contains("use for example smtps://user:password@host:465"), "{said}");
}

async fn alert_from() {
    let Some(mut server) = MailServer::start(Security::Plain, None).await.unwrap() else { return };
    let serve = serve().with("alert-mail", &format!("smtp://127.0.0.1:{}", server.port));
    let served = serve.with("alert-from", "Jobs <jobs@example.com>").start().await.unwrap();
    raise_alert(&served).await;
    let mail = server.next().await.unwrap();
    assert_eq!(
        (mail.from.as_str(), &mail.header("From")[..]),
        ("jobs@example.com", &["Jobs <jobs@example.com>"][..])
    );
    let serve = self::serve().with("alert-mail", "smtp://127.0.0.1:1").with("alert-from", "a@b\r\nBcc: c@d");
    let (started, said) = serve.run("serve").await.unwrap();
    assert!(!started && said.contains("is not a mail address for the sender of alerts"), "{said}");
}

async fn alert_webhook() {
    let mut program = WebServer::start(Some("{}")).await.unwrap();
    let mut room = WebServer::start(Some(r#"{"errcode":0}"#)).await.unwrap();
    let hooks = format!("json={}program,dingtalk={}room", program.url(), room.url());
    let served = serve().with("alert-webhook", &hooks).start().await.unwrap();
    raise_alert(&served).await;
    let told: Value = serde_json::from_str(&program.next("/program").await.unwrap()).unwrap();
    assert_eq!((&told["kind"], &told["job_name"]), (&json!("not_run"), &json!("Nightly")));
    let told: Value = serde_json::from_str(&room.next("/room").await.unwrap()).unwrap();
    assert!(told["text"]["content"].as_str().unwrap().contains("Nightly"), "{told}");
}

async fn alert_late_after() {
    let executor = WebServer::start(YES).await.unwrap();
    let served = serve().with("alert-late-after", "1ms").start().await.unwrap();
    let client = served.sign_in().await.unwrap();
    client.app("shop", &executor.url()).await.unwrap();
    every_second(&client, json!({ "alert": true })).await;
    // At least one fire is due while the program is suspended.
    served.pause(Duration::from_millis(1500)).await.unwrap();
    let is_late = |page: &Value| page["items"][0]["kind"] == "late";
    client.get_until("/v1/alerts?kind=late", is_late).await.unwrap();
}

// ── Access ──────────────────────────────────────────────────────────────────────────────────────────────────────

async fn sample() {
    let count = async |served: &Served| {
        let client = served.sign_in().await.unwrap();
        client.get("/v1/jobs").await.unwrap()["items"].as_array().unwrap().len()
    };
    assert_eq!(count(&serve().with("sample", "false").start().await.unwrap()).await, 0);
    let served = serve().without("sample").start().await.unwrap();
    assert_eq!(count(&served).await, 1, "by default, on loopback");
    let client = served.sign_in().await.unwrap();
    let has_run = |page: &Value| page["items"][0]["id"].is_i64();
    client.get_until("/v1/runs?state=succeeded", has_run).await.unwrap();
}

async fn tls_cert() {
    let serve = serve();
    let Certificate { certificate, key } = Certificate::create(&serve.path(".")).unwrap();
    let shown = certificate.display().to_string();
    let serve = serve.with("tls-cert", &shown);
    let (started, said) = serve.run("serve").await.unwrap();
    assert!(!started && said.contains("add --tls-key"), "{said}");
    let served = serve.with("tls-key", &key.display().to_string()).start().await.unwrap();
    assert!(served.url.starts_with("https://"), "{}", served.url);
    let answer =
        tokio::task::spawn_blocking(move || https_get(served.address().port(), &certificate, served));
    assert!(answer.await.unwrap().starts_with("HTTP/1.1 200"));
}

async fn tls_key() {
    let serve = serve();
    let Certificate { certificate, key } = Certificate::create(&serve.path(".")).unwrap();
    let serve = serve.with("tls-key", &key.display().to_string());
    let (started, said) = serve.run("serve").await.unwrap();
    assert!(!started && said.contains("add --tls-cert"), "{said}");
    let folder = Folder::new("other-key").unwrap();
    let other = Certificate::create(folder.path()).unwrap();
    let serve = serve.with("tls-cert", &certificate.display().to_string());
    let serve = serve.with("tls-key", &other.key.display().to_string());
    let (started, said) = serve.run("serve").await.unwrap();
    assert!(!started && said.contains("is not a valid private key"), "{said}");
}

async fn behind_proxy() {
    // Only a trusted proxy may name the address of its client.
    for (proxy, expected) in [("127.0.0.1/32", "203.0.113.7"), ("192.0.2.1", "127.0.0.1")] {
        let served = serve().with("behind-proxy", proxy).start().await.unwrap();
        let body = json!({ "user": "admin", "password": served.credential("password").unwrap() }).to_string();
        let forwarded = "X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Proto: https\r\n";
        let lines = format!("{forwarded}Tickwright-Client: test\r\nContent-Type: application/json\r\n");
        let opened = served.ask("POST", "/v1/session", &lines, &body).await.unwrap();
        let session = opened.header("tickwright-session").unwrap();
        let lines = format!("{forwarded}Authorization: Bearer {session}\r\n");
        let sessions = served.ask("GET", "/v1/me/sessions", &lines, "").await.unwrap();
        let sessions: Value = serde_json::from_slice(&sessions.body).unwrap();
        assert_eq!(sessions[0]["ip"], expected, "behind {proxy}");
    }
}

async fn insecure_http() {
    let everywhere = || serve().with("listen", "0.0.0.0:0");
    let (started, said) = everywhere().run("serve").await.unwrap();
    assert!(!started && said.contains("passwords and tokens would be sent unencrypted"), "{said}");
    let served = everywhere().with("insecure-http", "true").start().await.unwrap();
    assert!(served.url.starts_with("http://0.0.0.0:"), "{}", served.url);
    assert_eq!(served.ask("GET", "/healthz", "", "").await.unwrap().status(), 200);
}

#[tokio::test]
async fn the_log_has_the_level_that_is_asked_for() {
    for (level, shows_info) in [("info", true), ("error", false), ("error,tickwright_engine=info", true)] {
        let served = serve().variable("TICKWRIGHT_LOG", level).start().await.unwrap();
        // A ready node has joined the cluster, and has logged it if that is enabled.
        let is_ready = async || {
            let answer = served.ask("GET", "/readyz", "", "").await.ok()?;
            (answer.status() == 200).then_some(())
        };
        until("the node is ready", WAIT_MAX, is_ready).await.unwrap();
        if shows_info {
            let joined = async || served.said().contains(" INFO joined").then_some(());
            until("it says that it has joined", WAIT_MAX, joined).await.unwrap();
        } else {
            assert!(!served.said().contains(" INFO "), "{level}: {}", served.said());
        }
    }
}

// ── Helpers ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// An address without a listener.
const NOWHERE: &str = "http://127.0.0.1:9/";

fn serve() -> Serve {
    Serve::new().unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

async fn about(served: &Served) -> Value {
    served.sign_in().await.unwrap().get("/v1/about").await.unwrap()
}

/// Asks the centre to check an executor; returns the problem, empty if there is none.
async fn check_executor(served: &Served, executor: &str) -> (String, String) {
    let client = served.sign_in().await.unwrap();
    client.app("checked", executor).await.unwrap();
    let path = "/v1/apps/checked/executors/check";
    let seen = client.done("POST", path, &json!({ "address": executor })).await.unwrap();
    let text = |name: &str| seen["trouble"][name].as_str().unwrap_or_default().to_owned();
    (text("code"), text("detail"))
}

/// Creates a job of the app `shop` that fires every second.
async fn every_second(client: &Client, more: Value) {
    let mut job = json!({
        "app": "shop", "name": "Often", "handler": "often", "enabled": true,
        "schedule": { "kind": "fixed_rate", "every_ms": 1_000 }
    });
    job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.done("PUT", "/v1/jobs/often", &job).await.unwrap();
}

/// Triggers a job without an available executor.
async fn raise_alert(served: &Served) {
    let client = served.sign_in().await.unwrap();
    let job = json!({
        "app": APP, "name": "Nightly", "handler": "nightly", "schedule": { "kind": "none" },
        "alert": true, "alert_to": ["ops@example.com"]
    });
    client.done("PUT", "/v1/jobs/nightly", &job).await.unwrap();
    client.done("POST", "/v1/jobs/nightly/trigger", &json!({})).await.unwrap();
}

/// An HTTPS executor that answers every request with success; returns its address.
fn https_executor(certificate: &Certificate) -> String {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let chain = vec![CertificateDer::from_pem_file(&certificate.certificate).unwrap()];
    let key = PrivateKeyDer::from_pem_file(&certificate.key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = Arc::new(config.unwrap().with_no_client_auth().with_single_cert(chain, key).unwrap());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let connection = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut stream = rustls::StreamOwned::new(connection, stream);
            let mut request = [0; 4_096];
            // A client that does not trust the certificate is gone by now.
            if stream.read(&mut request).is_ok() {
                let body = r#"{"code":200}"#;
                let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            }
        }
    });
    format!("https://localhost:{port}/")
}

/// Sends a GET request over HTTPS, trusting this certificate only.
fn https_get(port: u16, certificate: &Path, _served: Served) -> String {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = Arc::new(config.unwrap().with_root_certificates(roots).with_no_client_auth());
    let name = "localhost".try_into().unwrap();
    let connection = rustls::ClientConnection::new(config, name).unwrap();
    let stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, stream);
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    // The server may close the connection without a TLS `close_notify`.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}
