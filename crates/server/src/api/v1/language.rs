//! Language of descriptions in responses, chosen by the header `Accept-Language`.

use axum::http::{HeaderMap, HeaderValue, header};
use cron::Language;

/// The language that the client prefers, of those that we have; English if it accepts none of them.
pub fn accepted(headers: &HeaderMap) -> Language {
    let header =
        headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut best = (0.0, Language::English);
    for range in header.split(',') {
        let (tag, weight) = range.split_once(';').unwrap_or((range, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(Some(1.0), |weight| weight.parse::<f64>().ok());
        let name = tag.trim().split('-').next().unwrap_or_default().to_ascii_lowercase();
        let language = match name.as_str() {
            "en" => Language::English,
            "zh" => Language::Chinese,
            _ => continue,
        };
        // Of equal weights the first counts.
        if let Some(weight) = weight.filter(|weight| *weight > best.0) {
            best = (weight, language);
        }
    }
    best.1
}

/// Names the language of a response that depends on it.
pub fn name(headers: &mut HeaderMap, language: Language) {
    let tag = match language {
        Language::English => "en",
        Language::Chinese => "zh",
    };
    headers.insert(header::CONTENT_LANGUAGE, HeaderValue::from_static(tag));
    headers.append(header::VARY, HeaderValue::from_static("Accept-Language"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_language_is_chosen_and_english_otherwise() {
        let check = |header: &'static str, expected| {
            let headers = HeaderMap::from_iter([(header::ACCEPT_LANGUAGE, HeaderValue::from_static(header))]);
            assert_eq!(accepted(&headers), expected, "{header}");
        };
        check("zh-CN,zh;q=0.9,en;q=0.8", Language::Chinese);
        check("zh", Language::Chinese);
        check("fr, ZH-hant;q=0.5, en;q=0.4", Language::Chinese);
        check("en-GB, zh", Language::English);
        check("zh;q=0, en;q=0.1", Language::English);
        check("zh;q=0.2, en;q=0.8", Language::English);
        check("fr", Language::English);
        check("zh;q=x", Language::English);
        check("", Language::English);
        assert_eq!(accepted(&HeaderMap::new()), Language::English);
    }
}
