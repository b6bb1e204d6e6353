//! API reference: an OpenAPI 3.1 document built from the table of routes, and the page that shows it.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use protocol::v1::{AppBody, CSRF_HEADER, JobBody, Kill, Problem, ProblemCode, Retry, Schedule, UserBody};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::route::{Content, Parameter, Plane, Route, Shape, Values};
use super::routes;
use super::state::V1State;
use crate::api::{browser, console};

/// Routes of the document, the page that shows it, and the error pages.
pub fn pages() -> Router<Arc<V1State>> {
    Router::new()
        .route("/v1/openapi.json", get(async || shown("application/json", description())))
        .route("/v1/docs", get(async |headers: HeaderMap| console::reference(&headers)))
        .route("/errors/{code}", get(async |Path(code): Path<String>| error_page(&code)))
}

fn shown(kind: &'static str, text: &'static str) -> Response {
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(kind))];
    browser::protect((kind, text).into_response())
}

fn error_page(code: &str) -> Response {
    match explanation(code) {
        Some(text) => shown("text/plain; charset=utf-8", text),
        None => browser::protect((StatusCode::NOT_FOUND, "this error code does not exist\n").into_response()),
    }
}

/// Explanation of an error code: the page in `docs/errors`.
fn explanation(code: &str) -> Option<&'static str> {
    EXPLANATIONS.iter().find(|(known, _)| known.word() == code).map(|(_, text)| *text)
}

macro_rules! explanations {
    ($($code:ident $file:literal),* $(,)?) => {
        [$((ProblemCode::$code, include_str!(concat!("../../../../../docs/errors/", $file, ".md")))),*]
    };
}

const EXPLANATIONS: [(ProblemCode, &str); ProblemCode::ALL.len()] = explanations! {
    MalformedRequest "malformed_request",
    InvalidFields "invalid_fields",
    NotSignedIn "not_signed_in",
    WrongPassword "wrong_password",
    NotAllowed "not_allowed",
    ForeignOrigin "foreign_origin",
    NoSuchPath "no_such_path",
    NotFound "not_found",
    WrongMethod "wrong_method",
    Conflict "conflict",
    Outdated "outdated",
    TooLarge "too_large",
    TooManyRequests "too_many_requests",
    AppOffline "app_offline",
    ExecutorUnreachable "executor_unreachable",
    ExecutorRefused "executor_refused",
    DatabaseUnavailable "database_unavailable",
    DatabaseBroken "database_broken",
};

/// The OpenAPI document of the API, as JSON.
pub fn description() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| document(&routes::table()).to_string())
}

/// Builds the document. Paths are built by hand, because the table has all that is needed; only the schemas of
/// bodies are derived from their types.
fn document(table: &[Route]) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    let mut shapes: Map<String, Value> = Map::new();
    let mut taken: BTreeSet<&str> = BTreeSet::new();
    add(&mut shapes, Problem::name().into(), &Problem::schema());
    let mut parts = Vec::new();
    Problem::schemas(&mut parts);
    parts.iter().for_each(|(name, schema)| add(&mut shapes, name.clone(), schema));
    for route in table {
        for shape in route.body.iter().chain(route.returns.1.shape()) {
            shape.parts.iter().for_each(|(name, schema)| add(&mut shapes, name.clone(), schema));
        }
        taken.extend(route.body.iter().flat_map(|shape| &shape.parts).map(|(name, _)| name.as_str()));
        let methods = paths.entry(route.path).or_insert_with(|| json!({}));
        methods[route.method.word().to_lowercase()] = operation(route);
    }
    add_defaults(&mut shapes);
    let mut shapes = flat(&shapes);
    for (name, shape) in &mut shapes {
        if !taken.contains(name.as_str()) {
            without_null(shape);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tickwright",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "API of the Tickwright job scheduler. It offers every function of the console, \
                            with the same rights.",
            "license": { "name": env!("CARGO_PKG_LICENSE") }
        },
        "paths": paths,
        "components": {
            "schemas": shapes,
            "securitySchemes": {
                "key": { "type": "http", "scheme": "bearer", "description": "An API key (`tw_…`)" },
                "session": { "type": "http", "scheme": "bearer", "description": "A session, for programs" },
                "cookie": {
                    "type": "apiKey", "in": "cookie", "name": super::caller::COOKIE,
                    "description": format!("A session, for browsers; requests that change something also \
                                            need the header `{CSRF_HEADER}`")
                }
            }
        }
    })
}

