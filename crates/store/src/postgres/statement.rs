//! A statement and its parameters as PostgreSQL needs them: numbered and typed.

use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{Arguments, AssertSqlSafe, Postgres};

use crate::server::pieces;
use crate::session::Value;

/// A statement, ready to run.
#[derive(Clone)]
pub struct Statement {
    pub sql: String,
    arguments: PgArguments,
}

impl Statement {
    /// An empty statement.
    pub fn empty() -> Statement {
        Statement { sql: String::new(), arguments: PgArguments::default() }
    }

    /// Replaces each `?`: by a number, by a plain NULL that fits any type, or for many ids by one array, so that the
    /// text does not depend on their number.
    pub fn new(sql: &str, params: &[Value]) -> Statement {
        let mut statement = Statement::empty();
        let pieces = pieces(sql);
        debug_assert_eq!(pieces.len(), params.len() + 1, "parameters of {sql}");
        let mut params = params.iter();
        for (index, piece) in pieces.into_iter().enumerate() {
            if index > 0 {
                statement.push_value(params.next().unwrap_or(&Value::Null));
            }
            statement.sql.push_str(piece);
        }
        statement
    }

    /// Appends a parameter.
    pub fn push_value(&mut self, value: &Value) {
        match value {
            Value::Null => self.sql.push_str("NULL"),
            Value::Int(number) => self.push_argument(*number, ""),
            Value::Text(text) => self.push_argument(text.clone(), ""),
            Value::Time(text) => self.push_argument(text.clone(), "::timestamp"),
            Value::Ids(ids) => self.push_list(ids.clone()),
            Value::Texts(texts) => self.push_list(texts.clone()),
        }
    }

    /// Replaces the `IN` before the parameter by a comparison with an array.
    fn push_list<'q, T>(&mut self, list: T)
    where
        T: sqlx::Encode<'q, Postgres> + sqlx::Type<Postgres> + 'q,
    {
        let (operator, array) = match self.sql.strip_suffix("NOT IN ") {
            Some(before) => (before.len(), "<> ALL("),
            None => (self.sql.strip_suffix("IN ").map_or(self.sql.len(), str::len), "= ANY("),
        };
        self.sql.truncate(operator);
        self.sql.push_str(array);
        self.push_argument(list, ")");
    }

    /// Appends a column of values as an array.
    pub fn push_array(&mut self, values: &[&Value]) {
        let some = values.iter().find(|value| !matches!(value, Value::Null));
        if let Some(Value::Text(_) | Value::Time(_)) = some {
            let texts: Vec<Option<&str>> = values
                .iter()
                .map(|value| match value {
                    Value::Text(text) | Value::Time(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            let kind = if let Some(Value::Time(_)) = some { "::text[]::timestamp[]" } else { "::text[]" };
            self.push_argument(texts, kind);
        } else {
            let numbers: Vec<Option<i64>> = values
                .iter()
                .map(|value| if let Value::Int(number) = value { Some(*number) } else { None })
                .collect();
            self.push_argument(numbers, "::bigint[]");
        }
    }

    fn push_argument<'q, T>(&mut self, value: T, suffix: &str)
    where
        T: sqlx::Encode<'q, Postgres> + sqlx::Type<Postgres> + 'q,
    {
        self.arguments.add(value).expect("numbers and texts can be sent");
        self.sql.push_str(&format!("${}{suffix}", self.arguments.len()));
    }

    /// The query to run. The connection caches it as a prepared statement, because the texts repeat.
    pub fn query(self) -> Query<'static, Postgres, PgArguments> {
        sqlx::query_with(AssertSqlSafe(self.sql), self.arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_and_typed() {
        let check = |sql: &str, params: &[Value], expected: &str| {
            assert_eq!(Statement::new(sql, params).sql, expected);
        };
        check("SELECT '?'", &[], "SELECT '?'");
        check("a = ? AND b IS ?", &[Value::Int(1), Value::Null], "a = $1 AND b IS NULL");
        check(
            "t = ? AND x = ?",
            &[Value::Time("2026-06-21 10:00:00".into()), Value::Text("y".into())],
            "t = $1::timestamp AND x = $2",
        );
        check("id IN ? AND x = ?", &[Value::Ids(vec![1, 2]), Value::Int(3)], "id = ANY($1) AND x = $2");
        check("id NOT IN ?", &[Value::Ids(vec![1])], "id <> ALL($1)");
        check("x IN ?", &[Value::Texts(vec!["y".into()])], "x = ANY($1)");
    }
}
