//! Executors of the workflows in `examples/workflows`: one program for their apps `warehouse`, `billing`, `risk` and `reports`.
//!
//! ```text
//! cargo run -p tickwright-examples --example workers -- APP [CENTRE [TOKEN]]
//! ```
//!
//! CENTRE is `http://127.0.0.1:8080` by default. Each handler returns a small output that the next steps use.

use anyhow::{Context as _, Result, bail};
use executor::handlers::Http;
use executor::{Context, Executor, Job, Output};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let app = arguments.next().context("name an app: warehouse, billing, risk or reports")?;
    let centre = arguments.next().unwrap_or_else(|| "http://127.0.0.1:8080".to_owned());
    let token = arguments.next().unwrap_or_default();
    let directory = std::env::temp_dir().join(format!("tickwright-workers-{app}-{}", std::process::id()));
    let jobs = match app.as_str() {
        "warehouse" => warehouse(),
        "billing" => billing(),
        "risk" => risk(),
        "reports" => reports(&centre)?,
        other => bail!("there is no app `{other}`; name warehouse, billing, risk or reports"),
    };
    let builder = Executor::builder(&app).centre(&centre).token(token).directory(&directory);
    builder.listen("127.0.0.1:0").jobs(jobs).run().await?;
    Ok(())
}

/// A handler that makes its output from its parameter, a JSON object.
fn handler(name: &str, make: impl Fn(Value) -> Value + Clone + Send + Sync + 'static) -> Job {
    Job::new(name, move |ctx: Context| {
        let make = make.clone();
        async move {
            let given = serde_json::from_str(ctx.param()).unwrap_or_else(|_| ctx.param().into());
            ctx.log(format_args!("given {given}"));
            Output::json(&make(given))
        }
    })
}

fn warehouse() -> Vec<Job> {
    vec![
        handler("extract", |given| match given["table"].as_str() {
            Some("orders") => json!({ "rows": 1_000 }),
            _ => json!({ "rows": 990 }),
        }),
        handler("compare", |given| {
            let (orders, users) = (given["orders"].as_f64(), given["users"].as_f64());
            let drift = orders.zip(users).map(|(orders, users)| (orders - users).abs() / orders.max(1.0));
            json!({ "drift": drift.unwrap_or(1.0) })
        }),
        handler("load", |given| match given["mode"].as_str() {
            Some("full") => json!({ "rows": 1_000 }),
            _ => json!({ "rows": 10 }),
        }),
        handler("report", |given| json!({ "rows": given["rows"] })),
        handler("page", |given| json!({ "paged": given["failed"] })),
        handler("tidy", |given| json!({ "dropped": given })),
    ]
}

fn billing() -> Vec<Job> {
    vec![
        handler("draft_invoices", |given| json!({ "batch": given["month"], "count": 120, "total": 48_000 })),
        handler("charge", |given| json!({ "charged": given["batch"] })),
        handler("send_mails", |given| json!({ "sent": 120, "batch": given["batch"] })),
        handler("void_draft", |given| json!({ "void": given["batch"] })),
    ]
}

fn risk() -> Vec<Job> {
    vec![
        handler("list_accounts", |given| {
            let parts = given["parts"].as_i64().unwrap_or(1);
            let part = |part: i64| (0..4).map(|number| 10 * part + number).collect::<Vec<_>>();
            json!({ "parts": (0..parts).map(part).collect::<Vec<_>>() })
        }),
        handler("recompute", |given| {
            let ids = given["ids"].as_array().cloned().unwrap_or_default();
            json!({ "sum": ids.iter().filter_map(Value::as_i64).sum::<i64>() })
        }),
        handler("publish", |given| json!({ "total": given["total"] })),
    ]
}

/// With the handler of agents for requests, which may call the centre.
fn reports(centre: &str) -> Result<Vec<Job>> {
    let report = handler(
        "board_report",
        |given| json!({ "url": format!("https://bi.example.com/{}", given["week"].as_str().unwrap_or_default()) }),
    );
    Ok(Http::new().allow(centre)?.jobs().into_iter().chain([report]).collect())
}
