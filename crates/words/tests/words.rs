//! Each value is read back from its words, and the words of the API are ours.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tickwright_words::{
    AlertKind, AlertState, Block, ChildrenMode, CronDialect, Delivery, Named, Overlap, Route, RunStatus,
    ScriptLanguage, UnknownWord, Word,
};
use utoipa::PartialSchema;

#[test]
fn a_value_is_read_back_from_each_of_its_words() {
    check::<CronDialect>(2);
    check::<Route>(10);
    check::<Block>(3);
    check::<Overlap>(4);
    check::<Delivery>(3);
    check::<ChildrenMode>(2);
    check::<ScriptLanguage>(7);
    check::<AlertKind>(6);
    check::<AlertState>(4);
    check::<RunStatus>(3);
}

fn check<T>(count: usize)
where
    T: Word + Display + FromStr<Err = UnknownWord> + Serialize + DeserializeOwned + PartialSchema,
{
    assert_eq!(T::WORDS.iter().collect::<BTreeSet<_>>().len(), count, "{}", T::NOUN);
    assert_eq!(T::stored_words().collect::<BTreeSet<_>>().len(), count, "{}", T::NOUN);
    for value in T::all() {
        let word = value.word();
        assert!(word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'));
        assert_eq!((word.parse(), T::from_stored(value.stored())), (Ok(value), Some(value)), "{word}");
        assert_eq!(value.to_string(), word);
        let json = serde_json::to_value(value).expect("a word is a string");
        assert_eq!((json.as_str(), serde_json::from_value(json.clone()).ok()), (Some(word), Some(value)));
    }
    let schema = serde_json::to_value(T::schema()).expect("a schema is JSON");
    assert_eq!(schema["enum"], serde_json::json!(T::WORDS), "{schema}");
    let description = schema["description"].as_str().expect("it is described");
    assert!(T::WORDS.iter().all(|word| description.contains(&format!("\n- `{word}`: "))), "{description}");
}

#[test]
fn a_foreign_word_is_refused_with_the_right_one() {
    let check = |error: UnknownWord, expected: &str| assert_eq!(error.to_string(), expected);
    check("ROUND".parse::<Route>().unwrap_err(), "`ROUND` is XXL-JOB's word; write `round_robin`");
    check("BUSYOVER".parse::<Route>().unwrap_err(), "`BUSYOVER` is XXL-JOB's word; write `first_idle`");
    let known = "write one of serial, discard_later, cover_early";
    check("serially".parse::<Block>().unwrap_err(), &format!("`serially` is not a block strategy; {known}"));
    let known = "write one of at_most_once, probe, at_least_once";
    check(
        "at-most-once".parse::<Delivery>().unwrap_err(),
        &format!("`at-most-once` is not a delivery policy; {known}"),
    );
}

#[test]
fn a_word_of_another_program_is_kept() {
    let fork = Named::<Route>::from_stored("NEAREST");
    assert_eq!((fork.known(), fork.stored(), fork.word()), (None, "NEAREST", "NEAREST"));
    assert_eq!(serde_json::from_value::<Named<Route>>(serde_json::to_value(&fork).unwrap()).unwrap(), fork);
    let ours = Named::<Route>::from_stored("ROUND");
    assert_eq!((ours.known(), ours.stored(), ours.word()), (Some(Route::RoundRobin), "ROUND", "round_robin"));
    assert!(ours == Route::RoundRobin && fork != Route::First);
    // A stored word is not a word of the API.
    assert_eq!(Named::<Route>::from_word("ROUND").known(), None);
    assert_eq!(
        Named::<Route>::from_word("ROUND").check().unwrap_err(),
        "ROUND".parse::<Route>().unwrap_err()
    );
}

#[test]
fn the_guides_list_the_words_of_both() {
    for page in [
        include_str!("../../../docs/guides/from-xxl-job.md"),
        include_str!("../../../docs/guides/from-xxl-job.zh-CN.md"),
    ] {
        check_listed::<Route>(page);
        check_listed::<Block>(page);
        check_listed::<ScriptLanguage>(page);
    }
}

fn check_listed<T: Word>(page: &str) {
    let pairs = T::all().map(|value| format!("`{}` → `{}`", value.stored(), value.word()));
    let row = pairs.collect::<Vec<_>>().join(" · ");
    assert!(page.contains(&format!("| {row} |")), "the guide should list: {row}");
}
