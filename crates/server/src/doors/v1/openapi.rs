//! The description of the API: OpenAPI 3.1 from the table of routes, and a page of ours that shows it.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use protocol::v1::{Problem, ProblemCode};
use serde_json::{Map, Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::route::{Plane, Route, Shape};
use super::routes;
use crate::centre::Inside;
use crate::doors::browser;

/// The description, the page that shows it, and what the codes of errors mean.
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

/// What a code means: the page in `docs/errors`.
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

/// The document. Its parts are made by hand, since a table says all there is to say about a path; only the shapes of
/// bodies come from their types.
fn document(table: &[Route]) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    let mut shapes: Map<String, Value> = Map::new();
    add(&mut shapes, Problem::name().into(), &Problem::schema());
    let mut parts = Vec::new();
    Problem::schemas(&mut parts);
    parts.iter().for_each(|(name, schema)| add(&mut shapes, name.clone(), schema));
    for route in table {
        for shape in route.takes.iter().chain(&route.gives.1) {
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
            "schemas": shapes,
            "securitySchemes": {
                "key": { "type": "http", "scheme": "bearer", "description": "An API key (`tw_…`), or a session" },
                "session": { "type": "apiKey", "in": "cookie", "name": super::caller::COOKIE }
            }
        }
    })
}

fn add(shapes: &mut Map<String, Value>, name: String, schema: &RefOr<Schema>) {
    shapes.entry(name).or_insert_with(|| json!(schema));
}

fn operation(route: &Route) -> Value {
    let named = route.path.split(['{', '}']).skip(1).step_by(2);
    let in_path = named
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    let in_query = route.query.iter().map(|(name, text)| {
        json!({ "name": name, "in": "query", "description": text, "schema": { "type": "string" } })
    });
    let (status, gives) = &route.gives;
    let mut answer = json!({ "description": route.summary });
    if let Some(shape) = gives {
        let kind = if is_stream(route) { "text/event-stream" } else { "application/json" };
        answer["content"] = json!({ kind: { "schema": reference(shape) } });
    }
    let problem = json!({
        "description": "A problem: RFC 9457",
        "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } }
    });
    let mut operation = json!({
        "summary": route.summary,
        "tags": [route.path.split('/').nth(2).unwrap_or_default()],
        "parameters": in_path.chain(in_query).collect::<Vec<_>>(),
        "responses": { status.to_string(): answer, "default": problem },
        "x-needs": route.needs.word(),
        "x-object": route.object,
        "security": match route.plane {
            Plane::Open => json!([]),
            Plane::Api => json!([{ "key": [] }, { "session": [] }]),
            Plane::Person => json!([{ "session": [] }]),
        },
    });
    if let Some(shape) = &route.takes {
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": reference(shape) } } });
    }
    operation
}

fn is_stream(route: &Route) -> bool {
    route.path == "/v1/events" || route.path.ends_with("/live")
}

/// Lists are described in place, all else by name.
fn reference(shape: &Shape) -> Value {
    match &shape.schema {
        RefOr::T(Schema::Array(_)) => json!(shape.schema),
        _ => json!({ "$ref": format!("#/components/schemas/{}", shape.name) }),
    }
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
}
