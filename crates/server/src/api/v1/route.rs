//! A route: the only way to add a path under `/v1`.

use std::future::Future;
use std::pin::Pin;

use axum::routing::MethodFilter;
use protocol::v1::{Instant, Page};
use store::Rights;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use super::authorise::{Authorised, Object, admit};
use super::call::Call;
use super::reply::Reply;
use crate::http;
use crate::request_error::RequestError;

/// A path with a method, its access rules and its handler.
pub struct Route {
    /// HTTP method.
    pub method: Method,
    /// Path, with parameters in braces.
    pub path: &'static str,
    /// Accepted credentials.
    pub plane: Plane,
    /// Right that the caller needs.
    pub needs: Needs,
    /// Kind of object that the right applies to.
    pub object: &'static str,
    /// One-sentence summary.
    pub summary: &'static str,
    /// Name of the change in the audit log; `None` if the route only reads.
    pub action: Option<&'static str>,
    /// Query parameters.
    pub query: &'static [Parameter],
    /// Headers that change the behaviour of the route.
    pub headers: &'static [Parameter],
    /// Body of the request.
    pub body: Option<Shape>,
    /// Whether the body may be omitted.
    pub body_optional: bool,
    /// Status and body of a successful response.
    pub returns: (u16, Content),
    /// Whether a successful response may also be 201, for a new object.
    pub creates: bool,
    /// Whether the body may contain a script, which raises its size limit.
    large: bool,
    pub(super) serve: Serve,
}

/// A query parameter or header: name, meaning and values.
pub type Parameter = (&'static str, &'static str, Values);

/// Values that a parameter may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Any text.
    Text,
    /// An integer between the two bounds, inclusive.
    Number(i64, i64),
    /// `true` or `false`.
    Flag,
    /// A time, for example `2026-06-21T08:00:00Z`.
    Instant,
    /// One of these words.
    OneOf(&'static [&'static str]),
}

impl Values {
    /// Error message for a value that is not allowed.
    pub fn objection(self, value: &str) -> Option<String> {
        let (is_one, wanted) = match self {
            Values::Text => return None,
            Values::Number(min, max) => {
                let is_one = value.parse().is_ok_and(|number: i64| (min..=max).contains(&number));
                (is_one, format!("must be an integer from {min} to {max}"))
            }
            Values::Flag => (matches!(value, "true" | "false"), "must be `true` or `false`".into()),
            Values::Instant => match value.parse::<Instant>() {
                Ok(_) => return None,
                Err(error) => (false, error.to_string()),
            },
            Values::OneOf(words) => (words.contains(&value), format!("must be one of {}", words.join(", "))),
        };
        (!is_one).then_some(wanted)
    }
}

/// Body of a response.
pub enum Content {
    /// No body.
    Empty,
    /// JSON of this schema.
    Json(Shape),
    /// A JSON array with items of this schema.
    List(Shape),
    /// Server-sent events with JSON data of this schema.
    Events(Shape),
    /// Plain text.
    Text,
}

impl Content {
    /// Schema of the JSON, if there is any.
    pub fn shape(&self) -> Option<&Shape> {
        match self {
            Content::Json(shape) | Content::List(shape) | Content::Events(shape) => Some(shape),
            Content::Empty | Content::Text => None,
        }
    }
}

/// Schema of a body.
pub struct Shape {
    /// Name of the schema.
    pub name: String,
    /// Reference to the schema.
    pub schema: RefOr<Schema>,
    /// The schema and all schemas that it uses.
    pub parts: Vec<(String, RefOr<Schema>)>,
    /// Whether one of them has a description in the language of the client.
    pub is_localised: bool,
}

type Serve = Box<dyn Fn(Call) -> Pin<Box<dyn Future<Output = Served> + Send>> + Send + Sync>;

/// Result of a request.
pub struct Served {
    /// Object of the request, as named in the audit log.
    pub object: String,
    /// Response or error.
    pub result: Result<Reply, RequestError>,
}

/// Defines a route. Its handler receives an object on which the caller may perform this action.
pub fn route<O, F, Answer>(
    method: Method,
    path: &'static str,
    plane: Plane,
    needs: Needs,
    handler: F,
) -> Route
where
    O: Object,
    F: Fn(Call, Authorised<O>) -> Answer + Clone + Send + Sync + 'static,
    Answer: Future<Output = Result<Reply, RequestError>> + Send + 'static,
{
    let serve = move |call: Call| -> Pin<Box<dyn Future<Output = Served> + Send>> {
        let handler = handler.clone();
        Box::pin(async move {
            match admit::<O>(&call, needs).await {
                Ok(object) => {
                    let name = object.name();
                    Served { object: name, result: handler(call, object).await }
                }
                Err(refused) => {
                    let named: Vec<&str> = call.path.iter().map(|(_, value)| value.as_str()).collect();
                    Served { object: named.join("/"), result: Err(refused) }
                }
            }
        })
    };
    Route {
        method,
        path,
        plane,
        needs,
        object: O::KIND,
        summary: "",
        action: None,
        query: &[],
        headers: &[],
        body: None,
        body_optional: false,
        returns: (200, Content::Empty),
        creates: false,
        large: false,
        serve: Box::new(serve),
    }
}

