//! Templates: texts and JSON values with expressions between `${{` and `}}`.
//!
//! A text that is only one expression has the value of that expression, whatever its type; in a longer text, values
//! are written as text.

use serde_json::Value;

use crate::expression::{Expression, ExpressionError, Names, Scope, outside_texts};

/// A parsed template.
#[derive(Clone, Debug)]
pub enum Template {
    /// A value without expressions.
    Plain(Value),
    /// One expression, with its type.
    Whole(Box<Expression>),
    /// A text with expressions.
    Text(Vec<Part>),
    /// A list of templates.
    List(Vec<Template>),
    /// Templates by name.
    Object(Vec<(String, Template)>),
}

/// Part of a text.
#[derive(Clone, Debug)]
pub enum Part {
    /// Literal text.
    Literal(String),
    /// An expression.
    Expression(Box<Expression>),
}

/// Why a template cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// An expression is wrong.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// The end of an expression is missing.
    #[error("`${{{{` without `}}}}` in `{0}`")]
    Unclosed(String),
}

impl Template {
    /// Parses the templates in a value. See [`Expression::parse`] for the stack that it needs.
    pub fn parse(value: &Value) -> Result<Template, TemplateError> {
        Ok(match value {
            Value::String(text) => Template::parse_text(text)?,
            Value::Array(items) => {
                let items: Vec<Template> = items.iter().map(Template::parse).collect::<Result<_, _>>()?;
                match items.iter().all(Template::is_plain) {
                    true => Template::Plain(value.clone()),
                    false => Template::List(items),
                }
            }
            Value::Object(fields) => {
                let parse = |(name, value): (&String, &Value)| Ok((name.clone(), Template::parse(value)?));
                let fields: Vec<_> = fields.iter().map(parse).collect::<Result<_, TemplateError>>()?;
                match fields.iter().all(|(_, field)| field.is_plain()) {
                    true => Template::Plain(value.clone()),
                    false => Template::Object(fields),
                }
            }
            plain => Template::Plain(plain.clone()),
        })
    }

    /// Parses a text.
    pub fn parse_text(text: &str) -> Result<Template, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(begin) = rest.find(OPEN) {
            let inside = &rest[begin + OPEN.len()..];
            let end =
                end_of(inside).ok_or_else(|| TemplateError::Unclosed(text.chars().take(120).collect()))?;
            if begin > 0 {
                parts.push(Part::Literal(rest[..begin].to_owned()));
            }
            parts.push(Part::Expression(Box::new(Expression::parse(inside[..end].trim())?)));
            rest = &inside[end + CLOSE.len()..];
        }
        if parts.is_empty() {
            return Ok(Template::Plain(Value::String(text.to_owned())));
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Ok(match (parts.len(), parts.pop()) {
            (1, Some(Part::Expression(expression))) => Template::Whole(expression),
            (_, last) => {
                parts.extend(last);
                Template::Text(parts)
            }
        })
    }

    fn is_plain(&self) -> bool {
        matches!(self, Template::Plain(_))
    }

    /// Value in a scope.
    pub fn render(&self, scope: &Scope) -> Result<Value, ExpressionError> {
        Ok(match self {
            Template::Plain(value) => value.clone(),
            Template::Whole(expression) => expression.evaluate(scope)?,
            Template::Text(parts) => {
                let mut text = String::new();
                for part in parts {
                    match part {
                        Part::Literal(literal) => text.push_str(literal),
                        Part::Expression(expression) => text.push_str(&as_text(&expression.evaluate(scope)?)),
                    }
                }
                Value::String(text)
            }
            Template::List(items) => {
                items.iter().map(|item| item.render(scope)).collect::<Result<Vec<_>, _>>()?.into()
            }
            Template::Object(fields) => {
                let render = |(name, field): &(String, Template)| Ok((name.clone(), field.render(scope)?));
                Value::Object(fields.iter().map(render).collect::<Result<_, ExpressionError>>()?)
            }
        })
    }

    /// Calls `each` for every expression.
    pub fn expressions<'a>(&'a self, each: &mut dyn FnMut(&'a Expression)) {
        match self {
            Template::Plain(_) => {}
            Template::Whole(expression) => each(expression),
            Template::Text(parts) => parts.iter().for_each(|part| match part {
                Part::Literal(_) => {}
                Part::Expression(expression) => each(expression),
            }),
            Template::List(items) => items.iter().for_each(|item| item.expressions(each)),
            Template::Object(fields) => fields.iter().for_each(|(_, field)| field.expressions(each)),
        }
    }

    /// Names that its expressions use.
    pub fn names(&self) -> Names {
        let mut all = Names::default();
        self.expressions(&mut |expression| all.extend(expression.names()));
        all
    }
}

/// A value as part of a text.
pub fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Offset of the `}}` that closes an expression: not inside a text, nor the end of a map in the expression.
fn end_of(inside: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, next) in outside_texts(inside) {
        match next {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            '}' if inside[at..].starts_with(CLOSE) => return Some(at),
            _ => {}
        }
    }
    None
}

const OPEN: &str = "${{";
const CLOSE: &str = "}}";

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::expression::on_large_stack;

    fn rendered(template: Value) -> Result<Value, String> {
        let scope = Scope {
            inputs: BTreeMap::from([
                ("n".into(), json!(3)),
                ("list".into(), json!([1])),
                ("none".into(), json!(null)),
            ]),
            ..Scope::default()
        };
        let template =
            on_large_stack(|| Template::parse(&template)).unwrap().map_err(|error| error.to_string())?;
        template.render(&scope).map_err(|error| error.to_string())
    }

    #[test]
    fn a_single_expression_keeps_its_type_and_a_text_is_a_text() {
        let check = |template: Value, expected: Value| {
            assert_eq!(rendered(template.clone()), Ok(expected), "{template}")
        };
        check(json!("${{ inputs.n }}"), json!(3));
        check(json!("n = ${{ inputs.n }}, ${{inputs.list}}${{inputs.none}}."), json!("n = 3, [1]."));
        check(json!({"a": ["${{ inputs.n + 1 }}", 2], "b": "x"}), json!({"a": [4, 2], "b": "x"}));
        check(json!("no $ {{ expression }}"), json!("no $ {{ expression }}"));
        check(json!("${{ {'a': {'b': 1}} }}"), json!({"a": {"b": 1}}));
        check(json!("${{ '}}' }}!"), json!("}}!"));
        check(json!("${{ '${{' }}"), json!("${{"));
        check(json!(7), json!(7));
    }

    #[test]
    fn mistakes_are_found_when_it_is_parsed() {
        let error = rendered(json!({"a": "x ${{ inputs.n"})).unwrap_err();
        assert!(error.contains("`${{` without `}}` in `x ${{ inputs.n`"), "{error}");
        assert!(rendered(json!("${{ }}")).is_err());
    }
}
