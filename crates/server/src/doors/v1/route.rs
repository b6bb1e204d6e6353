//! A route: the one way to put a path under `/v1`.

use std::future::Future;
use std::pin::Pin;

use axum::routing::MethodFilter;
use store::Rights;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use super::authorise::{Authorised, Object, admit};
use super::call::Call;
use super::problem::Refused;
use super::reply::Reply;

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
    /// The parameters that may stand in the query, each with what it means.
    pub query: &'static [(&'static str, &'static str)],
    /// What is sent.
    pub takes: Option<Shape>,
    /// What is answered, with which status.
    pub gives: (u16, Option<Shape>),
    /// Scripts may be sent.
    large: bool,
    pub(super) serve: Serve,
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
        takes: None,
        gives: (200, None),
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

    /// Says what may stand in the query.
    pub fn asks(self, query: &'static [(&'static str, &'static str)]) -> Route {
        Route { query, ..self }
    }

    /// Says what is sent.
    pub fn takes<T: ToSchema>(self) -> Route {
        Route { takes: Some(shape::<T>()), ..self }
    }

    /// Says what is answered.
    pub fn gives<T: ToSchema>(self, status: u16) -> Route {
        Route { gives: (status, Some(shape::<T>())), ..self }
    }

    /// Says that nothing is answered but the status.
    pub fn answers(self, status: u16) -> Route {
        Route { gives: (status, None), ..self }
    }

    /// Says that scripts may be sent.
    pub fn large(self) -> Route {
        Route { large: true, ..self }
    }

    /// The longest body.
    pub fn body_max(&self) -> usize {
        if self.large { SCRIPT_MAX } else { BODY_MAX }
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