impl Route {
    /// Sets the summary.
    pub fn summary(self, summary: &'static str) -> Route {
        Route { summary, ..self }
    }

    /// Sets the name of the change in the audit log.
    pub fn audited_as(self, action: &'static str) -> Route {
        Route { action: Some(action), ..self }
    }

    /// Sets the query parameters.
    pub fn query(self, query: &'static [Parameter]) -> Route {
        Route { query, ..self }
    }

    /// Sets the headers that change the behaviour of the route.
    pub fn headers(self, headers: &'static [Parameter]) -> Route {
        Route { headers, ..self }
    }

    /// Sets the body of the request.
    pub fn body<T: ToSchema>(self) -> Route {
        Route { body: Some(shape::<T>()), ..self }
    }

    /// Sets the body of the request, which may be omitted.
    pub fn optional_body<T: ToSchema>(self) -> Route {
        Route { body_optional: true, ..self.body::<T>() }
    }

    /// Sets status and body of a successful response.
    pub fn returns<T: ToSchema>(self, status: u16) -> Route {
        Route { returns: (status, Content::Json(shape::<T>())), ..self }
    }

    /// Sets the response of a route that creates (201) or replaces (200) an object.
    pub fn returns_new_or_changed<T: ToSchema>(self) -> Route {
        Route { creates: true, ..self.returns::<T>(200) }
    }

    /// Sets the response to a page of a list. All pages share one generic type, so each is named after its items.
    pub fn returns_page<T: ToSchema>(self) -> Route
    where
        Page<T>: ToSchema,
    {
        let mut page = shape::<Page<T>>();
        let name = format!("{}Page", T::name().trim_end_matches("View"));
        page.parts.retain(|(known, _)| *known != page.name);
        let items = shape::<T>();
        let is_localised = items.is_localised;
        page.parts.extend(items.parts);
        page.parts.push((name.clone(), page.schema.clone()));
        Route { returns: (200, Content::Json(Shape { name, is_localised, ..page })), ..self }
    }

    /// Sets the response to a whole list.
    pub fn returns_list<T: ToSchema>(self) -> Route {
        Route { returns: (200, Content::List(shape::<T>())), ..self }
    }

    /// Sets the response to server-sent events.
    pub fn streams<T: ToSchema>(self) -> Route {
        Route { returns: (200, Content::Events(shape::<T>())), ..self }
    }

    /// Sets the response to plain text.
    pub fn returns_text(self) -> Route {
        Route { returns: (200, Content::Text), ..self }
    }

    /// Sets the status of a successful response without a body.
    pub fn returns_status(self, status: u16) -> Route {
        Route { returns: (status, Content::Empty), ..self }
    }

    /// Allows scripts in the body.
    pub fn large(self) -> Route {
        Route { large: true, ..self }
    }

    /// Whether the response has descriptions in the language of the client.
    pub fn is_localised(&self) -> bool {
        self.returns.1.shape().is_some_and(|shape| shape.is_localised)
    }

    /// Maximum length of the body in bytes.
    pub fn body_max(&self) -> usize {
        match self.plane {
            Plane::Open => http::SMALL_MAX,
            _ if self.large => SCRIPT_MAX,
            _ => BODY_MAX,
        }
    }
}

fn shape<T: ToSchema>() -> Shape {
    let mut parts = Vec::new();
    T::schemas(&mut parts);
    let name = T::name().into_owned();
    let schema = T::schema();
    parts.push((name.clone(), schema.clone()));
    let is_localised = parts.iter().any(|(_, part)| serde_json::json!(part).to_string().contains(LOCALISED));
    Shape { name, schema, parts, is_localised }
}

/// Field that is written in the language of the client.
const LOCALISED: &str = "\"schedule_text\"";

/// Larger than any job definition.
const BODY_MAX: usize = 1024 * 1024;

/// Java executors accept at most 5 MiB, including the rest of the request.
const SCRIPT_MAX: usize = 4 * 1024 * 1024;

/// HTTP method of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Performs an action.
    Post,
    /// Creates or replaces an object.
    Put,
    /// Deletes an object.
    Delete,
}

impl Method {
    /// Whether it changes anything.
    pub fn changes(self) -> bool {
        self != Method::Get
    }

    /// Name in upper case.
    pub fn word(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        }
    }

    pub(super) fn filter(self) -> MethodFilter {
        match self {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
            Method::Put => MethodFilter::PUT,
            Method::Delete => MethodFilter::DELETE,
        }
    }
}

/// Credentials that a route accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plane {
    /// None needed.
    Open,
    /// A session or an API key.
    Api,
    /// A session only: not allowed with an API key.
    Person,
}

/// Right that the caller needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// None beyond the credential.
    Nothing,
    /// This right in the object's app.
    Right(Rights),
    /// Ownership of the object, or administrator.
    Own,
    /// Administrator.
    Admin,
}

impl Needs {
    /// Name of the right, in one word.
    pub fn word(self) -> &'static str {
        match self {
            Needs::Nothing => "-",
            Needs::Own => "own",
            Needs::Admin => "admin",
            Needs::Right(Rights::VIEW) => "view",
            Needs::Right(Rights::OPERATE) => "operate",
            Needs::Right(Rights::EDIT) => "edit",
            Needs::Right(Rights::SCRIPT) => "script",
            Needs::Right(_) => "several rights",
        }
    }
}
