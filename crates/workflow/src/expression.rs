//! Expressions: conditions and values, in the Common Expression Language (CEL).
//!
//! An expression sees the inputs of a run, facts about the run, and the steps that it names; it has no clock, no
//! randomness and no I/O, so the same rows give the same value. Its cost has a limit: the parser's depth is limited, a
//! comprehension cannot contain another, and what an expression builds is counted. To count it, the parsed expression is
//! rewritten: concatenation and iteration go through functions of this module.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr, operators};
use cel::parser::Parser;
use cel::{Context, Env, ExecutionError};
use serde_json::Value;

use crate::{date, secret};

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Expression {
    source: String,
    body: IdedExpr,
    names: Names,
}

/// Names that an expression uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Steps.
    pub steps: BTreeSet<String>,
    /// Inputs.
    pub inputs: BTreeSet<String>,
    /// Facts about the run, for example `date`.
    pub run: BTreeSet<String>,
    /// Whether it names a secret.
    pub secret: bool,
}

impl Names {
    /// Adds the names of another expression.
    pub fn extend(&mut self, other: &Names) {
        self.steps.extend(other.steps.iter().cloned());
        self.inputs.extend(other.inputs.iter().cloned());
        self.run.extend(other.run.iter().cloned());
        self.secret |= other.secret;
    }
}

/// Why an expression cannot be parsed or has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} in `{source_text}`")]
pub struct ExpressionError {
    message: String,
    source_text: String,
}

impl Expression {
    /// Parses an expression. The parser is recursive: call it on a thread with a stack of at least [`STACK`] bytes, for
    /// example with [`on_large_stack`].
    pub fn parse(source: &str) -> Result<Expression, ExpressionError> {
        let fail = |message: String| ExpressionError { message, source_text: shown(source) };
        let length = source.chars().count();
        if length > LENGTH_MAX {
            return Err(fail(format!(
                "the expression has {length} characters, at most {LENGTH_MAX} are allowed"
            )));
        }
        if brackets(source) > BRACKETS_MAX {
            return Err(fail(format!("more than {BRACKETS_MAX} nested brackets")));
        }
        let parsed = Parser::new().max_recursion_depth(PARSER_DEPTH_MAX).parse(source);
        let mut body =
            parsed.map_err(|errors| fail(first_line(errors.errors.first().map(|error| &error.msg))))?;
        let mut walk = Walk::default();
        walk.visit(&mut body, 0).map_err(fail)?;
        Ok(Expression { source: source.to_owned(), body, names: walk.names })
    }

    /// The expression as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Names that it uses.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Value in a scope.
    pub fn evaluate(&self, scope: &Scope) -> Result<Value, ExpressionError> {
        let built = Arc::new(AtomicUsize::new(0));
        let mut context = Context::with_env(Arc::clone(&ENV));
        scope.declare(&mut context, &self.names);
        let value = declare_functions(&mut context, &built)
            .and_then(|()| cel::Value::resolve(&self.body, &context).map_err(|error| describe(&error)))
            .and_then(|value| to_json(&value, &built));
        value.map_err(|message| ExpressionError { message, source_text: shown(&self.source) })
    }

    /// Value of a condition.
    pub fn holds(&self, scope: &Scope) -> Result<bool, ExpressionError> {
        match self.evaluate(scope)? {
            Value::Bool(holds) => Ok(holds),
            other => Err(ExpressionError {
                message: format!("a condition must be true or false, but the value is {}", kind_of(&other)),
                source_text: shown(&self.source),
            }),
        }
    }
}

/// Values that expressions see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    /// Inputs of the run, by name.
    pub inputs: BTreeMap<String, Value>,
    /// Facts about the run, by name: see [`RUN_FACTS`].
    pub run: BTreeMap<String, Value>,
    /// Steps by name.
    pub steps: BTreeMap<String, StepValue>,
}

/// A step as expressions see it.
#[derive(Clone, Debug, PartialEq)]
pub struct StepValue {
    /// State, for example `succeeded`.
    pub state: &'static str,
    /// Output; `{}` unless it has succeeded.
    pub output: Value,
}

impl Default for StepValue {
    fn default() -> Self {
        StepValue { state: "blocked", output: Value::Object(serde_json::Map::new()) }
    }
}

/// Facts about the run that expressions may name: `run.date` and so on.
pub const RUN_FACTS: [&str; 8] =
    ["id", "date", "business_date", "scheduled_at", "attempt", "started_at", "state", "failed"];

