//! Users: rows of `xxl_job_user` with our own of `tw_user` and `tw_grant`.
//!
//! XXL-JOB's password column is never written for a user that XXL-JOB created, so that Java admins keep accepting
//! the password. Our hash is valid only while that column is unchanged since the hash was made, so that a password
//! changed by a Java admin takes effect at once. Users created here have [`UNUSABLE`] in that column, which no
//! password hashes to. In the same way XXL-JOB's `permission` stands for [`Rights::MEMBER`], and our rows only add
//! to it.

use std::collections::BTreeMap;

use engine::{AppId, StoreError};
use timer::Timestamp;

use super::counters;
use super::page::{Conditions, Page, Paged, Total};
use super::rights::Rights;
use super::sessions;
use crate::database::{Database, Tables, transaction};
use crate::schema::check_text;
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};
use crate::table::table;

impl Database {
    /// Returns users: by name for a [`Page::Offset`], by id for a [`Page::After`].
    pub async fn user_page(&self, filter: &UserFilter, page: Page) -> Result<Paged<User>, StoreError> {
        transaction!(self, s => user_page(s, filter, page))
    }

    /// Returns one user.
    pub async fn user(&self, id: UserId) -> Result<Option<User>, StoreError> {
        transaction!(self, s => user(s, id))
    }

    /// Returns the user with this name.
    pub async fn user_by_name(&self, name: &str) -> Result<Option<User>, StoreError> {
        transaction!(self, s => user_by_name(s, name))
    }

    /// Adds a user with our hash of a password, which Java admins do not accept. A name that is taken is a
    /// [`StoreError::Conflict`].
    pub async fn create_user(&self, name: &str, hash: &str, access: &Access) -> Result<UserId, StoreError> {
        transaction!(self, s => create_user(s, &self.tables, name, hash, access))
    }

    /// Adds an administrator if no user can sign in; returns whether it did. If several nodes try at once, one
    /// succeeds.
    pub async fn create_first_admin(&self, name: &str, hash: &str) -> Result<bool, StoreError> {
        transaction!(self, s => create_first_admin(s, &self.tables, name, hash))
    }

    /// Changes a user's rights, and ends the user's sessions if they differ; returns false if there is no such user.
    /// Removing the rights of the last administrator is a [`StoreError::Conflict`].
    pub async fn update_user(&self, id: UserId, access: &Access) -> Result<bool, StoreError> {
        transaction!(self, s => update_user(s, &self.tables, id, access))
    }

    /// Deletes a user with grants, sessions and API keys; returns false if there is none. Deleting the last
    /// administrator is a [`StoreError::Conflict`].
    pub async fn delete_user(&self, id: UserId) -> Result<bool, StoreError> {
        transaction!(self, s => delete_user(s, id))
    }

    /// Changes a user's password, and ends all the user's sessions except the one with this digest; returns false if
    /// there is no such user. The password for Java admins does not change.
    pub async fn set_password_hash(
        &self,
        id: UserId,
        hash: &str,
        except: Option<&str>,
    ) -> Result<bool, StoreError> {
        transaction!(self, s => set_password_hash(s, &self.tables, id, hash, except))
    }

    /// Replaces XXL-JOB's hash by our hash of the same password; returns false if the stored hash is no longer
    /// `from`.
    pub async fn upgrade_password(&self, id: UserId, from: &str, hash: &str) -> Result<bool, StoreError> {
        transaction!(self, s => upgrade_password(s, &self.tables, id, from, hash))
    }
}

/// Id of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserId(pub i64);

/// A user that can sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Id of the user.
    pub id: UserId,
    /// Name to sign in with. Unique.
    pub name: String,
    /// Rights of the user.
    pub access: Access,
    /// Password of the user.
    pub password: Password,
    /// When password or access were last changed through us.
    pub changed_at: Option<Timestamp>,
}

/// Rights of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Whether the user is an administrator, with all rights.
    pub admin: bool,
    /// Whether the user is disabled and has no rights. Java admins ignore this.
    pub disabled: bool,
    /// Rights by app.
    pub grants: BTreeMap<AppId, Rights>,
}

impl Access {
    /// Rights of the user for an app.
    pub fn rights(&self, app: AppId) -> Rights {
        match self {
            Access { disabled: true, .. } => Rights::NONE,
            Access { admin: true, .. } => Rights::ALL,
            Access { grants, .. } => grants.get(&app).copied().unwrap_or(Rights::NONE),
        }
    }
}

