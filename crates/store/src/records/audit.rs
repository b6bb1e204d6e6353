//! Audit log: append-only rows, numbered without gaps, each with the hash of the one before. Changing, deleting or
//! inserting a row later breaks the hash chain from there on; truncation at the end is detected with an
//! [`AuditHead`] stored elsewhere.

use engine::StoreError;
use sha2::{Digest, Sha256};
use timer::Timestamp;

use super::counters;
use super::page::{Conditions, Page, Paged, Total, limit_of};
use super::sessions::cut;
use crate::database::{Database, transaction};
use crate::session::{Lock, Session, SessionError, Value};
use crate::table::table;

impl Database {
    /// Appends entries to the chain, in their order; returns its new end.
    pub async fn append_audit(&self, entries: &[AuditEntry]) -> Result<AuditHead, StoreError> {
        transaction!(self, s => append_audit(s, entries))
    }

    /// Returns the end of the chain.
    pub async fn audit_head(&self) -> Result<AuditHead, StoreError> {
        transaction!(self, s => audit_head(s))
    }

    /// Returns a page of entries, the newest first.
    pub async fn audit_page(
        &self,
        filter: &AuditFilter,
        page: Page,
    ) -> Result<Paged<AuditRecord>, StoreError> {
        transaction!(self, s => audit_page(s, filter, page))
    }

    /// Checks at most `max` records after the given one.
    pub async fn check_audit(&self, after: &AuditHead, max: usize) -> Result<AuditCheck, StoreError> {
        transaction!(self, s => check_audit(s, after, max))
    }
}

/// An action that was done or rejected. Texts longer than their columns are truncated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditEntry {
    /// User or program that acted.
    pub principal: String,
    /// Interface that was used: console, executor or API.
    pub plane: String,
    /// IP address of the client.
    pub ip: String,
    /// The action.
    pub action: String,
    /// Object of the action.
    pub object: String,
    /// The object before the action, without secrets.
    pub before: Option<String>,
    /// The object after the action, without secrets.
    pub after: Option<String>,
    /// Result of the action.
    pub result: String,
}

/// A stored entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// Id: one more than that of the record before.
    pub id: i64,
    /// When it was stored.
    pub at: Timestamp,
    /// The entry.
    pub entry: AuditEntry,
    /// Hash of the record before; empty for the first.
    pub previous_hash: String,
    /// SHA-256, in hex, of all fields above.
    pub hash: String,
}

/// The end of the chain. Store it in a place that users with database access cannot change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditHead {
    /// Id of the last record; 0 if there is none.
    pub id: i64,
    /// Hash of the last record.
    pub hash: String,
}

/// Result of checking a part of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditCheck {
    /// Correct up to this record; there are more.
    More(AuditHead),
    /// Correct up to this record, which is the last.
    Whole(AuditHead),
    /// The record with this id was changed or is missing.
    Broken(i64),
}

/// Filter for a list of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only entries of this principal.
    pub principal: Option<String>,
    /// Only entries with this action.
    pub action: Option<String>,
    /// Only entries about this object.
    pub object: Option<String>,
    /// Only entries at or after this time.
    pub from: Option<Timestamp>,
    /// Only entries before this time.
    pub until: Option<Timestamp>,
}

// ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn append_audit(s: &mut dyn Session, entries: &[AuditEntry]) -> Result<AuditHead, SessionError> {
    let mut head = audit_head(s).await?;
    if entries.is_empty() {
        return Ok(head);
    }
    // Raising the counter locks it, so only this transaction appends.
    counters::raise(s, AUDIT).await?;
    head = audit_head(s).await?;
    let at = s.now().await?;
    let (into, row) = AuditRow::INSERT;
    let mut rows = Vec::with_capacity(entries.len());
    for entry in entries {
        let mut record = AuditRecord {
            id: head.id + 1,
            at,
            entry: fitting(entry),
            previous_hash: head.hash,
            hash: String::new(),
        };
        record.hash = record.computed_hash();
        head = AuditHead { id: record.id, hash: record.hash.clone() };
        rows.push(row(&record));
    }
    s.insert(into, rows).await?;
    Ok(head)
}