impl Scope {
    /// Only what the expression names, because a conversion costs as much as the value is large.
    fn declare(&self, context: &mut Context<'_, '_>, names: &Names) {
        let absent = StepValue::default();
        let pick = |from: &BTreeMap<String, Value>, names: &BTreeSet<String>| {
            let found = names.iter().filter_map(|name| Some((name.as_str(), to_cel(from.get(name)?))));
            to_map(found)
        };
        context.add_variable_from_value("inputs", pick(&self.inputs, &names.inputs));
        context.add_variable_from_value("run", pick(&self.run, &names.run));
        let steps = names.steps.iter().map(|name| {
            let step = self.steps.get(name).unwrap_or(&absent);
            let fields = [("state", step.state.into()), ("output", to_cel(&step.output))];
            (name.as_str(), to_map(fields.into_iter()))
        });
        context.add_variable_from_value("steps", to_map(steps));
    }
}

fn to_map<'a>(entries: impl Iterator<Item = (&'a str, cel::Value)>) -> cel::Value {
    entries.map(|(name, value)| (name.to_owned(), value)).collect::<HashMap<String, cel::Value>>().into()
}

/// Whole numbers become signed ones, so that `rows + 1` works.
fn to_cel(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(value) => cel::Value::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(number) => cel::Value::Int(number),
            None => cel::Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(fields) => to_map(fields.iter().map(|(name, value)| (name.as_str(), to_cel(value)))),
    }
}

fn to_json(value: &cel::Value, built: &AtomicUsize) -> Result<Value, String> {
    count(built, 8)?;
    Ok(match value {
        cel::Value::Null => Value::Null,
        cel::Value::Bool(value) => Value::Bool(*value),
        cel::Value::Int(number) => (*number).into(),
        cel::Value::UInt(number) => (*number).into(),
        cel::Value::Float(number) => serde_json::Number::from_f64(*number)
            .map(Value::Number)
            .ok_or_else(|| format!("the value {number} cannot be written as JSON"))?,
        cel::Value::String(text) => {
            count(built, text.len())?;
            Value::String(text.to_string())
        }
        cel::Value::List(items) => {
            items.iter().map(|item| to_json(item, built)).collect::<Result<Vec<_>, _>>()?.into()
        }
        cel::Value::Map(map) => {
            let mut object = serde_json::Map::new();
            for (key, value) in map.map.iter() {
                let key = key.to_string();
                count(built, key.len())?;
                object.insert(key, to_json(value, built)?);
            }
            // Sorted, because the map has no order of its own, and the same rows must give the same text.
            object.sort_keys();
            Value::Object(object)
        }
        other => return Err(format!("a value of the type {} cannot be used here", other.type_of())),
    })
}

/// Counts bytes that an evaluation builds.
fn count(built: &AtomicUsize, bytes: usize) -> Result<(), String> {
    if built.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > BUILT_MAX {
        return Err(format!("the value is larger than {} KiB", BUILT_MAX / 1024));
    }
    Ok(())
}

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// Functions that expressions may call, besides those of CEL.
fn declare_functions(context: &mut Context<'_, '_>, built: &Arc<AtomicUsize>) -> Result<(), String> {
    use cel::Value as Cel;
    let (for_add, for_json) = (Arc::clone(built), Arc::clone(built));
    let declared = context
        .add_function(ADD, move |left: Cel, right: Cel| answer("+", add(&left, &right, &for_add)))
        .and_then(|()| {
            context.add_function(LIMITED, |list: Cel, cost: i64| answer("iteration", limited(list, cost)))
        })
        .and_then(|()| {
            let json =
                move |value: Cel| answer("json", to_json(&value, &for_json).map(|value| value.to_string()));
            context.add_function("json", json)
        })
        .and_then(|()| {
            let add_days = |day: Arc<String>, days: i64| answer("add_days", date::add_days(&day, days));
            context.add_function("add_days", add_days)
        })
        .and_then(|()| {
            let add_months =
                |day: Arc<String>, months: i64| answer("add_months", date::add_months(&day, months));
            context.add_function("add_months", add_months)
        })
        .and_then(|()| {
            let format =
                |day: Arc<String>, pattern: Arc<String>| answer("format_date", date::format(&day, &pattern));
            context.add_function("format_date", format)
        })
        .and_then(|()| {
            let secret = |name: Arc<String>| answer("secret", secret::marker(&name));
            context.add_function("secret", secret)
        });
    declared.map_err(|error| error.to_string())
}

