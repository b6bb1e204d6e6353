//! Pagination of long lists, and SQL conditions for their rows.

use engine::StoreError;

use crate::session::Value;

/// A page of a long list. Both kinds return at most [`Page::MAX`] rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// Pagination by offset, with a total; used by XXL-JOB's web API.
    Offset {
        /// Rows to skip.
        offset: u64,
        /// Rows to return.
        limit: usize,
    },
    /// Pagination by key: rows after the one with this id, or from the start. Its cost does not depend on the
    /// position.
    After {
        /// Value of [`Paged::next`] of the page before.
        after: Option<i64>,
        /// Rows to return.
        limit: usize,
    },
}

impl Page {
    /// Maximum rows of one page, because they are all in memory at once.
    pub const MAX: usize = 1_000;

    /// The first page.
    pub fn first(limit: usize) -> Page {
        Page::After { after: None, limit }
    }

    pub(super) fn limit(self) -> usize {
        let (Page::Offset { limit, .. } | Page::After { limit, .. }) = self;
        limit.min(Page::MAX)
    }

    pub(super) fn after(self) -> Option<i64> {
        match self {
            Page::After { after, .. } => after,
            Page::Offset { .. } => None,
        }
    }

    /// `LIMIT` and `OFFSET`.
    pub(super) fn bounds(self) -> [Value; 2] {
        let offset = match self {
            Page::Offset { offset, .. } => i64::try_from(offset).unwrap_or(i64::MAX),
            Page::After { .. } => 0,
        };
        [limit_of(self.limit()), offset.into()]
    }
}

/// A page of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Paged<T> {
    /// The rows, in the list's order.
    pub rows: Vec<T>,
    /// Number of rows in the list, for a [`Page::Offset`].
    pub total: Option<Total>,
    /// Key of the next page, for a [`Page::After`] that was not the last. If few rows match a filter, a page may be
    /// short or even empty and still have a next one, because the number of rows searched per page is bounded.
    pub next: Option<i64>,
}

impl<T> Paged<T> {
    pub(super) fn empty(page: Page) -> Paged<T> {
        let total = matches!(page, Page::Offset { .. }).then_some(Total { count: 0, exact: true });
        Paged { rows: Vec::new(), total, next: None }
    }

    /// A page of a list that is read in one query: it has a next one if it is full.
    pub(super) fn new(rows: Vec<T>, page: Page, total: Option<Total>, id: impl Fn(&T) -> i64) -> Paged<T> {
        let is_full = rows.len() == page.limit();
        let next = match page {
            Page::After { .. } if is_full => rows.last().map(id),
            _ => None,
        };
        Paged { rows, total, next }
    }
}

/// Number of rows in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// Number of rows counted.
    pub count: u64,
    /// Whether that is all; otherwise there are more, and counting them would cost too much.
    pub exact: bool,
}

pub fn limit_of(max: usize) -> Value {
    i64::try_from(max).unwrap_or(i64::MAX).into()
}

/// SQL conditions joined by `AND`, with their parameters.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    terms: Vec<String>,
    params: Vec<Value>,
}

impl Conditions {
    pub fn and(&mut self, term: impl Into<String>, params: impl IntoIterator<Item = Value>) {
        self.terms.push(term.into());
        self.params.extend(params);
    }

    /// Both sets of conditions.
    pub fn with(mut self, others: &Conditions) -> Conditions {
        self.terms.extend(others.terms.iter().cloned());
        self.params.extend(others.params.iter().cloned());
        self
    }

    /// Requires the text in one of the columns, case-insensitive.
    pub fn and_contains(&mut self, columns: &[&str], text: &str) -> Result<(), StoreError> {
        check_search(text)?;
        if text.is_empty() {
            return Ok(());
        }
        let pattern = pattern(text);
        let terms: Vec<String> =
            columns.iter().map(|column| format!("LOWER({column}) LIKE ? ESCAPE '!'")).collect();
        let params = columns.iter().map(|_| pattern.as_str().into());
        self.and(format!("({})", terms.join(" OR ")), params);
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// `WHERE` with all terms.
    pub fn sql(&self) -> String {
        if self.terms.is_empty() { String::new() } else { format!("WHERE {}", self.terms.join(" AND ")) }
    }

    /// The parameters, followed by others.
    pub fn params(&self, others: impl IntoIterator<Item = Value>) -> Vec<Value> {
        self.params.iter().cloned().chain(others).collect()
    }
}

/// Rejects a search text that is longer than [`SEARCH_MAX`].
pub fn check_search(text: &str) -> Result<(), StoreError> {
    let length = text.chars().count();
    match length <= SEARCH_MAX {
        true => Ok(()),
        false => Err(StoreError::Invalid(format!(
            "the search text has {length} characters; at most {SEARCH_MAX} are allowed"
        ))),
    }
}

/// Maximum characters of a search text. All searched columns are shorter, and SQLite fails on patterns of 50 000
/// bytes.
pub const SEARCH_MAX: usize = 1_000;

/// A `LIKE` pattern that contains the text; `%` and `_` are escaped, and NUL, which no database stores, is removed.
fn pattern(text: &str) -> String {
    let mut pattern = String::from("%");
    for letter in text.to_lowercase().chars().filter(|letter| *letter != '\0') {
        if matches!(letter, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_look_for_means_itself() {
        assert_eq!(pattern("50%_Off!"), "%50!%!_off!!%");
        let mut conditions = Conditions::default();
        conditions.and_contains(&["a", "b"], "X").unwrap();
        conditions.and_contains(&["c"], "").unwrap();
        let longest = "x".repeat(SEARCH_MAX);
        assert!(conditions.clone().and_contains(&["a"], &longest).is_ok());
        assert!(matches!(
            conditions.and_contains(&["a"], &format!("{longest}x")),
            Err(StoreError::Invalid(_))
        ));
        assert_eq!(conditions.sql(), "WHERE (LOWER(a) LIKE ? ESCAPE '!' OR LOWER(b) LIKE ? ESCAPE '!')");
        assert_eq!(conditions.params([1.into()]).len(), 3);
    }
}
