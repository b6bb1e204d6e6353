//! Pages of long lists, and the conditions that choose their rows.

use engine::StoreError;

use crate::session::Value;

/// Which rows of a long list. Both kinds give at most [`Page::MAX`] rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// So many rows after so many others, and how many there are in all: what XXL-JOB's web API asks for.
    Offset {
        /// Rows to leave out.
        offset: u64,
        /// Rows to give.
        limit: usize,
    },
    /// So many rows after the one of that number; from the start if there is none. Costs the same however far down.
    After {
        /// What the page before said comes next.
        after: Option<i64>,
        /// Rows to give.
        limit: usize,
    },
}

impl Page {
    /// The most rows of one page: they are all in memory at once.
    pub const MAX: usize = 1_000;

    /// The first rows.
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

/// Some rows of a long list.
#[derive(Clone, Debug, PartialEq)]
pub struct Paged<T> {
    /// The rows, in the list's order.
    pub rows: Vec<T>,
    /// How many there are in all, for a [`Page::Offset`].
    pub total: Option<Total>,
    /// What to ask for next, for a [`Page::After`] that was not the last. Where few rows fit a filter, a page may be
    /// short, or even empty, and still have a next one: the search went so far and can go on.
    pub next: Option<i64>,
}

impl<T> Paged<T> {
    pub(super) fn empty(page: Page) -> Paged<T> {
        let total = matches!(page, Page::Offset { .. }).then_some(Total { count: 0, exact: true });
        Paged { rows: Vec::new(), total, next: None }
    }

    /// A page of a list that is read in one go: it has a next one if it is full.
    pub(super) fn new(rows: Vec<T>, page: Page, total: Option<Total>, id: impl Fn(&T) -> i64) -> Paged<T> {
        let is_full = rows.len() == page.limit();
        let next = match page {
            Page::After { .. } if is_full => rows.last().map(id),
            _ => None,
        };
        Paged { rows, total, next }
    }
}

/// How many rows there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// So many,
    pub count: u64,
    /// or more: counting further would cost too much.
    pub exact: bool,
}

pub fn limit_of(max: usize) -> Value {
    i64::try_from(max).unwrap_or(i64::MAX).into()
}

/// What rows have to fulfil: terms of SQL, all of them, with their parameters.
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

    /// These and others.
    pub fn with(mut self, others: &Conditions) -> Conditions {
        self.terms.extend(others.terms.iter().cloned());
        self.params.extend(others.params.iter().cloned());
        self
    }

    /// The text appears in one of the columns, in upper or lower case.
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

/// Refuses a text to search for that is longer than [`SEARCH_MAX`].
pub fn check_search(text: &str) -> Result<(), StoreError> {
    let length = text.chars().count();
    match length <= SEARCH_MAX {
        true => Ok(()),
        false => Err(StoreError::Invalid(format!(
            "a text of {length} characters is too long to search for; {SEARCH_MAX} are the most"
        ))),
    }
}

/// Characters of a text to search for. All that is searched is shorter, and SQLite fails on patterns of 50 000 bytes.
pub const SEARCH_MAX: usize = 1_000;

/// A text without the character that no database keeps can be looked for; `%` and `_` mean themselves.
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
