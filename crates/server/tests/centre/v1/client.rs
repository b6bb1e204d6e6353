//! A client of the API.

use serde_json::{Value, json};
use store::{Access, Rights};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::kit::Bench;
use crate::script::Reply;

/// A caller's credentials: whole header lines.
#[derive(Clone)]
pub struct Client<'a> {
    bench: &'a Bench,
    pub headers: String,
}

pub const PASSWORD: &str = "correct horse battery";

impl Bench {
    /// A client without credentials.
    pub fn nobody(&self) -> Client<'_> {
        Client { bench: self, headers: String::new() }
    }

    /// A user with a session, as the command line uses it.
    pub async fn client(&self, name: &str, password: &str) -> Client<'_> {
        let nobody = Client { headers: "Tickwright-Client: cli\r\n".into(), ..self.nobody() };
        let reply = nobody.send("POST", "/v1/session", &json!({ "user": name, "password": password })).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let [session] = reply.header("tickwright-session")[..] else { panic!("{reply:?}") };
        self.bearer(session)
    }

    pub async fn admin(&self) -> Client<'_> {
        self.client(&self.admin.name, &self.admin.password).await
    }

    /// A user with these rights in the sample app.
    pub async fn person(&self, name: &str, rights: Rights) -> Client<'_> {
        let grants = [(engine::AppId(1), rights)].into_iter().filter(|(_, rights)| *rights != Rights::NONE);
        let access = Access { grants: grants.collect(), ..Access::default() };
        self.user(name, &access).await;
        self.client(name, PASSWORD).await
    }

    pub async fn user(&self, name: &str, access: &Access) {
        let admin = self.admin().await;
        admin.done("PUT", &format!("/v1/users/{name}"), &json!({ "password": PASSWORD })).await;
        let user = self.database.user_by_name(name).await.unwrap().unwrap();
        self.database.update_user(user.id, access).await.unwrap();
    }

    /// A client with this bearer token.
    pub fn bearer(&self, secret: &str) -> Client<'_> {
        Client { bench: self, headers: format!("Authorization: Bearer {secret}\r\n") }
    }
}

impl Client<'_> {
    /// Returns the same client with one more header line.
    pub fn with(&self, line: &str) -> Self {
        Client { headers: format!("{}{line}\r\n", self.headers), ..self.clone() }
    }

    /// Sends JSON, or no body for null.
    pub async fn send(&self, method: &str, path: &str, body: &Value) -> Reply {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send_as("application/json", method, path, &body).await
    }

    pub async fn send_as(&self, kind: &str, method: &str, path: &str, body: &str) -> Reply {
        self.bench.exchange(self.request(kind, method, path, body).as_bytes()).await
    }

    /// Sends JSON and returns the connection, without waiting for an answer.
    pub async fn begin(&self, method: &str, path: &str, body: &Value) -> TcpStream {
        let mut stream = TcpStream::connect(self.bench.address).await.unwrap();
        let request = self.request("application/json", method, path, &body.to_string());
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    fn request(&self, kind: &str, method: &str, path: &str, body: &str) -> String {
        let kind = if body.is_empty() { String::new() } else { format!("Content-Type: {kind}\r\n") };
        format!(
            "{method} {path} HTTP/1.1\r\nHost: centre\r\n{kind}{}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.headers,
            body.len()
        )
    }

    /// A request that succeeds; returns the body of the answer.
    pub async fn done(&self, method: &str, path: &str, body: &Value) -> Value {
        let reply = self.send(method, path, body).await;
        assert!((200..300).contains(&reply.status), "{method} {path}: {reply:?}");
        if reply.body.is_empty() { Value::Null } else { reply.json() }
    }

    /// Adds an app whose executors register.
    pub async fn add_app(&self, name: &str, title: &str) {
        let body = json!({ "title": title, "addressing": { "kind": "registered" } });
        self.done("PUT", &format!("/v1/apps/{name}"), &body).await;
    }

    pub async fn get(&self, path: &str) -> Value {
        self.done("GET", path, &Value::Null).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Value {
        self.done("POST", path, body).await
    }

    /// A request that fails; returns the error code.
    pub async fn refused(&self, method: &str, path: &str, body: &Value) -> String {
        let reply = self.send(method, path, body).await;
        problem(&reply)
    }
}

/// Returns the code of an error, after checking its format.
pub fn problem(reply: &Reply) -> String {
    assert!(reply.status >= 400, "{reply:?}");
    assert_eq!(reply.header("content-type"), ["application/problem+json"], "{reply:?}");
    let json = reply.json();
    assert_eq!(json["status"], reply.status, "{reply:?}");
    let code = json["code"].as_str().unwrap().to_owned();
    assert_eq!(json["type"], format!("/errors/{code}"));
    code
}

/// A job of the sample app that is never due by itself.
pub fn body(app: &str, name: &str) -> Value {
    json!({ "app": app, "name": name, "handler": "echo", "schedule": { "kind": "none" } })
}