const AUDIT: &str = "audit";

table! {
    /// Row of `tw_audit`.
    struct AuditRow in "tw_audit" of record: &AuditRecord {
        id: i64 = record.id,
        at_ms: Timestamp = record.at,
        principal: String = record.entry.principal.as_str(),
        plane: String = record.entry.plane.as_str(),
        ip: String = record.entry.ip.as_str(),
        action: String = record.entry.action.as_str(),
        object: String = record.entry.object.as_str(),
        before_text: Option<String> = record.entry.before.as_deref(),
        after_text: Option<String> = record.entry.after.as_deref(),
        result: String = record.entry.result.as_str(),
        prev_hash: String = record.previous_hash.as_str(),
        hash: String = record.hash.as_str(),
    }
}

impl From<AuditRow> for AuditRecord {
    fn from(row: AuditRow) -> AuditRecord {
        let entry = AuditEntry {
            principal: row.principal,
            plane: row.plane,
            ip: row.ip,
            action: row.action,
            object: row.object,
            before: row.before_text,
            after: row.after_text,
            result: row.result,
        };
        AuditRecord { id: row.id, at: row.at_ms, entry, previous_hash: row.prev_hash, hash: row.hash }
    }
}

/// Truncates texts to their columns, so that an action is recorded even if a client sent too much.
fn fitting(entry: &AuditEntry) -> AuditEntry {
    let long = |text: &Option<String>| text.as_deref().map(|text| cut(text, TEXT_MAX));
    AuditEntry {
        principal: cut(&entry.principal, 190),
        plane: cut(&entry.plane, 32),
        ip: cut(&entry.ip, 64),
        action: cut(&entry.action, 190),
        object: cut(&entry.object, 190),
        before: long(&entry.before),
        after: long(&entry.after),
        result: cut(&entry.result, 190),
    }
}

/// Maximum characters of a definition: more than a job with its parameters has.
const TEXT_MAX: usize = 100_000;

impl AuditRecord {
    fn computed_hash(&self) -> String {
        let entry = &self.entry;
        let mut hash = Sha256::new();
        // Each text is preceded by its length, so that two different records never hash the same bytes.
        let mut add = |text: Option<&str>| {
            let length = text.map_or(-1, |text| i64::try_from(text.len()).unwrap_or(i64::MAX));
            hash.update(length.to_be_bytes());
            hash.update(text.unwrap_or_default());
        };
        add(Some(&self.previous_hash));
        add(Some(&self.id.to_string()));
        add(Some(&self.at.as_millis().to_string()));
        for text in [&entry.principal, &entry.plane, &entry.ip, &entry.action, &entry.object] {
            add(Some(text));
        }
        add(entry.before.as_deref());
        add(entry.after.as_deref());
        add(Some(&entry.result));
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn follows(&self, head: &AuditHead) -> bool {
        self.id == head.id + 1 && self.previous_hash == head.hash && self.hash == self.computed_hash()
    }
}

// ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn audit_head(s: &mut dyn Session) -> Result<AuditHead, SessionError> {
    let sql = "SELECT id, hash FROM tw_audit ORDER BY id DESC LIMIT 1";
    let rows = s.query(sql, &[], Lock::None).await?;
    let Some(row) = rows.into_iter().next() else { return Ok(AuditHead::default()) };
    let mut row = row.read();
    Ok(AuditHead { id: row.int()?, hash: row.text()? })
}