/// Stored form of a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Password {
    /// Our hash.
    Hashed(String),
    /// XXL-JOB's hash, MD5 or SHA-256 in hex.
    Legacy(String),
    /// None: the user cannot sign in with a password.
    Unusable,
}

/// Filter for a list of users.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserFilter {
    /// Only users with this text in their name.
    pub name: String,
    /// Only administrators, or only other users.
    pub admin: Option<bool>,
}

/// Value of XXL-JOB's password column for users created here.
const UNUSABLE: &str = "!";

/// Condition for users that can sign in; its parameter is [`UNUSABLE`].
const HAS_PASSWORD: &str = "(u.password <> ? OR t.password_hash IS NOT NULL)";

/// Counter that is locked by transactions that check all users before changing one.
const USERS: &str = "users";

// ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn user_page(
    s: &mut dyn Session,
    filter: &UserFilter,
    page: Page,
) -> Result<Paged<User>, SessionError> {
    let mut conditions = Conditions::default();
    conditions.and_contains(&["u.username"], &filter.name)?;
    if let Some(admin) = filter.admin {
        conditions.and(format!("u.role {} {ADMIN}", if admin { "=" } else { "<>" }), []);
    }
    let (total, order) = match page {
        Page::Offset { .. } => {
            let sql = format!("SELECT COUNT(*) FROM xxl_job_user u {}", conditions.sql());
            let rows = s.query(&sql, &conditions.params([]), Lock::None).await?;
            let count = rows.into_iter().next().map(|row| row.read().int()).transpose()?.unwrap_or(0);
            (Some(Total { count: count.unsigned_abs(), exact: true }), "u.username, u.id")
        }
        Page::After { after, .. } => {
            conditions.and("u.id > ?", [after.unwrap_or(0).into()]);
            (None, "u.id")
        }
    };
    let tail = format!("{} ORDER BY {order} LIMIT ? OFFSET ?", conditions.sql());
    let rows = select(s, &tail, &conditions.params(page.bounds())).await?;
    Ok(Paged::new(rows, page, total, |user| user.id.0))
}

pub async fn user(s: &mut dyn Session, id: UserId) -> Result<Option<User>, SessionError> {
    Ok(select(s, "WHERE u.id = ?", &[id.0.into()]).await?.pop())
}

pub async fn user_by_name(s: &mut dyn Session, name: &str) -> Result<Option<User>, SessionError> {
    if check_text(name).is_err() {
        return Ok(None);
    }
    Ok(select(s, "WHERE u.username = ?", &[name.into()]).await?.pop())
}

async fn select(s: &mut dyn Session, tail: &str, params: &[Value]) -> Result<Vec<User>, SessionError> {
    let sql = format!(
        "SELECT {}, {} FROM xxl_job_user u LEFT JOIN tw_user t ON t.user_id = u.id {tail}",
        UserRow::list_of("u"),
        OwnRow::list_of("t")
    );
    let rows = s.query(&sql, params, Lock::None).await?;
    let mut users = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    add_grants(s, &mut users).await?;
    Ok(users)
}

fn read(row: Row) -> Result<User, SessionError> {
    let mut row = row.read();
    let (user, own) = (UserRow::read(&mut row)?, OwnRow::read_joined(&mut row)?);
    let grants = user.permission.split(',').filter_map(|app| app.trim().parse().ok());
    let grants = grants.map(|app| (AppId(app), Rights::MEMBER)).collect();
    let disabled = own.as_ref().is_some_and(|own| own.disabled);
    let changed_at = own.as_ref().map(|own| own.changed_ms);
    let hash = own.filter(|own| own.legacy_of.as_ref() == Some(&user.password));
    let password = match hash.and_then(|own| own.password_hash) {
        Some(hash) => Password::Hashed(hash),
        None if user.password == UNUSABLE || user.password.is_empty() => Password::Unusable,
        None => Password::Legacy(user.password),
    };
    let access = Access { admin: user.role == ADMIN, disabled, grants };
    Ok(User { id: UserId(user.id), name: user.username, access, password, changed_at })
}

/// A user to write into XXL-JOB's row.
#[derive(Clone, Copy)]
struct Written<'a> {
    id: UserId,
    name: &'a str,
    access: &'a Access,
    permission: &'a str,
}

table! {
    /// Row of `xxl_job_user`.
    struct UserRow in "xxl_job_user" of user: Written<'_> {
        username: String = user.name,
        password: String = UNUSABLE,
    }
    edited by id {
        role: i64 = if user.access.admin { ADMIN } else { MEMBER },
        permission: String = user.permission,
    }
    not inserted { id: i64 = user.id.0 }
}

