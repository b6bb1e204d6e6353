//! API reference: an OpenAPI 3.1 document built from the table of routes, and a page that shows it.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use protocol::v1::{CSRF_HEADER, Problem, ProblemCode};
use serde_json::{Map, Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::route::{Content, Parameter, Plane, Route, Shape, Values};
use super::routes;
use crate::centre::Inside;
use crate::doors::browser;

/// Routes of the document, the page that shows it, and the error pages.
pub fn pages() -> Router<Arc<Inside>> {
    Router::new()
        .route("/v1/openapi.json", get(async || shown("application/json", description())))
        .route("/v1/docs", get(async || shown("text/html; charset=utf-8", include_str!("docs/page.html"))))
        .route("/v1/docs/page.js", get(async || shown("text/javascript", include_str!("docs/page.js"))))
        .route("/v1/docs/page.css", get(async || shown("text/css", include_str!("docs/page.css"))))
        .route("/errors/{code}", get(async |Path(code): Path<String>| error_page(&code)))
}

fn shown(kind: &'static str, text: &'static str) -> Response {
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(kind))];
    browser::protect((kind, text).into_response())
}

fn error_page(code: &str) -> Response {
    match explanation(code) {
        Some(text) => shown("text/plain; charset=utf-8", text),
        None => browser::protect((StatusCode::NOT_FOUND, "there is no such code\n").into_response()),
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

fn description() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| document(&routes::table()).to_string())
}

/// Builds the document. Paths are built by hand, because the table has all that is needed; only the schemas of
/// bodies are derived from their types.
fn document(table: &[Route]) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    let mut shapes: Map<String, Value> = Map::new();
    add(&mut shapes, Problem::name().into(), &Problem::schema());
    let mut parts = Vec::new();
    Problem::schemas(&mut parts);
    parts.iter().for_each(|(name, schema)| add(&mut shapes, name.clone(), schema));
    for route in table {
        for shape in route.takes.iter().chain(route.gives.1.shape()) {
            shape.parts.iter().for_each(|(name, schema)| add(&mut shapes, name.clone(), schema));
        }
        let methods = paths.entry(route.path).or_insert_with(|| json!({}));
        methods[route.method.word().to_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tickwright",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Whatever a button of the console does, a program can do here, with the same rights.",
            "license": { "name": env!("CARGO_PKG_LICENSE") }
        },
        "paths": paths,
        "components": {
            "schemas": flat(&shapes),
            "securitySchemes": {
                "key": { "type": "http", "scheme": "bearer", "description": "An API key (`tw_…`)" },
                "session": { "type": "http", "scheme": "bearer", "description": "A session, as programs send it" },
                "cookie": {
                    "type": "apiKey", "in": "cookie", "name": super::caller::COOKIE,
                    "description": format!("A session, as browsers send it; a change needs the header `{CSRF_HEADER}`, too")
                }
            }
        }
    })
}

/// Adds a schema. Two schemas with one name are a bug: one of them would be described wrongly.
fn add(shapes: &mut Map<String, Value>, name: String, schema: &RefOr<Schema>) {
    let schema = json!(schema);
    if let Some(known) = shapes.get(&name) {
        debug_assert_eq!(*known, schema, "two shapes are called {name}");
    }
    shapes.entry(name).or_insert(schema);
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
    let listed = |place: &'static str, parameters: &'static [Parameter]| {
        parameters.iter().map(move |(name, text, allowed)| {
            json!({ "name": name, "in": place, "description": text, "schema": values(*allowed) })
        })
    };
    let parameters = in_path.chain(listed("query", route.query)).chain(listed("header", route.headers));
    let (status, gives) = &route.gives;
    let mut answer = json!({ "description": route.summary });
    if let Some((kind, schema)) = content(gives) {
        answer["content"] = json!({ kind: { "schema": schema } });
    }
    let mut responses = json!({ "default": {
        "description": "A problem: RFC 9457",
        "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } }
    } });
    responses[status.to_string()] = answer.clone();
    if route.creates {
        responses["201"] = answer;
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
    if let Some(shape) = &route.takes {
        operation["requestBody"] = json!({
            "required": !route.body_optional,
            "content": { "application/json": { "schema": reference(shape) } }
        });
    }
    operation
}

/// Media type of a response and schema of its body.
fn content(gives: &Content) -> Option<(&'static str, Value)> {
    match gives {
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
