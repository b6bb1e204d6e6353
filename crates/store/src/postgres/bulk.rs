//! Statements for many rows: one array per column in which the rows differ, so that a statement's text does not
//! depend on the number of rows, and is prepared once.

use super::statement::Statement;
use crate::server::{Column, columns};
use crate::session::{Columns, Value};

/// One `INSERT` for all rows.
pub fn insert(into: Columns<'_>, rows: &[Vec<Value>]) -> Statement {
    let columns = columns(rows);
    let mut statement = Statement::empty();
    statement.sql = format!("INSERT INTO {} ({}) ", into.table, into.columns.join(", "));
    if columns.iter().all(|column| matches!(column, Column::Same(_))) {
        // Equal rows have no column to count them by.
        for index in 0..rows.len() {
            statement.sql.push_str(if index == 0 { "VALUES (" } else { ", (" });
            push_terms(&mut statement, &columns, ", ");
            statement.sql.push(')');
        }
        return statement;
    }
    statement.sql.push_str("SELECT ");
    push_terms(&mut statement, &columns, ", ");
    statement.sql.push_str(" FROM ");
    push_arrays(&mut statement, &columns);
    statement
}

fn push_terms(statement: &mut Statement, columns: &[Column<'_>], between: &str) {
    for (index, column) in columns.iter().enumerate() {
        if index > 0 {
            statement.sql.push_str(between);
        }
        push_term(statement, index, column);
    }
}

fn push_term(statement: &mut Statement, index: usize, column: &Column<'_>) {
    match column {
        Column::Same(value) => statement.push_value(value),
        Column::Each(_) => statement.sql.push_str(&format!("v.c{index}")),
    }
}

/// The columns in which rows differ, as a table `v`.
fn push_arrays(statement: &mut Statement, columns: &[Column<'_>]) {
    let mut names = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        if let Column::Each(values) = column {
            statement.sql.push_str(if names.is_empty() { "UNNEST(" } else { ", " });
            statement.push_array(values);
            names.push(format!("c{index}"));
        }
    }
    statement.sql.push_str(&format!(") AS v({})", names.join(", ")));
}

/// One `UPDATE` for all rows.
pub fn update(set: Columns<'_>, rows: &[Vec<Value>]) -> Statement {
    let keys = set.keys.len();
    let mut columns = columns(rows);
    // A key that all rows share is still passed as an array: with outdated statistics the server would assume that
    // hardly any row has that key, and compare each row of the table with each of ours.
    if rows.len() > 1 {
        for column in &mut columns[..keys] {
            if let Column::Same(value) = *column {
                *column = Column::Each(vec![value; rows.len()]);
            }
        }
    }
    let mut statement = Statement::empty();
    statement.sql = format!("UPDATE {} AS t SET ", set.table);
    for (index, name) in set.columns.iter().enumerate() {
        statement.sql.push_str(&format!("{}{name} = ", if index == 0 { "" } else { ", " }));
        push_term(&mut statement, keys + index, &columns[keys + index]);
    }
    if columns.iter().any(|column| matches!(column, Column::Each(_))) {
        statement.sql.push_str(" FROM ");
        push_arrays(&mut statement, &columns);
    }
    for (index, name) in set.keys.iter().enumerate() {
        statement.sql.push_str(&format!("{}t.{name} = ", if index == 0 { " WHERE " } else { " AND " }));
        push_term(&mut statement, index, &columns[index]);
    }
    statement
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: Columns<'_> = Columns { table: "j", keys: &["id", "next"], columns: &["last", "note"] };

    fn row(id: i64, next: i64, last: Value, note: &str) -> Vec<Value> {
        vec![Value::Int(id), Value::Int(next), last, Value::Text(note.into())]
    }

    #[test]
    fn what_rows_have_in_common_is_said_once_unless_it_is_a_key() {
        let rows = [row(1, 5, Value::Null, "a"), row(2, 5, Value::Null, "b")];
        assert_eq!(
            update(JOB, &rows).sql,
            "UPDATE j AS t SET last = NULL, note = v.c3 \
             FROM UNNEST($1::bigint[], $2::bigint[], $3::text[]) AS v(c0, c1, c3) WHERE t.id = v.c0 AND t.next = v.c1"
        );
        assert_eq!(
            update(JOB, &rows[..1]).sql,
            "UPDATE j AS t SET last = NULL, note = $1 WHERE t.id = $2 AND t.next = $3"
        );
        let into = Columns { columns: &["id", "next", "last", "note"], ..JOB };
        assert_eq!(
            insert(into, &rows).sql,
            "INSERT INTO j (id, next, last, note) SELECT v.c0, $1, NULL, v.c3 \
             FROM UNNEST($2::bigint[], $3::text[]) AS v(c0, c3)"
        );
        assert_eq!(
            insert(into, &rows[..1]).sql,
            "INSERT INTO j (id, next, last, note) VALUES ($1, $2, NULL, $3)"
        );
    }
}