/// Adds a schema. Two schemas with one name are a bug: one of them would be described wrongly.
fn add(shapes: &mut Map<String, Value>, name: String, schema: &RefOr<Schema>) {
    let schema = json!(schema);
    if let Some(known) = shapes.get(&name) {
        debug_assert_eq!(*known, schema, "two schemas are named {name}");
    }
    shapes.entry(name).or_insert(schema);
}

/// Adds the defaults of fields that a request may omit: the smallest body, written again, has them.
fn add_defaults(shapes: &mut Map<String, Value>) {
    let smallest = [
        ("AppBody", written::<AppBody>(json!({ "title": "" }))),
        ("JobBody", written::<JobBody>(json!({ "app": "", "name": "", "schedule": { "kind": "none" } }))),
        ("Kill", written::<Kill>(json!({}))),
        ("Retry", written::<Retry>(json!({}))),
        ("Schedule", written::<Schedule>(json!({ "kind": "cron", "expression": "" }))),
        ("UserBody", written::<UserBody>(json!({}))),
    ];
    for (name, body) in smallest {
        let Some(shape) = shapes.get_mut(name) else { continue };
        // One of several kinds: that of this body.
        let shape = match shape.get("oneOf").is_some() {
            true => shape["oneOf"].as_array_mut().and_then(|kinds| {
                kinds.iter_mut().find(|kind| kind["properties"]["kind"]["enum"][0] == body["kind"])
            }),
            false => Some(shape),
        };
        let Some(shape) = shape else { continue };
        let required = shape["required"].clone();
        let is_required =
            |field: &str| required.as_array().is_some_and(|names| names.iter().any(|name| name == field));
        for (field, value) in body.as_object().into_iter().flatten().filter(|(field, _)| !is_required(field))
        {
            shape["properties"][field]["default"] = value.clone();
        }
    }
}

fn written<T: DeserializeOwned + Serialize>(smallest: Value) -> Value {
    let read: T = serde_json::from_value(smallest).expect("it has all required fields");
    serde_json::to_value(read).expect("bodies have texts for keys")
}

/// Describes the fields of a response that may be absent as never null: each is either omitted or null, not both.
fn without_null(shape: &mut Value) {
    let required = shape["required"].clone();
    let required: Vec<&str> = required.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = shape.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
    for (_, field) in fields.filter(|(name, _)| !required.contains(&name.as_str())) {
        let types = field["type"].as_array().map(|types| types.iter().filter(|one| *one != "null"));
        if let Some([one]) = types.map(Iterator::collect::<Vec<_>>).as_deref() {
            field["type"] = (*one).clone();
        }
        let kinds = field["oneOf"].as_array().map(|kinds| kinds.iter().filter(|kind| kind["type"] != "null"));
        if let Some([one]) = kinds.map(Iterator::collect::<Vec<_>>).as_deref() {
            *field = (*one).clone();
        }
    }
}

/// Writes each schema that extends others (`allOf`) as one object. The others reject unknown fields, as request
/// bodies; an object that extends them has more fields, so it could never satisfy them.
fn flat(shapes: &Map<String, Value>) -> Map<String, Value> {
    let whole = |schema: &Value| match schema["allOf"].as_array() {
        None => schema.clone(),
        Some(parts) => {
            let (mut properties, mut required) = (Map::new(), Vec::new());
            for part in parts {
                let name = part["$ref"].as_str().and_then(|path| path.rsplit('/').next());
                let part = name.and_then(|name| shapes.get(name)).unwrap_or(part);
                properties.extend(part["properties"].as_object().cloned().unwrap_or_default());
                required.extend(part["required"].as_array().cloned().unwrap_or_default());
                // A response has all fields with a default.
                let defaults = part["properties"].as_object().into_iter().flatten();
                let defaults = defaults.filter(|(_, field)| field.get("default").is_some());
                required.extend(defaults.map(|(field, _)| json!(field)));
            }
            let mut flat = json!({ "type": "object", "properties": properties, "required": required });
            if let Some(text) = schema.get("description") {
                flat["description"] = text.clone();
            }
            flat
        }
    };
    shapes.iter().map(|(name, schema)| (name.clone(), whole(schema))).collect()
}