fn answer<T: Into<cel::Value>>(name: &str, value: Result<T, String>) -> Result<cel::Value, ExecutionError> {
    value.map(Into::into).map_err(|message| ExecutionError::function_error(name, message))
}

/// Replaces CEL's `+`, which could double a text with every call.
const ADD: &str = "@add";

/// Limits the range of a comprehension by the cost of its body.
const LIMITED: &str = "@limited";

/// Functions of CEL and of this module that expressions may call.
const FUNCTIONS: [&str; 20] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "string",
    "int",
    "uint",
    "double",
    "bool",
    "type",
    "dyn",
    "max",
    "min",
    "json",
    "add_days",
    "add_months",
    "format_date",
    "default",
    "has",
    "secret",
];

fn add(left: &cel::Value, right: &cel::Value, built: &AtomicUsize) -> Result<cel::Value, String> {
    use cel::Value::{Float, Int, List, String, UInt};
    let overflow = || "the sum is too large".to_owned();
    Ok(match (left, right) {
        (Int(left), Int(right)) => Int(left.checked_add(*right).ok_or_else(overflow)?),
        (UInt(left), UInt(right)) => UInt(left.checked_add(*right).ok_or_else(overflow)?),
        (Float(left), Float(right)) => Float(left + right),
        (String(left), String(right)) => {
            count(built, left.len() + right.len())?;
            format!("{left}{right}").into()
        }
        (List(left), List(right)) => {
            count(built, 32 * (left.len() + right.len()))?;
            List(Arc::new(left.iter().chain(right.iter()).cloned().collect()))
        }
        _ => return Err(format!("`+` cannot add a {} and a {}", left.type_of(), right.type_of())),
    })
}

fn limited(list: cel::Value, cost: i64) -> Result<cel::Value, String> {
    let length = match &list {
        cel::Value::List(items) => items.len(),
        cel::Value::Map(map) => map.map.len(),
        other => return Err(format!("a {} has no elements", other.type_of())),
    };
    let cost = usize::try_from(cost).unwrap_or(usize::MAX);
    match length.saturating_mul(cost) {
        all if all > ITERATIONS_MAX => Err(format!(
            "the list has {length} elements, at most {} are allowed here",
            ITERATIONS_MAX / cost.max(1)
        )),
        _ => Ok(list),
    }
}

/// Checks and rewrites a parsed expression.
#[derive(Default)]
struct Walk {
    names: Names,
    /// Variables of comprehensions around the current place.
    locals: Vec<String>,
    nodes: usize,
    in_comprehension: bool,
}

