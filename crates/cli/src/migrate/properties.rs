//! Settings as Spring reads them: from a properties file, environment variables and arguments. Later sources
//! override earlier ones.

use std::collections::BTreeMap;

/// All settings. Names ignore case, dashes and dots: `spring.datasource.url` and `SPRING_DATASOURCE_URL` are the
/// same.
pub struct Properties {
    values: BTreeMap<String, String>,
}

impl Properties {
    /// Value of a setting; none if it is blank.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(&plain(name)).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether a name is set, even to a blank value.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(&plain(name))
    }
}

/// Reads a file's text, then the variables, then the arguments in `PARAMS`, as XXL-JOB's image passes them on.
pub fn read(text: &str, environment: &BTreeMap<String, String>) -> Properties {
    let mut values: BTreeMap<String, String> =
        lines(text).map(|(name, value)| (plain(&name), value)).collect();
    let known = ["SPRING_", "XXL_JOB_", "SERVER_"];
    let variables =
        environment.iter().filter(|(name, _)| known.iter().any(|prefix| name.starts_with(prefix)));
    values.extend(variables.map(|(name, value)| (plain(name), value.clone())));
    let arguments = environment.get("PARAMS").map(String::as_str).unwrap_or_default();
    values.extend(arguments.split_whitespace().filter_map(|argument| {
        let (name, value) = argument.trim_matches(['"', '\'']).strip_prefix("--")?.split_once('=')?;
        Some((plain(name), value.trim_matches(['"', '\'']).to_owned()))
    }));
    for value in values.values_mut() {
        *value = filled(value.trim(), environment);
    }
    Properties { values }
}

fn plain(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Names and values of a properties file: `name=value`, `name: value`; a trailing backslash continues the line.
fn lines(text: &str) -> impl Iterator<Item = (String, String)> {
    let joined = text.replace("\\\r\n", "").replace("\\\n", "");
    let found: Vec<_> = joined
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with(['#', '!']))
        .filter_map(|line| {
            let split = line.find(['=', ':'])?;
            let value =
                line[split + 1..].trim().replace("\\:", ":").replace("\\=", "=").replace("\\\\", "\\");
            Some((line[..split].trim().to_owned(), value))
        })
        .collect();
    found.into_iter()
}

/// Replaces `${NAME:default}` by values of the environment.
fn filled(value: &str, environment: &BTreeMap<String, String>) -> String {
    let mut result = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else { break };
        let (name, default) = name.split_once(':').unwrap_or((name, ""));
        result.push_str(before);
        result.push_str(environment.get(name).map_or(default, String::as_str));
        rest = after;
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_from_a_file_variables_and_arguments_and_the_last_counts() {
        let text = "# a comment\nserver.port=8080\nspring.datasource.url = jdbc:mysql://${DB_HOST:localhost}:3306/x\n\
                    xxl.job.accessToken: from\\\n  -file\nxxl.job.timeout=3\nspring.mail.host=\n";
        let environment = [
            ("DB_HOST", "db.example"),
            ("XXL_JOB_ACCESSTOKEN", "from-variable"),
            ("PARAMS", "--xxl.job.timeout=5 \"--server.port=9090\" nonsense"),
            ("HOME", "/root"),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let found = read(text, &environment);
        assert_eq!(found.get("spring.datasource.url"), Some("jdbc:mysql://db.example:3306/x"));
        assert_eq!(found.get("xxl.job.accessToken"), Some("from-variable"));
        assert_eq!((found.get("xxl.job.timeout"), found.get("server.port")), (Some("5"), Some("9090")));
        assert_eq!((found.get("spring.mail.host"), found.has("spring.mail.host")), (None, true));
        assert_eq!(read(text, &BTreeMap::new()).get("xxl.job.accessToken"), Some("from  -file"));
    }
}