fn operation(route: &Route) -> Value {
    let named = route.path.split(['{', '}']).skip(1).step_by(2);
    let in_path = named.map(
        |name| json!({ "name": name, "in": "path", "required": true, "schema": values(in_path(route.path, name)) }),
    );
    let listed = |location: &'static str, parameters: &'static [Parameter]| {
        parameters.iter().map(move |(name, text, allowed)| {
            json!({ "name": name, "in": location, "description": text, "schema": values(*allowed) })
        })
    };
    let language = if route.is_localised() { LANGUAGE } else { &[] };
    let headers = listed("header", route.headers).chain(listed("header", language));
    let parameters = in_path.chain(listed("query", route.query)).chain(headers);
    let (status, body) = &route.returns;
    let content = content(body).map(|(kind, schema)| json!({ kind: { "schema": schema } }));
    let response = |description: &str| {
        let mut response = json!({ "description": description });
        if route.is_localised() {
            response["headers"] = json!({
                "Content-Language": { "description": "Language of `schedule_text`", "schema": values(LANGUAGES) }
            });
        }
        if let Some(content) = &content {
            response["content"] = content.clone();
        }
        response
    };
    let mut responses = json!({ "default": {
        "description": "Error, as problem details (RFC 9457)",
        "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } }
    } });
    responses[status.to_string()] = response(match status {
        200 if route.creates => "Replaced",
        201 => "Created",
        202 => "Accepted",
        204 => "Done",
        _ => "Success",
    });
    if route.creates {
        responses["201"] = response("Created");
    }
    let slug: Vec<&str> = route.path.split(|letter: char| !letter.is_alphanumeric()).skip(2).collect();
    let slug: Vec<&str> = slug.into_iter().filter(|word| !word.is_empty()).collect();
    let mut operation = json!({
        "operationId": format!("{}_{}", route.method.word().to_lowercase(), slug.join("_")),
        "summary": route.summary,
        "tags": [route.path.split('/').nth(2).unwrap_or_default()],
        "parameters": parameters.collect::<Vec<_>>(),
        "responses": responses,
        "x-needs": route.needs.word(),
        "x-object": route.object,
        "security": match route.plane {
            Plane::Open => json!([]),
            Plane::Api => json!([{ "key": [] }, { "session": [] }, { "cookie": [] }]),
            Plane::Person => json!([{ "session": [] }, { "cookie": [] }]),
        },
    });
    if let Some(shape) = &route.body {
        operation["requestBody"] = json!({
            "required": !route.body_optional,
            "content": { "application/json": { "schema": reference(shape) } }
        });
    }
    operation
}

const LANGUAGE: &[Parameter] = &[(
    "Accept-Language",
    "Preferred language of `schedule_text`: English (`en`) or Chinese (`zh`). Default: `en`",
    Values::Text,
)];

const LANGUAGES: Values = Values::OneOf(&["en", "zh"]);

/// Media type of a response and schema of its body.
fn content(body: &Content) -> Option<(&'static str, Value)> {
    match body {
        Content::Empty => None,
        Content::Json(shape) => Some(("application/json", reference(shape))),
        Content::List(shape) => {
            Some(("application/json", json!({ "type": "array", "items": reference(shape) })))
        }
        // Schema of one event, as in OpenAPI 3.2.
        Content::Events(shape) => {
            let data = json!({
                "type": "string", "contentMediaType": "application/json", "contentSchema": reference(shape)
            });
            let properties = json!({ "event": { "type": "string" }, "data": data });
            let event = json!({
                "type": "object", "description": "A server-sent event", "properties": properties, "required": ["data"]
            });
            Some(("text/event-stream", event))
        }
        Content::Text => Some(("text/plain", json!({ "type": "string" }))),
    }
}

/// Values of a path parameter: numbers, except where people or programs choose the name.
fn in_path(path: &str, name: &str) -> Values {
    match name {
        "run" => Values::Number(1, i64::MAX),
        "id" if !path.contains("/sessions/") => Values::Number(1, i64::MAX),
        _ => Values::Text,
    }
}