impl Walk {
    fn visit(&mut self, expr: &mut IdedExpr, depth: usize) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err(format!("the expression is nested more than {DEPTH_MAX} levels deep"));
        }
        self.nodes += 1;
        if self.named_value(&expr.expr)? {
            return Ok(());
        }
        match &mut expr.expr {
            Expr::Ident(name) if self.locals.contains(name) => Ok(()),
            Expr::Ident(name) => Err(unknown(name)),
            Expr::Literal(_) => Ok(()),
            Expr::Select(select) => self.visit(&mut select.operand, depth + 1),
            Expr::List(list) => list.elements.iter_mut().try_for_each(|item| self.visit(item, depth + 1)),
            Expr::Map(map) => map.entries.iter_mut().try_for_each(|entry| match &mut entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.visit(&mut entry.key, depth + 1)?;
                    self.visit(&mut entry.value, depth + 1)
                }
                EntryExpr::StructField(field) => self.visit(&mut field.value, depth + 1),
            }),
            Expr::Comprehension(_) => self.comprehension(expr, depth),
            Expr::Call(_) => self.call(expr, depth),
            Expr::Struct(_) | Expr::Unspecified => Err("this kind of expression is not supported".into()),
        }
    }

    /// Notes `steps.NAME`, `inputs.NAME`, `run.NAME`; these are looked up by their names before the evaluation.
    fn named_value(&mut self, expr: &Expr) -> Result<bool, String> {
        let Expr::Select(SelectExpr { operand, field, .. }) = expr else {
            return Ok(false);
        };
        let Expr::Ident(root) = &operand.expr else {
            return Ok(false);
        };
        if self.locals.contains(root) {
            return Ok(false);
        }
        self.nodes += 1;
        match root.as_str() {
            "steps" => self.names.steps.insert(field.clone()),
            "inputs" => self.names.inputs.insert(field.clone()),
            "run" if RUN_FACTS.contains(&field.as_str()) => self.names.run.insert(field.clone()),
            "run" => return Err(format!("`run.{field}` does not exist; there are {}", RUN_FACTS.join(", "))),
            other => return Err(unknown(other)),
        };
        Ok(true)
    }

    fn comprehension(&mut self, expr: &mut IdedExpr, depth: usize) -> Result<(), String> {
        let id = expr.id;
        let Expr::Comprehension(inner) = &mut expr.expr else {
            return Ok(());
        };
        if self.in_comprehension {
            return Err("`map`, `filter`, `all` and `exists` cannot be used inside one another".into());
        }
        self.visit(&mut inner.iter_range, depth + 1)?;
        let before = (self.locals.len(), self.nodes);
        self.locals.push(inner.iter_var.clone());
        self.locals.extend(inner.iter_var2.clone());
        self.locals.push(inner.accu_var.clone());
        self.in_comprehension = true;
        for part in [&mut inner.accu_init, &mut inner.loop_cond, &mut inner.loop_step, &mut inner.result] {
            self.visit(part, depth + 1)?;
        }
        self.in_comprehension = false;
        self.locals.truncate(before.0);
        let cost = i64::try_from(self.nodes - before.1).unwrap_or(i64::MAX);
        let range = std::mem::take(&mut inner.iter_range);
        let cost = IdedExpr { id, expr: Expr::Literal(LiteralValue::Int(cost.into())) };
        inner.iter_range = call(id, LIMITED, vec![range, cost]);
        Ok(())
    }

    fn call(&mut self, expr: &mut IdedExpr, depth: usize) -> Result<(), String> {
        let id = expr.id;
        let Expr::Call(CallExpr { func_name, target, args }) = &mut expr.expr else {
            return Ok(());
        };
        // Macros collect their result in a variable that no expression can name.
        let collects = matches!(args.first(), Some(IdedExpr { expr: Expr::Ident(name), .. }) if name.starts_with('@') || name.starts_with("__"));
        if let Some(target) = target {
            self.visit(target, depth + 1)?;
        }
        for arg in args.iter_mut() {
            self.visit(arg, depth + 1)?;
        }
        match func_name.as_str() {
            operators::ADD if !collects => ADD.clone_into(func_name),
            "default" => {
                let default = args.pop();
                let (Some(default), Some(value), None) = (default, args.pop(), args.pop()) else {
                    return Err(
                        "`default` takes a value and its replacement: default(inputs.region, 'all')".into()
                    );
                };
                *expr = or_default(id, value, default)?;
            }
            // Operators and functions of macros are not names.
            name if !name.starts_with(|first: char| first.is_ascii_alphabetic()) => {}
            "secret" => self.names.secret = true,
            name if FUNCTIONS.contains(&name) => {}
            name => {
                let known = FUNCTIONS.join(", ");
                return Err(format!(
                    "there is no function `{name}`; there are {known}, map, filter, all, exists"
                ));
            }
        }
        Ok(())
    }
}

fn unknown(name: &str) -> String {
    match name {
        "steps" | "inputs" | "run" => format!("`{name}` needs a name: write `{name}.NAME`"),
        _ => {
            format!("`{name}` does not exist; an expression sees `inputs.NAME`, `run.NAME` and `steps.NAME`")
        }
    }
}

fn call(id: u64, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    IdedExpr { id, expr: Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }) }
}

/// `default(a.b.c, d)`: `has(a.b) && has(a.b.c) ? a.b.c : d`.
fn or_default(id: u64, value: IdedExpr, default: IdedExpr) -> Result<IdedExpr, String> {
    let mut is_present: Option<IdedExpr> = None;
    let mut part = &value;
    while let Expr::Select(select) = &part.expr {
        let is_named = matches!(&select.operand.expr, Expr::Ident(name) if name == "steps" || name == "run");
        if !is_named {
            let test = SelectExpr { test: true, ..select.clone() };
            let test = IdedExpr { id, expr: Expr::Select(test) };
            is_present = Some(match is_present {
                Some(longer) => call(id, operators::LOGICAL_AND, vec![test, longer]),
                None => test,
            });
        }
        part = &select.operand;
    }
    let is_present =
        is_present.ok_or("`default` needs a field, for example default(inputs.region, 'all')")?;
    Ok(call(id, operators::CONDITIONAL, vec![is_present, value, default]))
}

