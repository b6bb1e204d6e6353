//! `/user`: user accounts, for administrators only.

use std::collections::BTreeMap;

use engine::AppId;
use protocol::v1::ProblemCode;
use protocol::xxl::UserView;
use serde_json::Value;
use store::{Access, Rights, User, UserFilter, UserId};

use super::{Reply, Visit, rows};
use crate::request_error::RequestError;
use crate::users::no_such_user;

impl Visit<'_> {
    pub(super) async fn user_page(&self) -> Result<Reply, RequestError> {
        let filter = UserFilter {
            name: self.fields.trimmed("username").into(),
            admin: match self.fields.trimmed("role") {
                "1" => Some(true),
                "0" => Some(false),
                _ => None,
            },
        };
        let found = self.state.database.user_page(&filter, self.page()?).await?;
        let total = found.total.map_or(0, |total| total.count);
        Ok(Reply::Page(rows(found.rows.into_iter().map(view)), total))
    }

    pub(super) async fn add_user(&self) -> Result<Reply, RequestError> {
        let password = self.fields.trimmed("password");
        self.state.users.add(self.fields.trimmed("username"), password, &self.access(None)?).await?;
        Ok(Reply::Done(Value::Null))
    }

    /// Updates a user. Names never change, and users cannot change their own account here.
    pub(super) async fn update_user(&self) -> Result<Reply, RequestError> {
        let user = self.other_user().await?;
        let password = Some(self.fields.trimmed("password")).filter(|password| !password.is_empty());
        self.state.users.change(user.id, password, &self.access(Some(&user.access))?).await?;
        Ok(Reply::Done(Value::Null))
    }

    pub(super) async fn remove_user(&self) -> Result<Reply, RequestError> {
        let user = self.other_user().await?;
        self.state.users.delete(user.id).await?;
        Ok(Reply::Done(Value::Null))
    }

    async fn other_user(&self) -> Result<User, RequestError> {
        let id = UserId(self.id()?);
        if id == self.signed_in.user.id {
            return Err(RequestError::new(ProblemCode::Conflict, "your own account cannot be changed here"));
        }
        self.state.database.user(id).await?.ok_or_else(|| no_such_user(id))
    }

    /// Parses the rights in the form. Rights that XXL-JOB does not know are kept for apps that stay in the list.
    fn access(&self, before: Option<&Access>) -> Result<Access, RequestError> {
        let list = self.fields.trimmed("permission");
        let ids = list.split(',').map(str::trim).filter(|id| !id.is_empty());
        let mut grants = BTreeMap::new();
        for id in ids {
            let app = id
                .parse()
                .map(AppId)
                .map_err(|_| RequestError::invalid("permission: must be a list of ids of executor groups"))?;
            let had =
                before.map_or(Rights::NONE, |before| before.grants.get(&app).copied().unwrap_or_default());
            grants.insert(app, had.with(Rights::MEMBER));
        }
        let admin = match self.fields.trimmed("role") {
            "1" => true,
            "" | "0" => false,
            _ => return Err(RequestError::invalid("role: must be 1 (administrator) or 0")),
        };
        Ok(Access { admin, disabled: before.is_some_and(|before| before.disabled), grants })
    }
}

fn view(user: User) -> UserView {
    let apps: Vec<String> = user.access.grants.keys().map(|app| app.0.to_string()).collect();
    UserView {
        id: user.id.0,
        username: user.name,
        password: None,
        token: None,
        role: i32::from(user.access.admin),
        permission: apps.join(","),
    }
}
