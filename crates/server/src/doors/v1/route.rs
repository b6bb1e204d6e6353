//! A route: the one way to put a path under `/v1`.

use std::future::Future;
use std::pin::Pin;

use axum::routing::MethodFilter;
use protocol::v1::{Instant, Page};
use store::Rights;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use super::authorise::{Authorised, Object, admit};
use super::call::Call;
use super::problem::Refused;
use super::reply::Reply;
use crate::http;

/// A path with a method: who may come, what it is about, and what it does.
pub struct Route {
    /// How it is asked for,
    pub method: Method,
    /// and where. Names of objects stand in braces.
    pub path: &'static str,
    /// By which credentials.
    pub plane: Plane,
    /// What the caller must be allowed,
    pub needs: Needs,
    /// with what.
    pub object: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// What a change is called in the audit.
    pub action: Option<&'static str>,
    /// Parameters of the query.
    pub query: &'static [Parameter],
    /// Headers that change what the route does.
    pub headers: &'static [Parameter],
    /// Body of the request.
    pub takes: Option<Shape>,
    /// Whether the request may come without its body.
    pub body_optional: bool,
    /// Status and body of a successful response.
    pub gives: (u16, Content),
    /// Whether a successful response may also be a 201: the object is new.
    pub creates: bool,
    /// Scripts may be sent.
    large: bool,
    pub(super) serve: Serve,
}

/// A parameter of a query, or a header: its name, its meaning and its values.
pub type Parameter = (&'static str, &'static str, Values);

/// The values a parameter may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Any text.
    Text,
    /// A whole number from the first to the second.
    Number(i64, i64),
    /// `true` or `false`.
    Flag,
    /// An instant, for example `2026-06-21T08:00:00Z`.
    Instant,
    /// One of these words.
    OneOf(&'static [&'static str]),
}

impl Values {
    /// What is wrong with a value, if it is none of these.
    pub fn objection(self, value: &str) -> Option<String> {
        let (is_one, wanted) = match self {
            Values::Text => return None,
            Values::Number(min, max) => {
                let is_one = value.parse().is_ok_and(|number: i64| (min..=max).contains(&number));
                (is_one, format!("is a whole number from {min} to {max}"))
            }
            Values::Flag => (matches!(value, "true" | "false"), "is `true` or `false`".into()),
            Values::Instant => match value.parse::<Instant>() {
                Ok(_) => return None,
                Err(error) => (false, error.to_string()),
            },
            Values::OneOf(words) => (words.contains(&value), format!("is one of {}", words.join(", "))),
        };
        (!is_one).then_some(wanted)
    }
}

/// The body of a response.
pub enum Content {
    /// None.
    Empty,
    /// JSON of this shape.
    Json(Shape),
    /// A JSON array with items of this shape.
    List(Shape),
    /// Server-sent events, whose data are JSON of this shape.
    Events(Shape),
    /// Plain text.
    Text,
}

impl Content {
    /// The shape of its JSON, if it has any.
    pub fn shape(&self) -> Option<&Shape> {
        match self {
            Content::Json(shape) | Content::List(shape) | Content::Events(shape) => Some(shape),
            Content::Empty | Content::Text => None,
        }
    }
}

/// The shape of a body: its name, itself, and all shapes it is made of.
pub struct Shape {
    /// What it is called.
    pub name: String,
    /// How it is referred to.
    pub schema: RefOr<Schema>,
    /// It and its parts.
    pub parts: Vec<(String, RefOr<Schema>)>,
}

type Serve = Box<dyn Fn(Call) -> Pin<Box<dyn Future<Output = Served> + Send>> + Send + Sync>;

/// What came of a call.
pub struct Served {
    /// What it was about.
    pub object: String,
    /// The answer.
    pub result: Result<Reply, Refused>,
}

