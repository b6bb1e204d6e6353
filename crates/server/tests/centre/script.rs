//! A script that calls the web API, as XXL-JOB's users have them.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::kit::Bench;

/// The two login endpoints that scripts were written for.
pub const OLD: &str = "/xxl-job-admin/login";
pub const NEW: &str = "/auth/doLogin";

/// A script with its session cookie.
pub struct Script<'a> {
    bench: &'a Bench,
    pub cookie: String,
    is_new: bool,
}

/// An answer, as a script sees it.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> Vec<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Bench {
    /// Signs in as a user.
    pub async fn script(&self, login: &str, name: &str, password: &str) -> Script<'_> {
        let reply = self.sign_in(login, name, password).await;
        assert_eq!(reply.json()["code"], 200, "{reply:?}");
        let set = reply.header("set-cookie");
        let [set] = set.as_slice() else { panic!("one cookie is set: {reply:?}") };
        let cookie = set.split(';').next().unwrap().to_owned();
        Script { bench: self, cookie, is_new: login == NEW }
    }

    /// Signs in as the first administrator.
    pub async fn admin_script(&self, login: &str) -> Script<'_> {
        self.script(login, &self.admin.name, &self.admin.password).await
    }

    pub async fn sign_in(&self, login: &str, name: &str, password: &str) -> Reply {
        self.request("POST", login, "", &[("userName", name), ("password", password)]).await
    }

    /// Sends a form; `headers` are whole lines.
    pub async fn request(&self, method: &str, path: &str, headers: &str, form: &[(&str, &str)]) -> Reply {
        let encode = |text: &str| -> String {
            text.bytes()
                .map(|byte| match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' => char::from(byte).to_string(),
                    byte => format!("%{byte:02X}"),
                })
                .collect()
        };
        let pairs: Vec<String> =
            form.iter().map(|(name, text)| format!("{}={}", encode(name), encode(text))).collect();
        let form = pairs.join("&");
        let (target, body) = match method {
            "GET" => (format!("{path}?{form}"), String::new()),
            _ => (path.to_owned(), form),
        };
        let (kind, length) = ("application/x-www-form-urlencoded", body.len());
        let bytes = format!(
            "{method} {target} HTTP/1.1\r\nHost: centre\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
             Connection: close\r\n{headers}\r\n{body}"
        );
        self.exchange(bytes.as_bytes()).await
    }

    /// Sends bytes, and reads the whole answer.
    pub async fn exchange(&self, bytes: &[u8]) -> Reply {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap();
        Reply { status, head: head.into(), body: body.into() }
    }
}

impl Script<'_> {
    pub async fn send(&self, method: &str, path: &str, form: &[(&str, &str)]) -> Reply {
        let cookie = format!("Cookie: other=1; {}; Path=/; HttpOnly\r\n", self.cookie);
        self.bench.request(method, path, &cookie, form).await
    }

    /// Sends a request in the dialect's format; returns code, message and payload.
    pub async fn ask(&self, path: &str, form: &[(&str, &str)]) -> (i64, String, Value) {
        let reply = self.send("POST", path, form).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        let json = reply.json();
        let payload = if json.get("data").is_some() { json["data"].clone() } else { json["content"].clone() };
        let text = json["msg"].as_str().unwrap_or_default().to_owned();
        (json["code"].as_i64().unwrap_or_else(|| panic!("{path}: {reply:?}")), text, payload)
    }

    /// A request that succeeds; returns the payload.
    pub async fn done(&self, path: &str, form: &[(&str, &str)]) -> Value {
        let (code, text, payload) = self.ask(path, form).await;
        assert_eq!(code, 200, "{path} {form:?}: {text}");
        payload
    }

    /// A request that fails; returns the message.
    pub async fn refused(&self, path: &str, form: &[(&str, &str)]) -> String {
        let (code, text, _) = self.ask(path, form).await;
        assert_eq!(code, 500, "{path} {form:?}: {text}");
        text
    }

    /// Returns the rows of a page of a list, and the total.
    pub async fn page(&self, path: &str, form: &[(&str, &str)]) -> (Vec<Value>, u64) {
        let bounds = if self.is_new {
            [("offset", "0"), ("pagesize", "50")]
        } else {
            [("start", "0"), ("length", "50")]
        };
        let form: Vec<_> = form.iter().copied().chain(bounds).collect();
        let json = self.send("GET", path, &form).await.json();
        let (rows, total) = match self.is_new {
            true => (&json["data"]["data"], &json["data"]["total"]),
            false => {
                assert!(
                    json.get("code").is_none() && json["recordsFiltered"] == json["recordsTotal"],
                    "{json}"
                );
                (&json["data"], &json["recordsTotal"])
            }
        };
        (rows.as_array().unwrap_or_else(|| panic!("{path}: {json}")).clone(), total.as_u64().unwrap())
    }

    /// Returns the path of a call that was renamed in 3.3.
    pub fn path(&self, old: &str, new: &str) -> String {
        if self.is_new { new.into() } else { old.into() }
    }

    /// Returns the field that holds an object's id.
    pub fn id_field(&self) -> &'static str {
        if self.is_new { "ids[]" } else { "id" }
    }
}

/// A job's form as XXL-JOB's page sends it.
pub fn job_form<'a>(changes: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut form = vec![
        ("jobGroup", "1"),
        ("jobDesc", "nightly report"),
        ("author", "ann"),
        ("alarmEmail", ""),
        ("scheduleType", "CRON"),
        ("scheduleConf", "0 0 2 * * ?"),
        ("schedule_conf_CRON", "0 0 2 * * ?"),
        ("misfireStrategy", "DO_NOTHING"),
        ("executorRouteStrategy", "FIRST"),
        ("executorHandler", "echo"),
        ("executorParam", "its own"),
        ("executorBlockStrategy", "SERIAL_EXECUTION"),
        ("executorTimeout", "0"),
        ("executorFailRetryCount", "0"),
        ("glueType", "BEAN"),
        ("glueRemark", "first"),
        ("childJobId", ""),
    ];
    for (name, text) in changes {
        form.retain(|(known, _)| known != name);
        form.push((name, text));
    }
    form
}
