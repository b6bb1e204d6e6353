//! Expands `#[scheduled(…)]` on a function into that function and an entry in the registry.

use std::fmt::Display;
use std::time::Duration;

use cron::{Cron, Zone, parse_duration};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::{Error, ItemFn, LitStr, Path, Result};

pub fn expand(arguments: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let arguments = Arguments::parse(arguments)?;
    let function: ItemFn = syn::parse2(function)?;
    check_signature(&function)?;
    let timer = arguments.timer()?;
    let when = arguments.when(&timer)?;
    let ident = &function.sig.ident;
    let name = match &arguments.name {
        Some(name) => quote!(#name),
        None => quote!(::core::concat!(::core::module_path!(), "::", ::core::stringify!(#ident))),
    };
    let spawn = if function.sig.asyncness.is_some() { quote!(spawn) } else { quote!(spawn_blocking) };
    Ok(quote! {
        #function

        #timer::__private::inventory::submit! {
            #timer::Scheduled {
                name: #name,
                start: |scheduler, name| scheduler.#spawn(name, #when, #ident),
            }
        }
    })
}

/// Arguments of the attribute, each given at most once.
#[derive(Default)]
struct Arguments {
    cron: Option<LitStr>,
    zone: Option<LitStr>,
    fixed_rate: Option<LitStr>,
    fixed_delay: Option<LitStr>,
    initial_delay: Option<LitStr>,
    catch_up: Option<Span>,
    name: Option<LitStr>,
    krate: Option<LitStr>,
}

impl Arguments {
    fn parse(tokens: TokenStream) -> Result<Arguments> {
        let mut arguments = Arguments::default();
        syn::meta::parser(|meta| arguments.take(meta)).parse2(tokens)?;
        Ok(arguments)
    }

    fn take(&mut self, meta: ParseNestedMeta<'_>) -> Result<()> {
        let key = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        let place = match key.as_str() {
            "cron" => &mut self.cron,
            "zone" => &mut self.zone,
            "fixed_rate" => &mut self.fixed_rate,
            "fixed_delay" => &mut self.fixed_delay,
            "initial_delay" => &mut self.initial_delay,
            "name" => &mut self.name,
            "crate" => &mut self.krate,
            "catch_up" => {
                self.catch_up = Some(syn::spanned::Spanned::span(&meta.path));
                return Ok(());
            }
            _ => return Err(meta.error(KEYS)),
        };
        if place.is_some() {
            return Err(meta.error(format!("`{key}` is given twice")));
        }
        *place = Some(meta.value()?.parse()?);
        Ok(())
    }

    /// Path of the timer crate.
    fn timer(&self) -> Result<TokenStream> {
        match &self.krate {
            Some(path) => path.parse::<Path>().map(|path| quote!(#path)),
            None => Ok(quote!(::tickwright_timer)),
        }
    }

    /// Generates the expression that builds the `When`.
    fn when(&self, timer: &TokenStream) -> Result<TokenStream> {
        let rule = match (&self.cron, &self.fixed_rate, &self.fixed_delay) {
            (Some(cron), None, None) => self.calendar(timer, cron)?,
            (None, Some(period), None) => {
                let period = period_tokens(period)?;
                quote!(#timer::When::fixed_rate(#period))
            }
            (None, None, Some(delay)) => {
                let delay = period_tokens(delay)?;
                quote!(#timer::When::fixed_delay(#delay))
            }
            (None, None, None) => return Err(Error::new(Span::call_site(), ONE_RULE)),
            (_, Some(second), None) | (_, _, Some(second)) => {
                return Err(Error::new(second.span(), ONE_RULE));
            }
        };
        if let (Some(zone), None) = (&self.zone, &self.cron) {
            return Err(Error::new(zone.span(), "`zone` requires `cron`"));
        }
        if let (Some(span), Some(_)) = (self.catch_up, &self.fixed_delay) {
            return Err(Error::new(
                span,
                "`catch_up` has no effect with `fixed_delay`, which never misses a fire",
            ));
        }
        let initial_delay = match &self.initial_delay {
            Some(delay) => {
                let delay = duration_tokens(checked(delay, parse_duration)?);
                quote!(.initial_delay(#delay))
            }
            None => quote!(),
        };
        let catch_up = self.catch_up.map(|_| quote!(.catch_up()));
        Ok(quote!(#rule #initial_delay #catch_up))
    }

    fn calendar(&self, timer: &TokenStream, cron: &LitStr) -> Result<TokenStream> {
        checked(cron, Cron::parse)?;
        let zone = match &self.zone {
            Some(zone) => {
                checked(zone, Zone::parse)?;
                // The machine that runs the program may know fewer zones than the one that compiled it.
                quote!(#timer::Zone::parse(#zone).expect("a zone known when this was compiled"))
            }
            None => quote!(#timer::Zone::system()),
        };
        Ok(quote! {
            #timer::When::calendar(
                #timer::Cron::parse(#cron).expect("an expression checked when this was compiled"),
                #zone,
                #timer::DstRule::NATURAL,
            )
        })
    }
}

const KEYS: &str = "expected one of `cron`, `zone`, `fixed_rate`, `fixed_delay`, `initial_delay`, `catch_up`, \
                    `name`, `crate`";
pub const ONE_RULE: &str = "expected exactly one schedule: `cron = \"0 30 2 * * ?\"`, `fixed_rate = \"5s\"` \
                            or `fixed_delay = \"5s\"`";

fn check_signature(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    if !signature.inputs.is_empty() {
        return Err(Error::new_spanned(&signature.inputs, "a scheduled function takes no arguments"));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new_spanned(&signature.generics, "a scheduled function cannot be generic"));
    }
    Ok(())
}

/// Parses a duration that must not be zero.
pub fn period_tokens(literal: &LitStr) -> Result<TokenStream> {
    let period = checked(literal, parse_duration)?;
    if period.is_zero() {
        return Err(Error::new(literal.span(), "the interval must be at least `1ms`"));
    }
    Ok(duration_tokens(period))
}

/// Generates the expression for a duration.
pub fn duration_tokens(length: Duration) -> TokenStream {
    let millis = u64::try_from(length.as_millis()).expect("it was read from as many milliseconds");
    quote!(::core::time::Duration::from_millis(#millis))
}

/// Parses a literal; an error points at it.
pub fn checked<T, E: Display>(
    literal: &LitStr,
    parse: impl Fn(&str) -> std::result::Result<T, E>,
) -> Result<T> {
    parse(&literal.value()).map_err(|error| Error::new(literal.span(), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_explained() {
        let check = |arguments: &str, function: &str, explained: &str| {
            let expanded = expand(arguments.parse().unwrap(), function.parse().unwrap());
            let error = expanded.expect_err(arguments).to_string();
            assert_eq!(error, explained, "#[scheduled({arguments})] {function}");
        };
        let one_way = "expected exactly one schedule: `cron = \"0 30 2 * * ?\"`, `fixed_rate = \"5s\"` or \
                       `fixed_delay = \"5s\"`";
        let known = "expected one of `cron`, `zone`, `fixed_rate`, `fixed_delay`, `initial_delay`, `catch_up`, `name`, `crate`";
        let nothing = "async fn f() {}";
        check(
            r#"cron = "0 30 25 * * ?", zone = "Europe/London""#,
            nothing,
            "hour field, character 6: `25` is out of range; write 0-23 with `* , - /`, for example `9-17`",
        );
        check(
            r#"cron = "0 30 2 * * ?", zone = "London""#,
            nothing,
            "unknown time zone `London`; did you mean `Europe/London`? write an IANA name such as \
             `Asia/Shanghai`, `Europe/London` or `UTC`",
        );
        check(
            r#"fixed_rate = "5 seconds""#,
            nothing,
            "`5 seconds` is not a duration; write for example `500ms`, `5s`, `2m`, `1h`, `1d` or `1h30m`",
        );
        check(r#"fixed_delay = "0s""#, nothing, "the interval must be at least `1ms`");
        check("", nothing, one_way);
        check(r#"cron = "0 30 2 * * ?", fixed_rate = "5s""#, nothing, one_way);
        check(r#"fixed_rate = "5s", zone = "UTC""#, nothing, "`zone` requires `cron`");
        check(
            r#"fixed_delay = "5s", catch_up"#,
            nothing,
            "`catch_up` has no effect with `fixed_delay`, which never misses a fire",
        );
        check(r#"every = "5s""#, nothing, known);
        check(r#"fixed_rate = "5s", fixed_rate = "6s""#, nothing, "`fixed_rate` is given twice");
        check(r#"fixed_rate = "5s""#, "async fn f(_what: u8) {}", "a scheduled function takes no arguments");
        check(r#"fixed_rate = "5s""#, "fn f<T>() {}", "a scheduled function cannot be generic");
    }
}