table! {
    /// Row of `tw_user`. [`save_own`] writes it in parts.
    struct OwnRow in "tw_user" {
        changed_ms: Timestamp,
        password_hash: Option<String>,
        legacy_of: Option<String>,
        disabled: bool,
    }
}

/// Values of `role`.
const MEMBER: i64 = 0;
const ADMIN: i64 = 1;

async fn add_grants(s: &mut dyn Session, users: &mut [User]) -> Result<(), SessionError> {
    if users.is_empty() {
        return Ok(());
    }
    let ids = Value::Ids(users.iter().map(|user| user.id.0).collect());
    let sql = "SELECT user_id, app_id, rights FROM tw_grant WHERE user_id IN ?";
    for row in s.query(sql, &[ids], Lock::None).await? {
        let mut row = row.read();
        let (id, app, added) = (UserId(row.int()?), AppId(row.int()?), Rights::from_number(row.int()?));
        if let Some(user) = users.iter_mut().find(|user| user.id == id) {
            let rights = user.access.grants.entry(app).or_default();
            *rights = rights.with(added);
        }
    }
    for user in users {
        // A user that lost XXL-JOB's permission for an app also loses the rights added to it.
        user.access.grants.retain(|_, rights| rights.contains(Rights::VIEW));
    }
    Ok(())
}

// ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn create_user(
    s: &mut dyn Session,
    tables: &Tables,
    name: &str,
    hash: &str,
    access: &Access,
) -> Result<UserId, SessionError> {
    if name.trim().is_empty() {
        return Err(StoreError::Invalid("a user needs a name".into()).into());
    }
    check_text(name)?;
    tables.schema.check_fits("xxl_job_user", "username", name)?;
    if let Some(other) = user_by_name(s, name).await? {
        let reason = format!("the user `{}` already exists; names of users are unique", other.name);
        return Err(StoreError::Conflict(reason).into());
    }
    let (permission, _) = stored_grants(tables, access)?;
    let (into, row) = UserRow::INSERT;
    let row = row(Written { id: UserId(0), name, access, permission: &permission });
    let id = UserId(s.insert_numbered(into, vec![row]).await?[0]);
    save_password(s, tables, id, hash, UNUSABLE).await?;
    save_access(s, tables, id, access).await?;
    Ok(id)
}

pub async fn create_first_admin(
    s: &mut dyn Session,
    tables: &Tables,
    name: &str,
    hash: &str,
) -> Result<bool, SessionError> {
    counters::raise(s, USERS).await?;
    let tail = format!("WHERE {HAS_PASSWORD} ORDER BY u.id LIMIT 1");
    if !select(s, &tail, &[UNUSABLE.into()]).await?.is_empty() {
        return Ok(false);
    }
    let access = Access { admin: true, ..Access::default() };
    match user_by_name(s, name).await? {
        // A user created here, of which only XXL-JOB's row is left.
        Some(user) => {
            save_password(s, tables, user.id, hash, UNUSABLE).await?;
            save_access(s, tables, user.id, &access).await?;
        }
        None => {
            create_user(s, tables, name, hash, &access).await?;
        }
    }
    Ok(true)
}

pub async fn update_user(
    s: &mut dyn Session,
    tables: &Tables,
    id: UserId,
    access: &Access,
) -> Result<bool, SessionError> {
    counters::raise(s, USERS).await?;
    let Some(before) = user(s, id).await? else {
        return Ok(false);
    };
    if before.access == *access {
        return Ok(true);
    }
    if !access.admin || access.disabled {
        check_not_last(s, &before).await?;
    }
    save_access(s, tables, id, access).await?;
    sessions::end_sessions_of(s, id, None).await?;
    Ok(true)
}

pub async fn delete_user(s: &mut dyn Session, id: UserId) -> Result<bool, SessionError> {
    counters::raise(s, USERS).await?;
    let Some(user) = user(s, id).await? else {
        return Ok(false);
    };
    check_not_last(s, &user).await?;
    s.delete("xxl_job_user", "id", &[id.0]).await?;
    for table in ["tw_user", "tw_grant", "tw_session", "tw_api_key", "tw_sign_in_origin"] {
        s.delete(table, "user_id", &[id.0]).await?;
    }
    Ok(true)
}

