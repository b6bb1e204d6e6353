//! Converts XXL-JOB's settings to a TOML file for `--config`, with remarks where the user should check something.

use std::collections::BTreeMap;

use server::executors::is_well_known;

use super::properties::Properties;

/// Converts XXL-JOB's settings to our options.
pub fn translate(from: &Properties, environment: &BTreeMap<String, String>) -> String {
    let mut file = File::default();
    file.remark("Written by `tickwright migrate --from-properties`. Each line can also be an option: docs/options.md.");
    listener(from, &mut file);
    let url_zone = database(from, &mut file);
    zone(url_zone, environment, &mut file);
    token(from, &mut file);
    rest(from, &mut file);
    mail(from, &mut file);
    file.text
}

#[derive(Default)]
struct File {
    text: String,
}

impl File {
    fn remark(&mut self, text: &str) {
        self.text.push_str(&format!("# {text}\n"));
    }

    fn set(&mut self, name: &str, value: impl Into<toml::Value>) {
        self.text.push_str(&format!("{name} = {}\n", value.into()));
    }
}

fn listener(from: &Properties, file: &mut File) {
    let port = from.get("server.port").unwrap_or("8080");
    file.set("listen", format!("0.0.0.0:{port}"));
    file.remark(
        "As with XXL-JOB, passwords and tokens are sent unencrypted. Preferably use tls-cert and tls-key, \
         or behind-proxy.",
    );
    file.set("insecure-http", true);
    if let Some(path) = from.get("server.servlet.context-path")
        && !matches!(path.trim_end_matches('/'), "" | "/xxl-job-admin")
    {
        file.remark(&format!(
            "The path {path} is not supported: executors and scripts must use / or /xxl-job-admin."
        ));
    }
}

/// Writes the database URL; returns the time zone named in XXL-JOB's URL.
fn database(from: &Properties, file: &mut File) -> Option<String> {
    let Some(url) = from.get("spring.datasource.url") else {
        file.remark("No spring.datasource.url was found: set the database here.");
        file.remark("database-url = \"mysql://user:password@host:3306/xxl_job\"");
        return None;
    };
    let place = url.strip_prefix("jdbc:").unwrap_or(url);
    let (scheme, rest) = match place.split_once("://") {
        Some(("mysql" | "mariadb", rest)) => ("mysql", rest),
        Some(("postgresql", rest)) => ("postgres", rest),
        _ => {
            file.remark(&format!("`{place}` is neither MySQL nor PostgreSQL: set another database-url."));
            return None;
        }
    };
    let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let (hosts, name) = place.split_once('/').unwrap_or((place, "xxl_job"));
    let host = hosts.split(',').next().unwrap_or(hosts);
    if host != hosts {
        file.remark(&format!(
            "Of several hosts ({hosts}) the first is used; set the one that accepts writes."
        ));
    }
    let parameter = |wanted: &str| {
        let pairs = parameters.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.to_owned()).next()
    };
    let secure = match parameter("sslMode").or_else(|| parameter("useSSL")).as_deref() {
        Some("true" | "REQUIRED") => "?ssl-mode=required",
        Some("VERIFY_CA") => "?ssl-mode=verify_ca",
        Some("VERIFY_IDENTITY") => "?ssl-mode=verify_identity",
        _ => "",
    };
    let user = escaped(from.get("spring.datasource.username").unwrap_or("root"));
    let password = escaped(from.get("spring.datasource.password").unwrap_or_default());
    file.set("database-url", format!("{scheme}://{user}:{password}@{host}/{name}{secure}"));
    parameter("serverTimezone").or_else(|| parameter("connectionTimeZone"))
}

/// Percent-encodes all but letters, digits and a few signs, which could end the current part of the URL.
fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

fn zone(of_url: Option<String>, environment: &BTreeMap<String, String>, file: &mut File) {
    let named = of_url
        .or_else(|| environment.get("TZ").cloned())
        .map(|zone| zone.replace("%2F", "/").replace("%2B", "+"));
    match named.as_deref() {
        // Names used on old systems, and abbreviations known to Java.
        Some("PRC" | "CTT" | "GMT+8" | "UTC+8" | "GMT+08:00") => file.set("zone", "Asia/Shanghai"),
        Some(zone) if cron::Zone::parse(zone).is_ok() => file.set("zone", zone),
        other => {
            if let Some(zone) = other {
                file.remark(&format!("`{zone}` is not a time zone."));
            }
            file.remark(
                "Time zone of the old admin, for its cron jobs and the times in its tables. XXL-JOB's image \
                 uses PRC.",
            );
            file.set("zone", "Asia/Shanghai");
        }
    }
}

fn token(from: &Properties, file: &mut File) {
    match from.get("xxl.job.accessToken") {
        Some(token) => {
            if is_well_known(token) || token.len() < TOKEN_MIN {
                file.remark(
                    "Short or publicly known: give each app its own token, then remove these two lines.",
                );
                file.set("allow-weak-token", true);
            }
            file.set("token", token);
        }
        None if from.has("xxl.job.accessToken") => {
            file.remark("Executors are accepted without a token: give each app one, then remove this line.");
            file.set("allow-no-token", true);
        }
        None => file.remark(
            "No xxl.job.accessToken was found: tokens of apps are read from the database, if it has any.",
        ),
    }
}

