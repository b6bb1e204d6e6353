//! `/jobgroup`: groups of executors (apps), for administrators only.

use engine::AppId;
use protocol::v1::ProblemCode;
use protocol::xxl::GroupView;
use serde_json::Value;
use store::{Addresses, App, AppSpec, Registry as _};

use super::{Reply, Visit, rows, value};
use crate::apps;
use crate::executors::is_well_known;
use crate::request_error::RequestError;

impl Visit<'_> {
    pub(super) async fn app_page(&self) -> Result<Reply, RequestError> {
        let fields = &self.fields;
        let name = fields.trimmed("appname").to_lowercase();
        let title = fields.get("title").or(fields.get("name")).unwrap_or_default().trim().to_lowercase();
        store::check_search(&name)?;
        store::check_search(&title)?;
        let mut found = self.state.database.apps().await?;
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

    pub(super) async fn load_app(&self) -> Result<Reply, RequestError> {
        let app = self.find_app().await?;
        Ok(Reply::Done(self.app_view(app)))
    }

    pub(super) async fn add_app(&self) -> Result<Reply, RequestError> {
        let spec = self.app_spec(None).await?;
        let token = self.new_token()?;
        let app = self.state.database.create_app(&spec).await?;
        self.give_token(app, token).await?;
        Ok(Reply::Done(Value::Null))
    }

    pub(super) async fn update_app(&self) -> Result<Reply, RequestError> {
        let before = self.find_app().await?;
        let spec = self.app_spec(Some(&before)).await?;
        let token = self.new_token()?;
        self.state.database.update_app(before.id, &spec).await?;
        self.give_token(before.id, token).await?;
        Ok(Reply::Done(Value::Null))
    }

    pub(super) async fn remove_app(&self) -> Result<Reply, RequestError> {
        let id = AppId(self.id()?);
        let apps = self.state.database.apps().await?;
        if apps.len() == 1 && apps[0].id == id {
            return Err(RequestError::new(
                ProblemCode::Conflict,
                "this is the only executor group; add another one first",
            ));
        }
        self.state.database.delete_app(id).await?;
        self.state.registrar.load().await?;
        Ok(Reply::Done(Value::Null))
    }

    async fn find_app(&self) -> Result<App, RequestError> {
        let id = self.id()?;
        let app = self.state.database.app(AppId(id)).await?;
        app.ok_or_else(|| RequestError::not_found(format!("executor group {id} does not exist")))
    }

    /// Parses and checks the form of a group. A missing name stays unchanged.
    async fn app_spec(&self, before: Option<&App>) -> Result<AppSpec, RequestError> {
        let fields = &self.fields;
        let name = match (fields.trimmed("appname"), before) {
            ("", Some(before)) => before.spec.name.clone(),
            (name, _) => name.to_owned(),
        };
        apps::check_name(&name).map_err(|error| RequestError::invalid(format!("appname: {error}")))?;
        let title = fields.get("title").or(fields.get("name")).unwrap_or_default().trim().to_owned();
        if title.is_empty() {
            return Err(RequestError::invalid("title: enter a name"));
        }
        let addresses = match fields.trimmed("addressType") {
            "1" => Addresses::Manual(self.addresses(fields.trimmed("addressList")).await?),
            "" | "0" => Addresses::Registered,
            _ => {
                return Err(RequestError::invalid(
                    "addressType: must be 0 (executors register) or 1 (fixed list)",
                ));
            }
        };
        Ok(AppSpec { name, title, addresses })
    }

    /// Parses manually entered addresses and checks that each may be called.
    async fn addresses(&self, list: &str) -> Result<Vec<String>, RequestError> {
        let addresses: Vec<String> = list.split(',').map(|address| address.trim().to_owned()).collect();
        apps::check_addresses(&self.state.outbound, &addresses).await?;
        Ok(addresses)
    }

    /// Token in the form of the newest protocol version. If empty, the group keeps its token.
    fn new_token(&self) -> Result<Option<&str>, RequestError> {
        match self.fields.trimmed("accessToken") {
            "" => Ok(None),
            token if is_well_known(token) || token.len() < TOKEN_MIN => Err(RequestError::invalid(format!(
                "accessToken: easy to guess; use at least {TOKEN_MIN} random characters"
            ))),
            token => Ok(Some(token)),
        }
    }

    /// Stores a new token, if there is one, and reloads the apps so that this node sees the change at once.
    async fn give_token(&self, app: AppId, token: Option<&str>) -> Result<(), RequestError> {
        match token {
            Some(token) => drop(self.state.registrar.add_token(app, token).await?),
            None => self.state.registrar.load().await?,
        }
        Ok(())
    }

    fn app_view(&self, app: App) -> Value {
        let registered =
            self.state.directory.sightings(app.id).into_iter().map(|seen| seen.address).collect();
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
            update_time: self.dialect.time(app.updated_at, &self.state.zone),
            access_token: None,
        })
    }
}

/// Shorter tokens could be guessed.
const TOKEN_MIN: usize = 16;
