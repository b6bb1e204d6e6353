//! `/jobgroup`: groups of executors (apps), for administrators only.

use engine::AppId;
use protocol::xxl::GroupView;
use serde_json::Value;
use store::{Addresses, App, AppSpec};

use super::{Reply, Visit, rows, value};
use crate::apps;
use crate::executors::is_well_known;
use crate::refusal::Refusal;

impl Visit<'_> {
    pub(super) async fn app_page(&self) -> Result<Reply, Refusal> {
        let fields = &self.fields;
        let name = fields.trimmed("appname").to_lowercase();
        let title = fields.get("title").or(fields.get("name")).unwrap_or_default().trim().to_lowercase();
        store::check_search(&name)?;
        store::check_search(&title)?;
        let mut found = self.inside.database.apps().await?;
        found.retain(|app| {
            app.spec.name.to_lowercase().contains(&name) && app.spec.title.to_lowercase().contains(&title)
        });
        let total = found.len() as u64;
        let store::Page::Offset { offset, limit } = self.page()? else {
            return Ok(Reply::Page(Vec::new(), total));
        };
        let shown = found.into_iter().skip(usize::try_from(offset).unwrap_or(usize::MAX)).take(limit);
        Ok(Reply::Page(rows(shown.map(|app| self.app_view(app))), total))
    }

    pub(super) async fn load_app(&self) -> Result<Reply, Refusal> {
        let app = self.find_app().await?;
        Ok(Reply::Done(self.app_view(app)))
    }

    pub(super) async fn add_app(&self) -> Result<Reply, Refusal> {
        let spec = self.app_spec(None).await?;
        let token = self.new_token()?;
        let app = self.inside.database.create_app(&spec).await?;
        self.give_token(app, token).await?;
        Ok(Reply::Done(Value::Null))
    }

    pub(super) async fn update_app(&self) -> Result<Reply, Refusal> {
        let before = self.find_app().await?;
        let spec = self.app_spec(Some(&before)).await?;
        let token = self.new_token()?;
        self.inside.database.update_app(before.id, &spec).await?;
        self.give_token(before.id, token).await?;
        Ok(Reply::Done(Value::Null))
    }

    pub(super) async fn remove_app(&self) -> Result<Reply, Refusal> {
        let id = AppId(self.id()?);
        let apps = self.inside.database.apps().await?;
        if apps.len() == 1 && apps[0].id == id {
            return Err(Refusal::new("this is the only group of executors; add another first"));
        }
        self.inside.database.delete_app(id).await?;
        self.inside.keeper.load().await?;
        Ok(Reply::Done(Value::Null))
    }

    async fn find_app(&self) -> Result<App, Refusal> {
        let id = self.id()?;
        let app = self.inside.database.app(AppId(id)).await?;
        app.ok_or_else(|| Refusal(format!("there is no group {id}")))
    }

    /// Parses and checks the form of a group. A missing name stays unchanged.
    async fn app_spec(&self, before: Option<&App>) -> Result<AppSpec, Refusal> {
        let fields = &self.fields;
        let name = match (fields.trimmed("appname"), before) {
            ("", Some(before)) => before.spec.name.clone(),
            (name, _) => name.to_owned(),
        };
        apps::check_name(&name).map_err(|fault| Refusal(format!("appname: {fault}")))?;
        let title = fields.get("title").or(fields.get("name")).unwrap_or_default().trim().to_owned();
        if title.is_empty() {
            return Err(Refusal::new("title: enter one (name)"));
        }
        let addresses = match fields.trimmed("addressType") {
            "1" => Addresses::Manual(self.addresses(fields.trimmed("addressList")).await?),
            "" | "0" => Addresses::Registered,
            _ => return Err(Refusal::new("addressType: is 0 for executors that register, or 1 for a list")),
        };
        Ok(AppSpec { name, title, addresses })
    }

    /// Parses manually entered addresses and checks that each may be called.
    async fn addresses(&self, list: &str) -> Result<Vec<String>, Refusal> {
        let addresses: Vec<String> = list.split(',').map(|address| address.trim().to_owned()).collect();
        apps::check_addresses(self.inside, &addresses).await?;
        Ok(addresses)
    }

    /// Token in the form of the newest protocol version. If empty, the group keeps its token.
    fn new_token(&self) -> Result<Option<&str>, Refusal> {
        match self.fields.trimmed("accessToken") {
            "" => Ok(None),
            token if is_well_known(token) || token.len() < TOKEN_MIN => Err(Refusal(format!(
                "accessToken: is easily guessed; use at least {TOKEN_MIN} random characters"
            ))),
            token => Ok(Some(token)),
        }
    }

    /// Stores a new token, if there is one, and reloads the apps so that this node sees the change at once.
    async fn give_token(&self, app: AppId, token: Option<&str>) -> Result<(), Refusal> {
        match token {
            Some(token) => drop(self.inside.keeper.add_token(app, token).await?),
            None => self.inside.keeper.load().await?,
        }
        Ok(())
    }

    fn app_view(&self, app: App) -> Value {
        let registered =
            self.inside.directory.sightings(app.id).into_iter().map(|seen| seen.address).collect();
        let (address_type, addresses): (_, Vec<String>) = match app.spec.addresses {
            Addresses::Registered => (0, registered),
            Addresses::Manual(addresses) => (1, addresses),
        };
        value(GroupView {
            id: app.id.0,
            appname: app.spec.name,
            name: app.spec.title.clone(),
            title: app.spec.title,
            address_type,
            address_list: (!addresses.is_empty()).then(|| addresses.join(",")),
            registry_list: addresses,
            update_time: self.dialect.time(app.updated_at, &self.inside.zone),
            access_token: None,
        })
    }
}

/// Shorter tokens could be guessed.
const TOKEN_MIN: usize = 16;