/// A route whose handler is given an object that the caller may do this with.
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
    Answer: Future<Output = Result<Reply, Refused>> + Send + 'static,
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
        takes: None,
        body_optional: false,
        gives: (200, Content::Empty),
        creates: false,
        large: false,
        serve: Box::new(serve),
    }
}

impl Route {
    /// Says what it does.
    pub fn says(self, summary: &'static str) -> Route {
        Route { summary, ..self }
    }

    /// Says what the change is called in the audit.
    pub fn noted_as(self, action: &'static str) -> Route {
        Route { action: Some(action), ..self }
    }

    /// Lists the parameters of the query.
    pub fn asks(self, query: &'static [Parameter]) -> Route {
        Route { query, ..self }
    }

    /// Lists the headers that change what the route does.
    pub fn heeds(self, headers: &'static [Parameter]) -> Route {
        Route { headers, ..self }
    }

    /// Sets the body of the request.
    pub fn takes<T: ToSchema>(self) -> Route {
        Route { takes: Some(shape::<T>()), ..self }
    }

    /// Sets the body of the request, which may be left out.
    pub fn may_take<T: ToSchema>(self) -> Route {
        Route { body_optional: true, ..self.takes::<T>() }
    }

    /// Sets status and body of a successful response.
    pub fn gives<T: ToSchema>(self, status: u16) -> Route {
        Route { gives: (status, Content::Json(shape::<T>())), ..self }
    }

    /// The same for a route that creates an object or replaces it: 201 or 200.
    pub fn gives_new_or_changed<T: ToSchema>(self) -> Route {
        Route { creates: true, ..self.gives::<T>(200) }
    }

    /// The same for a page of a list. All pages have one type with a parameter, so they are named by what is listed.
    pub fn gives_page<T: ToSchema>(self) -> Route
    where
        Page<T>: ToSchema,
    {
        let mut page = shape::<Page<T>>();
        let name = format!("{}Page", T::name().trim_end_matches("View"));
        page.parts.retain(|(known, _)| *known != page.name);
        page.parts.extend(shape::<T>().parts);
        page.parts.push((name.clone(), page.schema.clone()));
        Route { gives: (200, Content::Json(Shape { name, ..page })), ..self }
    }

    /// The same for a whole list.
    pub fn gives_list<T: ToSchema>(self) -> Route {
        Route { gives: (200, Content::List(shape::<T>())), ..self }
    }

    /// The same for server-sent events.
    pub fn streams<T: ToSchema>(self) -> Route {
        Route { gives: (200, Content::Events(shape::<T>())), ..self }
    }

    /// The same for plain text.
    pub fn gives_text(self) -> Route {
        Route { gives: (200, Content::Text), ..self }
    }

    /// Sets the status of a successful response without a body.
    pub fn answers(self, status: u16) -> Route {
        Route { gives: (status, Content::Empty), ..self }
    }

    /// Says that scripts may be sent.
    pub fn large(self) -> Route {
        Route { large: true, ..self }
    }

    /// The longest body.
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
    Shape { name, schema, parts }
}

/// More than any definition has.
const BODY_MAX: usize = 1024 * 1024;

/// Java executors take no more than 5 MiB, the rest of the request included.
const SCRIPT_MAX: usize = 4 * 1024 * 1024;

/// How a path is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A look.
    Get,
    /// A deed.
    Post,
    /// Makes something be so.
    Put,
    /// Makes something be gone.
    Delete,
}

impl Method {
    /// Whether it is more than a look.
    pub fn changes(self) -> bool {
        self != Method::Get
    }

    /// In capitals.
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

/// By which credentials a route can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plane {
    /// None.
    Open,
    /// A session or an API key.
    Api,
    /// A session: what a key must never do.
    Person,
}

/// What the caller must be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing more than to come in.
    Nothing,
    /// This right, for the object's app.
    Right(Rights),
    /// To own the object, or to be an administrator.
    Own,
    /// To be an administrator.
    Admin,
}

impl Needs {
    /// In a word.
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