/// Refuses to remove the last administrator.
async fn check_not_last(s: &mut dyn Session, user: &User) -> Result<(), SessionError> {
    if !user.access.admin || user.access.disabled {
        return Ok(());
    }
    let tail = format!(
        "WHERE u.role = {ADMIN} AND u.id <> ? AND (t.disabled IS NULL OR t.disabled = 0) \
         AND {HAS_PASSWORD} ORDER BY u.id LIMIT 1"
    );
    if select(s, &tail, &[user.id.0.into(), UNUSABLE.into()]).await?.is_empty() {
        let reason = format!("`{}` is the last administrator; add another administrator first", user.name);
        return Err(StoreError::Conflict(reason).into());
    }
    Ok(())
}

pub async fn set_password_hash(
    s: &mut dyn Session,
    tables: &Tables,
    id: UserId,
    hash: &str,
    except: Option<&str>,
) -> Result<bool, SessionError> {
    let Some(legacy) = lock_legacy(s, id).await? else {
        return Ok(false);
    };
    save_password(s, tables, id, hash, &legacy).await?;
    sessions::end_sessions_of(s, id, except).await?;
    Ok(true)
}

pub async fn upgrade_password(
    s: &mut dyn Session,
    tables: &Tables,
    id: UserId,
    from: &str,
    hash: &str,
) -> Result<bool, SessionError> {
    if lock_legacy(s, id).await?.as_deref() != Some(from) {
        return Ok(false);
    }
    save_password(s, tables, id, hash, from).await?;
    Ok(true)
}

/// Reads XXL-JOB's password column and locks the row, so that a Java admin that changes it waits.
async fn lock_legacy(s: &mut dyn Session, id: UserId) -> Result<Option<String>, SessionError> {
    let sql = "SELECT password FROM xxl_job_user WHERE id = ?";
    let rows = s.query(sql, &[id.0.into()], Lock::Wait).await?;
    rows.into_iter().next().map(|row| row.read().text()).transpose()
}

async fn save_password(
    s: &mut dyn Session,
    tables: &Tables,
    id: UserId,
    hash: &str,
    legacy: &str,
) -> Result<(), SessionError> {
    tables.schema.check_fits("tw_user", "password_hash", hash)?;
    save_own(s, id, &[("password_hash", hash.into()), ("legacy_of", legacy.into())]).await
}

async fn save_access(
    s: &mut dyn Session,
    tables: &Tables,
    id: UserId,
    access: &Access,
) -> Result<(), SessionError> {
    let (permission, added) = stored_grants(tables, access)?;
    let (set, row) = UserRow::EDIT;
    s.update(set, vec![row(Written { id, name: "", access, permission: &permission })]).await?;
    save_own(s, id, &[("disabled", i64::from(access.disabled).into())]).await?;
    s.delete("tw_grant", "user_id", &[id.0]).await?;
    let rows =
        added.into_iter().map(|(app, rights)| vec![id.0.into(), app.0.into(), rights.to_number().into()]);
    let into = Columns { table: "tw_grant", keys: &[], columns: &["user_id", "app_id", "rights"] };
    s.insert(into, rows.collect()).await
}

/// Writes some columns of our row; creates the row if it does not exist.
async fn save_own(
    s: &mut dyn Session,
    id: UserId,
    columns: &[(&'static str, Value)],
) -> Result<(), SessionError> {
    let mut names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let mut row: Vec<Value> = vec![id.0.into()];
    row.extend(columns.iter().map(|(_, value)| value.clone()));
    names.push("changed_ms");
    row.push(s.now().await?.into());
    let set = Columns { table: "tw_user", keys: &["user_id"], columns: &names };
    if s.compare_and_set(set, vec![row.clone()]).await? == 0 {
        names.insert(0, "user_id");
        s.insert(Columns { table: "tw_user", keys: &[], columns: &names }, vec![row]).await?;
    }
    Ok(())
}

/// XXL-JOB's list of apps, and the rights stored in our rows. An app is in XXL-JOB's list only if the user has all
/// of [`Rights::MEMBER`].
fn stored_grants(tables: &Tables, access: &Access) -> Result<(String, Vec<(AppId, Rights)>), StoreError> {
    let mut listed = Vec::new();
    let mut added = Vec::new();
    for (app, rights) in &access.grants {
        let mut own = *rights;
        if rights.contains(Rights::MEMBER) {
            listed.push(app.0.to_string());
            own = own.without(Rights::MEMBER);
        }
        if own != Rights::NONE {
            added.push((*app, own));
        }
    }
    let permission = listed.join(",");
    tables.schema.check_fits("xxl_job_user", "permission", &permission)?;
    Ok((permission, added))
}
