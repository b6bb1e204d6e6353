//! `/v1/audit`: the audit log, for administrators.

use protocol::v1::AuditView;
use store::{AuditFilter, AuditRecord};

use super::authorise::{Authorised, Nothing};
use super::call::{Call, instant, page};
use super::reply::Reply;
use crate::request_error::RequestError;

pub async fn list(call: Call, _: Authorised<Nothing>) -> Result<Reply, RequestError> {
    let query = &call.query;
    let text = |name: &str| query.text(name).map(str::to_owned);
    let filter = AuditFilter {
        principal: text("principal"),
        action: text("action"),
        object: text("object"),
        from: query.instant("from")?,
        until: query.instant("until")?,
    };
    let found = call.state.database.audit_page(&filter, query.page()?).await?;
    let view = |record: AuditRecord| AuditView {
        id: record.id,
        at: instant(record.at),
        principal: record.entry.principal,
        plane: record.entry.plane,
        ip: record.entry.ip,
        action: record.entry.action,
        object: record.entry.object,
        before: record.entry.before,
        after: record.entry.after,
        result: record.entry.result,
    };
    Ok(Reply::json(&page(found, view)))
}
