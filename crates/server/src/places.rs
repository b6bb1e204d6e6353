//! Places of the values of a YAML text, for problems that are found after it was read.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Options, Spanned};

/// A text with the place of each of its values.
pub struct Places(Spanned<Node>);

/// A value with the places of its parts.
enum Node {
    Map(Vec<(String, Spanned<Node>)>),
    List(Vec<Spanned<Node>>),
    Text(String),
    Other,
}

impl Places {
    /// Reads a text that was read without a problem before.
    pub fn read(text: &str, options: Options) -> Option<Places> {
        serde_saphyr::from_str_with_options(text, options).ok().map(Places)
    }

    /// Line and column of a field below `root`, like `steps.load.needs[0]`; of the innermost value around it if there is no
    /// such field. `None` if there is no `root`.
    pub fn find(&self, root: &[&str], field: &str) -> Option<(u64, u64)> {
        let mut found = &self.0;
        for part in root {
            found = found.value.get(part)?;
        }
        for part in field.replace('[', ".[").split('.').filter(|part| !part.is_empty()) {
            let Some(inner) = found.value.get(part) else { break };
            found = inner;
        }
        Some((found.referenced.line(), found.referenced.column()))
    }
}

impl Node {
    /// The field of a map; of a list the element `[n]`, or the one whose field `name` has this value.
    fn get(&self, part: &str) -> Option<&Spanned<Node>> {
        match self {
            Node::Map(fields) => {
                let is_meant = |name: &str| name == part || part.strip_suffix("_ms") == Some(name);
                fields.iter().find(|(name, _)| is_meant(name)).map(|(_, value)| value)
            }
            Node::List(items) => match part.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                Some(index) => items.get(index.parse::<usize>().ok()?),
                None => items.iter().find(|item| item.value.is_named(part)),
            },
            Node::Text(_) | Node::Other => None,
        }
    }

    fn is_named(&self, wanted: &str) -> bool {
        matches!(self.get("name").map(|name| &name.value), Some(Node::Text(name)) if name == wanted)
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Node::Map(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Node::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
inputs:
  region: { type: text }
steps:
  - { name: a, job: b }
  - name: a_b
    needs: [a, c]
    timeout: 9s
";

    #[test]
    fn a_field_is_found_or_the_value_around_it() {
        let places = Places::read(TEXT, Options::default()).unwrap();
        let check = |root: &[&str], field: &str, expected| {
            assert_eq!(places.find(root, field), expected, "{root:?} {field}");
        };
        check(&[], "inputs.region", Some((2, 11)));
        check(&[], "steps[0].job", Some((4, 21)));
        check(&[], "steps.a_b.needs[1].if", Some((6, 16)));
        check(&["steps", "a_b"], "timeout_ms", Some((7, 14)));
        check(&["steps"], "a_b.gone", Some((5, 5)));
        check(&["steps", "gone"], "job", None);
    }
}
