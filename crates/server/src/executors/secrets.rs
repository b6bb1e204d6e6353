//! Secrets of apps: values that steps name, and that only requests to executors of the app contain.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::{RwLock, RwLockReadGuard};

use engine::AppId;
use store::StoredSecret;

use super::tokens::Key;
use crate::outbound::Secret;

/// Secrets of all apps, decrypted.
#[derive(Default)]
pub struct Secrets {
    rows: RwLock<Rows>,
}

#[derive(Default)]
struct Rows {
    by_app: HashMap<AppId, BTreeMap<String, Secret>>,
    /// Texts that no log shows, the longest first.
    hidden: Vec<Secret>,
}

impl Secrets {
    /// Replaces the secrets with those in the database.
    pub fn learn(&self, stored: &[StoredSecret], key: &Key) {
        let mut rows = Rows::default();
        for StoredSecret { app, name, sealed, .. } in stored {
            match key.open(sealed) {
                Some(secret) => {
                    rows.hidden.extend(texts(secret.value()).into_iter().map(Secret::new));
                    rows.by_app.entry(*app).or_default().insert(name.clone(), secret);
                }
                None => tracing::error!(
                    app = app.0,
                    name,
                    "failed to decrypt a secret: it was encrypted with another key; runs that need it are rejected \
                     by this node until all nodes have the same key file"
                ),
            }
        }
        rows.hidden.sort_by_key(|secret| std::cmp::Reverse(secret.value().len()));
        *self.rows.write().expect("no holder of this lock panics") = rows;
    }

    /// A parameter with the values of its secrets; the name of one that the app does not have.
    pub fn fill(&self, app: AppId, param: &str) -> Result<String, String> {
        let rows = self.rows();
        let value = |name: &str| Some(rows.by_app.get(&app)?.get(name)?.value().to_owned());
        workflow::secret::fill(param, &value).map(Cow::into_owned)
    }

    /// A text without the values of secrets.
    pub fn mask(&self, text: String) -> String {
        let rows = self.rows();
        rows.hidden.iter().fold(text, |text, secret| match text.contains(secret.value()) {
            true => text.replace(secret.value(), MASK),
            false => text,
        })
    }

    fn rows(&self) -> RwLockReadGuard<'_, Rows> {
        self.rows.read().expect("no holder of this lock panics")
    }
}

/// What is shown instead of a value.
const MASK: &str = "***";

/// Texts in which a value can appear: as it is, as part of a JSON text, and line by line. Short ones are part of other
/// words.
fn texts(value: &str) -> Vec<String> {
    let quoted = serde_json::to_string(value).unwrap_or_default();
    let quoted = quoted.trim_matches('"').to_owned();
    let lines = value.lines().map(|line| line.trim().to_owned());
    let mut texts: Vec<String> = [value.to_owned(), quoted].into_iter().chain(lines).collect();
    texts.retain(|text| text.chars().count() >= HIDDEN_MIN);
    texts.sort_unstable();
    texts.dedup();
    texts
}

/// Minimum length of a text that is hidden, in characters.
const HIDDEN_MIN: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use timer::Timestamp;

    fn secrets(values: &[(i64, &str, &str)]) -> Secrets {
        let key = Key::generate();
        let stored = |(app, name, value): &(i64, &str, &str)| StoredSecret {
            app: AppId(*app),
            name: (*name).to_owned(),
            sealed: key.seal(value),
            author: "ada".to_owned(),
            at: Timestamp::default(),
        };
        let secrets = Secrets::default();
        secrets.learn(&values.iter().map(stored).collect::<Vec<_>>(), &key);
        secrets
    }

    #[test]
    fn a_secret_is_filled_in_for_its_own_app() {
        let secrets = secrets(&[(1, "db", "hunter22"), (2, "other", "x")]);
        let param = workflow::secret::marker("db").unwrap();
        assert_eq!(secrets.fill(AppId(1), &param), Ok("hunter22".into()));
        assert_eq!(secrets.fill(AppId(2), &param), Err("db".into()));
        assert_eq!(secrets.fill(AppId(2), "plain"), Ok("plain".into()));
    }

    #[test]
    fn no_text_shows_a_value() {
        let secrets =
            secrets(&[(1, "db", "hunter22"), (1, "pem", "first line\nse\"cond"), (1, "pin", "1234")]);
        let check = |text: &str, expected: &str| assert_eq!(secrets.mask(text.to_owned()), expected);
        check("password hunter22!", "password ***!");
        check("first line\n", "***\n");
        check(r#"{"pem":"first line\nse\"cond"}"#, r#"{"pem":"***"}"#);
        check("1234", "1234");
        check("nothing", "nothing");
    }

    #[test]
    fn a_secret_of_another_key_is_not_known() {
        let secrets = Secrets::default();
        let sealed = Key::generate().seal("hunter22");
        let at = Timestamp::default();
        let stored = StoredSecret { app: AppId(1), name: "db".into(), sealed, author: String::new(), at };
        secrets.learn(&[stored], &Key::generate());
        assert_eq!(secrets.fill(AppId(1), &workflow::secret::marker("db").unwrap()), Err("db".into()));
    }
}
