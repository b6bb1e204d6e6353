//! `/v1/alerts`: alerts and their notifications.

use std::collections::BTreeMap;

use engine::{AppId, JobId};
use protocol::v1::{AlertView, DeliveryView, Page};
use store::{AlertFilter, AlertRow, Delivery};

use super::authorise::{Authorised, Seen};
use super::call::{Call, instant};
use super::reply::Reply;
use super::runs::{seen_job, seen_names};
use crate::request_error::RequestError;

pub async fn list(call: Call, seen: Authorised<Seen>) -> Result<Reply, RequestError> {
    let query = &call.query;
    let job = match query.text("job") {
        None => None,
        Some(name) => match seen_job(&call, name).await? {
            Some(job) => Some(job),
            None => {
                return Ok(Reply::json(&Page::<AlertView> { items: Vec::new(), next: None, total: None }));
            }
        },
    };
    let filter = AlertFilter {
        apps: seen.apps.clone(),
        job,
        kind: query.word("kind")?,
        state: query.word("state")?,
        from: query.instant("from")?,
        until: query.instant("until")?,
    };
    let found = call.state.database.alert_page(&filter, query.page()?).await?;
    let next = found.next.map(|next| next.to_string());
    Ok(Reply::json(&Page { items: views(&call, found.rows).await?, next, total: None }))
}

/// Views of alerts, with the names of their jobs.
async fn views(call: &Call, rows: Vec<AlertRow>) -> Result<Vec<AlertView>, RequestError> {
    let mut jobs: Vec<JobId> = rows.iter().map(|row| row.job).collect();
    jobs.sort_unstable();
    jobs.dedup();
    let names = call.state.database.job_names(&jobs).await?;
    let names = seen_names(call, names);
    let apps: BTreeMap<AppId, String> = call.state.directory.names().into_iter().collect();
    let view = |row: AlertRow| {
        let name = names.get(&row.job);
        AlertView {
            id: row.id,
            at: instant(row.at),
            last_at: instant(row.last_at),
            count: row.count,
            kind: row.kind,
            app: apps.get(&row.app).cloned().unwrap_or_default(),
            job: row.job.0,
            job_key: name.and_then(|name| name.key.clone()),
            job_name: name.map(|name| name.name.clone()),
            run: row.run.map(|run| run.0),
            message: row.message,
            state: row.state,
            tries: row.tries,
            deliveries: row.deliveries.into_iter().map(delivery).collect(),
        }
    };
    Ok(rows.into_iter().map(view).collect())
}

fn delivery(delivery: Delivery) -> DeliveryView {
    let Delivery { channel, to, at, trouble } = delivery;
    DeliveryView { channel, to, at: instant(at), trouble }
}
