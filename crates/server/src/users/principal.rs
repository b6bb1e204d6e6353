//! Identity and rights of a caller.

use engine::AppId;
use store::{Access, ApiKey, Rights, User};

use crate::executors::Scope;

/// An authenticated caller: a person, a program with a person's API key, or a caller of the executor API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Name for the audit log.
    pub name: String,
    /// Name of the user, also for an API key.
    user: String,
    access: Access,
    /// Limit of the rights, for an API key.
    limit: Option<Limit>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Limit {
    /// `None` means all apps.
    apps: Option<Vec<AppId>>,
    rights: Rights,
}

impl Principal {
    /// An anonymous caller, without rights.
    pub fn nobody() -> Principal {
        let (name, user) = ("nobody".to_owned(), "nobody".to_owned());
        Principal { name, user, access: Access::default(), limit: None }
    }

    /// A signed-in user.
    pub fn person(user: &User) -> Principal {
        let name = user.name.clone();
        Principal { name: name.clone(), user: name, access: user.access.clone(), limit: None }
    }

    /// A program with an API key of a user. It never has administrator rights, even if the user has.
    pub fn key(key: &ApiKey, user: &User) -> Principal {
        let limit = Limit { apps: key.spec.apps.clone(), rights: key.spec.rights };
        let name = format!("{} with key {}", user.name, key.id);
        Principal { name, user: user.name.clone(), access: user.access.clone(), limit: Some(limit) }
    }

    /// A caller of the executor API that may access these apps; `None` means all. It can call their executors
    /// directly, so it has all rights in them.
    pub fn executor(scope: Scope, apps: Option<Vec<AppId>>) -> Principal {
        let name = match scope {
            Scope::Every => "token".to_owned(),
            Scope::App(app) => format!("token of app {}", app.0),
            Scope::Anonymous(Some(app)) => format!("app {} without a token", app.0),
            Scope::Anonymous(None) => "no token".to_owned(),
        };
        let admin = apps.is_none();
        let grants = apps.into_iter().flatten().map(|app| (app, Rights::ALL)).collect();
        let access = Access { admin, grants, ..Access::default() };
        Principal { user: name.clone(), name, access, limit: None }
    }

    /// Name of the user, also for an API key: the same person, however it calls.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Rights in an app.
    pub fn rights(&self, app: AppId) -> Rights {
        let rights = self.access.rights(app);
        match &self.limit {
            Some(Limit { apps: Some(apps), .. }) if !apps.contains(&app) => Rights::NONE,
            Some(limit) => rights.both(limit.rights),
            None => rights,
        }
    }

    /// Whether the caller has all of these rights in an app.
    pub fn may(&self, rights: Rights, app: AppId) -> bool {
        self.rights(app).contains(rights)
    }

    /// Whether the caller may manage apps and users.
    pub fn is_admin(&self) -> bool {
        self.access.admin && !self.access.disabled && self.limit.is_none()
    }

    /// Apps that the caller may view; `None` means all.
    pub fn apps(&self) -> Option<Vec<AppId>> {
        let sees = |app: &AppId| self.may(Rights::VIEW, *app);
        let named = match &self.limit {
            Some(limit) if self.access.admin => limit.apps.clone(),
            _ if self.access.admin => None,
            _ => Some(self.access.grants.keys().copied().collect()),
        };
        match named {
            Some(apps) => Some(apps.into_iter().filter(sees).collect()),
            // Without a list of apps, rights are the same in all apps, so any app id will do.
            None if sees(&AppId(0)) => None,
            None => Some(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::{NewApiKey, Password, UserId};
    use timer::Timestamp;

    fn user(access: Access) -> User {
        User { id: UserId(1), name: "ann".into(), access, password: Password::Unusable, changed_at: None }
    }

    fn key(apps: Option<Vec<AppId>>, rights: Rights) -> ApiKey {
        let spec = NewApiKey {
            user: UserId(1),
            name: "nightly".into(),
            digest: String::new(),
            apps,
            rights,
            expires_at: None,
        };
        ApiKey { id: 7, spec, created_at: Timestamp::default(), used_at: None }
    }

    #[test]
    fn a_key_gives_at_most_what_its_owner_may_do_and_never_administers() {
        let (one, two) = (AppId(1), AppId(2));
        let admin = user(Access { admin: true, ..Access::default() });
        let of_all = Principal::key(&key(None, Rights::VIEW), &admin);
        assert_eq!((of_all.is_admin(), of_all.apps(), of_all.rights(two)), (false, None, Rights::VIEW));
        let of_one = Principal::key(&key(Some(vec![one]), Rights::ALL), &admin);
        assert_eq!((of_one.apps(), of_one.rights(two)), (Some(vec![one]), Rights::NONE));
        let member = user(Access { grants: [(one, Rights::MEMBER)].into(), ..Access::default() });
        let key = Principal::key(&key(Some(vec![one, two]), Rights::ALL), &member);
        assert_eq!((key.apps(), key.rights(one)), (Some(vec![one]), Rights::MEMBER));
    }

    #[test]
    fn who_is_disabled_sees_nothing() {
        for access in [Access { admin: true, ..Access::default() }, Access::default()] {
            let person = Principal::person(&user(Access { disabled: true, ..access }));
            assert_eq!((person.apps(), person.is_admin()), (Some(Vec::new()), false));
        }
    }
}