fn rest(from: &Properties, file: &mut File) {
    file.remark("Script jobs (GLUE) run as before. Remove this line if there are none.");
    file.set("allow-scripts", true);
    if let Some(seconds) = from.get("xxl.job.timeout").and_then(|text| text.parse::<u64>().ok()) {
        file.set("call-timeout", format!("{}s", if (1..=10).contains(&seconds) { seconds } else { 3 }));
    }
    match from.get("xxl.job.logretentiondays").and_then(|text| text.parse::<i64>().ok()) {
        Some(days) if days >= 3 => file.set("keep-runs", format!("{days}d")),
        Some(_) => {
            file.remark("XXL-JOB kept runs forever; 100 years is the equivalent here.");
            file.set("keep-runs", "36500d");
        }
        None => {}
    }
    let needless = [
        "xxl.job.i18n",
        "xxl.job.triggerpool.fast.max",
        "xxl.job.triggerpool.slow.max",
        "xxl.job.schedule.batchsize",
    ];
    for name in needless.into_iter().filter(|name| from.has(name)) {
        file.remark(&format!("{name} has no counterpart and is not needed."));
    }
}

fn mail(from: &Properties, file: &mut File) {
    let (Some(host), Some(user)) = (from.get("spring.mail.host"), from.get("spring.mail.username")) else {
        return;
    };
    // The account in XXL-JOB's default settings is a placeholder.
    if user.starts_with("xxx@") {
        return;
    }
    let port = from.get("spring.mail.port").unwrap_or("25");
    let is_on = |name: &str| from.get(&format!("spring.mail.properties.mail.smtp.{name}")) == Some("true");
    let encrypted = port == "465" || is_on("ssl.enable");
    let (scheme, tls) = match () {
        () if encrypted => ("smtps", ""),
        () if is_on("starttls.required") => ("smtp", "?tls=required"),
        () if is_on("starttls.enable") => ("smtp", "?tls=opportunistic"),
        () => ("smtp", ""),
    };
    let password = escaped(from.get("spring.mail.password").unwrap_or_default());
    file.set("alert-mail", format!("{scheme}://{}:{password}@{host}:{port}{tls}", escaped(user)));
    file.set("alert-from", from.get("spring.mail.from").unwrap_or(user));
}

/// Minimum length of a token that cannot be guessed.
const TOKEN_MIN: usize = 32;

#[cfg(test)]
mod tests {
    use super::super::properties;
    use super::*;

    fn translated(text: &str, variables: &[(&str, &str)]) -> toml::Table {
        let environment: BTreeMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let written = translate(&properties::read(text, &environment), &environment);
        written.parse().unwrap_or_else(|error| panic!("{error}: {written}"))
    }

    #[test]
    fn what_xxl_job_ships_becomes_options_that_start() {
        let table = translated(
            "server.port=8081\nserver.servlet.context-path=/xxl-job-admin\nspring.datasource.url=jdbc:mysql://10.0.0.5:3306/xxl_job?useUnicode=true&serverTimezone=Asia/Shanghai\nspring.datasource.username=root\nspring.datasource.password=p@ss/word\nxxl.job.accessToken=default_token\nxxl.job.timeout=3\nxxl.job.logretentiondays=30\nxxl.job.i18n=zh_CN\nspring.mail.host=smtp.qq.com\nspring.mail.port=25\nspring.mail.username=xxx@qq.com\n",
            &[],
        );
        let text = |name: &str| table.get(name).and_then(toml::Value::as_str);
        assert_eq!(text("listen"), Some("0.0.0.0:8081"));
        assert_eq!(text("database-url"), Some("mysql://root:p%40ss%2Fword@10.0.0.5:3306/xxl_job"));
        assert_eq!((text("zone"), text("token")), (Some("Asia/Shanghai"), Some("default_token")));
        assert_eq!((text("call-timeout"), text("keep-runs")), (Some("3s"), Some("30d")));
        assert_eq!(table["allow-weak-token"].as_bool(), Some(true));
        assert!(!table.contains_key("alert-mail"), "what is shipped is no account");
        let options: crate::serve::Options = toml::from_str(&table.to_string()).unwrap();
        assert_eq!(options.allow_scripts, Some(true));
    }

    #[test]
    fn an_image_is_set_by_its_variables() {
        let arguments = "--spring.datasource.url=jdbc:postgresql://db/xxl?sslMode=VERIFY_CA --xxl.job.logretentiondays=-1 --spring.mail.host=mail --spring.mail.port=465 --spring.mail.username=jobs@example.com";
        let table = translated(
            "",
            &[
                ("PARAMS", arguments),
                ("SPRING_DATASOURCE_USERNAME", "jobs"),
                ("XXL_JOB_ACCESSTOKEN", ""),
                ("TZ", "PRC"),
            ],
        );
        let text = |name: &str| table.get(name).and_then(toml::Value::as_str);
        assert_eq!(text("database-url"), Some("postgres://jobs:@db/xxl?ssl-mode=verify_ca"));
        assert_eq!((text("zone"), text("keep-runs")), (Some("Asia/Shanghai"), Some("36500d")));
        assert_eq!(text("alert-mail"), Some("smtps://jobs%40example.com:@mail:465"));
        assert_eq!(table["allow-no-token"].as_bool(), Some(true));
    }
}