fn values(values: Values) -> Value {
    match values {
        Values::Text => json!({ "type": "string" }),
        Values::Number(min, max) => {
            json!({ "type": "integer", "format": "int64", "minimum": min, "maximum": max })
        }
        Values::Flag => json!({ "type": "boolean" }),
        Values::Instant => json!({ "type": "string", "format": "date-time" }),
        Values::OneOf(words) => json!({ "type": "string", "enum": words }),
    }
}

fn reference(shape: &Shape) -> Value {
    json!({ "$ref": format!("#/components/schemas/{}", shape.name) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained() {
        for code in ProblemCode::ALL {
            let (word, _, title) = code.facts();
            let text = explanation(word).unwrap_or_else(|| panic!("{word} has no page"));
            assert!(text.starts_with(&format!("# `{word}`")), "{word}");
            assert!(text.contains(title), "{word} is not called `{title}` on its page");
        }
    }

    #[test]
    fn every_shape_that_is_referred_to_is_described() {
        let document = document(&routes::table());
        let shapes = &document["components"]["schemas"];
        let text = document.to_string();
        let named = text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next());
        for name in named {
            assert!(shapes.get(name).is_some(), "{name}");
        }
        assert_eq!(document["paths"]["/v1/jobs/{job}"]["put"]["x-needs"], "edit");
    }

    #[test]
    fn a_page_is_described_by_what_it_lists() {
        let document = document(&routes::table());
        let listed = |path: &str| {
            let content = &document["paths"][path]["get"]["responses"]["200"]["content"];
            let page = content["application/json"]["schema"]["$ref"].as_str()?.rsplit('/').next()?.to_owned();
            let items = &document["components"]["schemas"][&page]["properties"]["items"]["items"];
            Some(items["$ref"].as_str()?.rsplit('/').next()?.to_owned())
        };
        for (path, expected) in [
            ("/v1/users", "UserView"),
            ("/v1/audit", "AuditView"),
            ("/v1/jobs", "JobView"),
            ("/v1/runs", "RunView"),
            ("/v1/alerts", "AlertView"),
        ] {
            assert_eq!(listed(path).as_deref(), Some(expected), "{path}");
        }
    }

    #[test]
    fn defaults_are_those_of_the_code() {
        let document = document(&routes::table());
        let shapes = &document["components"]["schemas"];
        let check = |shape: &Value, field: &str, expected: Value| {
            assert_eq!(shape["properties"][field]["default"], expected, "{field}: {shape}");
        };
        check(&shapes["JobBody"], "route", json!("first"));
        check(&shapes["JobBody"], "misfire", json!({ "kind": "skip" }));
        check(&shapes["Retry"], "count", json!(0));
        check(&shapes["Schedule"]["oneOf"][0], "dialect", json!("quartz"));
        check(&shapes["JobBody"], "app", Value::Null);
        let always: Vec<&str> =
            shapes["JobView"]["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(always.contains(&"route") && always.contains(&"next_fire_at") && !always.contains(&"key"));
    }

    #[test]
    fn a_field_of_a_response_is_omitted_or_null_but_not_both() {
        let document = document(&routes::table());
        let shapes = &document["components"]["schemas"];
        assert_eq!(shapes["RunView"]["properties"]["job_key"]["type"], "string");
        assert_eq!(shapes["RunView"]["properties"]["ended_at"]["type"], json!(["string", "null"]));
        assert_eq!(shapes["RunView"]["properties"]["origin"]["$ref"], "#/components/schemas/Origin");
        // A request may say null for what it leaves out.
        assert_eq!(shapes["JobBody"]["properties"]["timeout_ms"]["type"], json!(["integer", "null"]));
        assert_eq!(shapes["JobView"]["properties"]["timeout_ms"]["type"], "integer");
    }

    #[test]
    fn a_view_is_one_object_that_may_have_more_fields_than_the_body_in_it() {
        let document = document(&routes::table());
        for (view, field) in [("AppView", "title"), ("ApiKeyView", "rights"), ("JobView", "schedule")] {
            let shape = &document["components"]["schemas"][view];
            assert!(
                shape["properties"][field].is_object() && shape["properties"]["id"].is_object(),
                "{shape}"
            );
            assert!(shape.get("allOf").is_none() && shape.get("additionalProperties").is_none(), "{shape}");
        }
    }
}