/// Greatest depth of brackets outside of texts.
fn brackets(source: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for (_, next) in outside_texts(source) {
        match next {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// The characters of an expression with their offsets, without quoted texts.
pub(crate) fn outside_texts(source: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut quote, mut is_escaped) = (None, false);
    source.char_indices().filter(move |(_, next)| match quote {
        Some(_) if std::mem::take(&mut is_escaped) => false,
        Some(open) => {
            is_escaped = *next == '\\';
            quote = Some(open).filter(|open| open != next);
            false
        }
        None => {
            quote = matches!(next, '"' | '\'').then_some(*next);
            quote.is_none()
        }
    })
}

/// Errors of CEL in words that fit the rest.
fn describe(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(name) => {
            format!("there is no field `{name}`; write default(…, value) if it may be missing")
        }
        ExecutionError::FunctionError { function, message } => format!("{function}: {message}"),
        ExecutionError::NoSuchOverload(overload) => {
            let name = overload.function().trim_matches(['_', '@']);
            format!("`{name}` cannot be applied to {}", overload.argument_types().join(" and "))
        }
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "division by zero".into(),
        ExecutionError::IndexOutOfBounds(_) => "the list has no such element".into(),
        other => first_line(Some(&other.to_string())),
    }
}

fn first_line(text: Option<&String>) -> String {
    let line = text.and_then(|text| text.lines().next()).unwrap_or("it cannot be parsed");
    line.chars().take(SHOWN_MAX).collect()
}

fn shown(source: &str) -> String {
    let mut text: String = source.chars().take(SHOWN_MAX).collect();
    if text.len() < source.len() {
        text.push('…');
    }
    text
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Runs `work` on a thread with a stack of [`STACK`] bytes, for [`Expression::parse`].
pub fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("workflow-parser".into()).stack_size(STACK);
        let joined = thread.spawn_scoped(scope, work)?.join();
        joined.map_err(|_| std::io::Error::other("the parser of expressions failed"))
    })
}

/// Maximum length of an expression, in characters.
pub const LENGTH_MAX: usize = 2_000;

/// Stack that the parser may need: an expression of [`LENGTH_MAX`] characters, with a margin.
pub const STACK: usize = 16 * 1024 * 1024;

/// Maximum depth of brackets, checked before the parser sees the text.
const BRACKETS_MAX: usize = 16;

/// Maximum depth of the parser's own recursion.
const PARSER_DEPTH_MAX: u16 = 96;

/// Maximum depth of a parsed expression, because its evaluation is recursive, too.
const DEPTH_MAX: usize = 64;

/// Maximum number of bytes that an evaluation builds: as large as the parameter of a run.
const BUILT_MAX: usize = 256 * 1024;

/// Maximum length of a list times the size of the body that is evaluated for each of its elements.
const ITERATIONS_MAX: usize = 200_000;