pub async fn check_audit(
    s: &mut dyn Session,
    after: &AuditHead,
    max: usize,
) -> Result<AuditCheck, SessionError> {
    if max == 0 {
        return Err(StoreError::Invalid("at least one record has to be checked at a time".into()).into());
    }
    let records = select(s, "WHERE id > ? ORDER BY id LIMIT ?", &[after.id.into(), limit_of(max)]).await?;
    let is_last = records.len() < max;
    let mut head = after.clone();
    for record in records {
        if !record.follows(&head) {
            return Ok(AuditCheck::Broken(head.id + 1));
        }
        head = AuditHead { id: record.id, hash: record.hash };
    }
    Ok(if is_last { AuditCheck::Whole(head) } else { AuditCheck::More(head) })
}

pub async fn audit_page(
    s: &mut dyn Session,
    filter: &AuditFilter,
    page: Page,
) -> Result<Paged<AuditRecord>, SessionError> {
    let mut conditions = Conditions::default();
    for (column, wanted) in
        [("principal", &filter.principal), ("action", &filter.action), ("object", &filter.object)]
    {
        if let Some(wanted) = wanted {
            conditions.and(format!("{column} = ?"), [cut(wanted, 190).into()]);
        }
    }
    if let Some(from) = filter.from {
        conditions.and("at_ms >= ?", [from.into()]);
    }
    if let Some(until) = filter.until {
        conditions.and("at_ms < ?", [until.into()]);
    }
    let total = match page {
        Page::Offset { .. } => Some(count(s, &conditions).await?),
        Page::After { .. } => None,
    };
    if let Some(after) = page.after() {
        conditions.and("id < ?", [after.into()]);
    }
    let tail = format!("{} ORDER BY id DESC LIMIT ? OFFSET ?", conditions.sql());
    let rows = select(s, &tail, &conditions.params(page.bounds())).await?;
    Ok(Paged::new(rows, page, total, |record| record.id))
}

async fn count(s: &mut dyn Session, conditions: &Conditions) -> Result<Total, SessionError> {
    let sql = format!("SELECT COUNT(*) FROM (SELECT id FROM tw_audit {} LIMIT ?) counted", conditions.sql());
    let rows = s.query(&sql, &conditions.params([(COUNT_MAX + 1).into()]), Lock::None).await?;
    let count = rows.into_iter().next().map(|row| row.read().int()).transpose()?.unwrap_or(0);
    Ok(Total { count: count.min(COUNT_MAX).unsigned_abs(), exact: count <= COUNT_MAX })
}

/// Counting stops here, because users do not page further.
const COUNT_MAX: i64 = 10_000;

async fn select(s: &mut dyn Session, tail: &str, params: &[Value]) -> Result<Vec<AuditRecord>, SessionError> {
    let rows =
        s.query(&format!("SELECT {} FROM tw_audit {tail}", AuditRow::LIST), params, Lock::None).await?;
    rows.into_iter().map(|row| AuditRow::read(&mut row.read()).map(AuditRecord::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_record_is_noticed() {
        let entry =
            AuditEntry { principal: "ada".into(), action: "job.stop".into(), ..AuditEntry::default() };
        let mut record = AuditRecord {
            id: 1,
            at: Timestamp::from_millis(1_782_000_000_000),
            entry,
            previous_hash: String::new(),
            hash: String::new(),
        };
        record.hash = record.computed_hash();
        assert_eq!(record.hash.len(), 64);
        let start = AuditHead::default();
        assert!(record.follows(&start));
        let check = |change: fn(&mut AuditRecord)| {
            let mut changed = record.clone();
            change(&mut changed);
            assert!(!changed.follows(&start), "{changed:?}");
        };
        check(|record| record.id = 2);
        check(|record| record.at = Timestamp::from_millis(0));
        check(|record| record.entry.principal = "eve".into());
        check(|record| record.entry.before = Some(String::new()));
        check(|record| (record.entry.principal, record.entry.plane) = ("ad".into(), "a".into()));
        check(|record| record.hash = String::new());
        check(|record| record.previous_hash = "0".into());
    }
}
