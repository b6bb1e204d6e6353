//! Who asks, and what they may do.

use engine::AppId;
use store::{Access, Rights, User};

use crate::executors::Scope;

/// Somebody who was recognised: a person, or a program with an app's token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// For the record.
    pub name: String,
    access: Access,
}

impl Principal {
    /// A person who has signed in.
    pub fn person(user: &User) -> Principal {
        Principal { name: user.name.clone(), access: user.access.clone() }
    }

    /// Whoever holds a token. It opens executors directly, so it may do all that can be done with theirs.
    pub fn token(scope: Scope) -> Principal {
        let (name, access) = match scope {
            Scope::Every => ("token".to_owned(), Access { admin: true, ..Access::default() }),
            Scope::App(app) => {
                let grants = [(app, Rights::ALL)].into();
                (format!("token of app {}", app.0), Access { grants, ..Access::default() })
            }
        };
        Principal { name, access }
    }

    /// Whether all of these rights are theirs for an app.
    pub fn may(&self, rights: Rights, app: AppId) -> bool {
        self.access.rights(app).contains(rights)
    }

    /// Whether apps and people are theirs to look after.
    pub fn is_admin(&self) -> bool {
        self.access.admin && !self.access.disabled
    }

    /// The apps they see; no list means all.
    pub fn apps(&self) -> Option<Vec<AppId>> {
        let sees = |app: &&AppId| self.may(Rights::VIEW, **app);
        (!self.is_admin()).then(|| self.access.grants.keys().filter(sees).copied().collect())
    }
}