/// Maximum length of a quoted expression in an error message.
const SHOWN_MAX: usize = 120;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scope() -> Scope {
        let check =
            json!({"rows": 5, "drift": 0.1, "files": [{"name": "a", "size": 1}, {"name": "b", "size": 2}]});
        Scope {
            inputs: BTreeMap::from([("full".into(), json!(false)), ("region".into(), json!("north"))]),
            run: BTreeMap::from([("date".into(), json!("2026-01-31")), ("id".into(), json!(42))]),
            steps: BTreeMap::from([("check".into(), StepValue { state: "succeeded", output: check })]),
        }
    }

    fn parse(source: &str) -> Result<Expression, ExpressionError> {
        on_large_stack(|| Expression::parse(source)).unwrap()
    }

    fn value(source: &str) -> Result<Value, String> {
        parse(source).and_then(|expression| expression.evaluate(&scope())).map_err(|error| error.to_string())
    }

    #[test]
    fn values_and_conditions() {
        let check = |source: &str, expected: Value| assert_eq!(value(source), Ok(expected), "{source}");
        check("inputs.full || steps.check.output.drift > 0.05", json!(true));
        check("steps.check.output.rows + 1", json!(6));
        check("steps.check.output.rows > 4 && steps.check.state == 'succeeded'", json!(true));
        check("'day ' + run.date + ' ' + inputs.region", json!("day 2026-01-31 north"));
        check("steps.check.output.files.map(f, f.name)", json!(["a", "b"]));
        check("steps.check.output.files.filter(f, f.size > 1).map(f, f.name + '!')", json!(["b!"]));
        check("steps.check.output.files.all(f, f.size + 1 > 1)", json!(true));
        check("size(steps.check.output.files)", json!(2));
        check("{'b': 1, 'a': [run.id]}", json!({"a": [42], "b": 1}));
        check("default(steps.check.output.rows, 9)", json!(5));
        check("default(steps.check.output.none, 9)", json!(9));
        check("default(steps.check.output.none.deeper, 9)", json!(9));
        check("default(steps.never.output.rows, steps.check.output.rows)", json!(5));
        check("default(inputs.absent, 'all')", json!("all"));
        check("steps.never.state", json!("blocked"));
        check("format_date(add_months(run.date, 1), 'yyyy-MM-dd')", json!("2026-02-28"));
        check("add_days(run.date, -31)", json!("2025-12-31"));
        check("json({'a': 1})", json!("{\"a\":1}"));
        check("inputs.region in ['north', 'south'] ? 1 : 2", json!(1));
    }

    #[test]
    fn mistakes_are_named() {
        let check = |source: &str, expected: &str| {
            let error = value(source).expect_err(source);
            assert!(error.contains(expected), "{source}: {error}");
            assert!(error.len() < 600 && !error.contains('\n'), "{source}: {error}");
        };
        check("steps.check.output.nothing", "there is no field `nothing`");
        check("steps", "`steps` needs a name");
        check("step.check", "`step` does not exist");
        check("run.tomorrow", "`run.tomorrow` does not exist; there are id, date");
        check("now()", "there is no function `now`");
        check("inputs.full +", "");
        check("1 / 0", "division by zero");
        check("'a' + 1", "`+` cannot add a string and a int");
        check("!inputs.full && 'yes'", "");
        check(
            "steps.check.output.files.map(f, steps.check.output.files.map(g, g.name))",
            "inside one another",
        );
        check("add_days('tomorrow', 1)", "tomorrow");
        check(&"(".repeat(17), "nested brackets");
        check(&"x".repeat(2_001), "2001 characters");
        check(&format!("1{}", " + 1".repeat(400)), "");
    }

    #[test]
    fn a_condition_is_true_or_false() {
        let error = parse("inputs.region").unwrap().holds(&scope()).unwrap_err().to_string();
        assert!(error.contains("a condition must be true or false, but the value is a text"), "{error}");
        assert_eq!(parse("!inputs.full").unwrap().holds(&scope()), Ok(true));
    }

    #[test]
    fn names_are_known_before_anything_is_evaluated() {
        let names =
            parse("inputs.a && steps.x.output.y.all(z, z > run.id) && steps.w.state == 'failed'").unwrap();
        let expected = Names {
            steps: BTreeSet::from(["x".into(), "w".into()]),
            inputs: BTreeSet::from(["a".into()]),
            run: BTreeSet::from(["id".into()]),
            secret: false,
        };
        assert_eq!(names.names(), &expected);
    }

    #[test]
    fn no_expression_builds_more_than_its_limit() {
        let long = Value::String("x".repeat(60_000));
        let many = Value::Array((0..5_000).map(Value::from).collect());
        let mut scope = scope();
        scope.inputs.insert("long".into(), long);
        scope.inputs.insert("many".into(), many);
        let check = |source: &str, expected: &str| {
            let error = parse(source).unwrap().evaluate(&scope).unwrap_err().to_string();
            assert!(error.contains(expected), "{source}: {error}");
        };
        check("inputs.long + inputs.long + inputs.long", "larger than 256 KiB");
        check("inputs.many.map(n, inputs.long)", "larger than 256 KiB");
        check("inputs.many.map(n, inputs.long + 'x')", "larger than 256 KiB");
        let doubling = format!("[inputs.long]{}", ".map(x, x + x)".repeat(60));
        let error = parse(&doubling).and_then(|doubling| doubling.evaluate(&scope)).unwrap_err().to_string();
        assert!(error.contains("larger") || error.contains("deep"), "{error}");
        let costly = format!("inputs.many.all(n, {}n >= 0)", "n >= 0 && ".repeat(20));
        check(&costly, "elements, at most");
    }
}
