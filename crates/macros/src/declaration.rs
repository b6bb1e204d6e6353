//! Parses the schedule and job settings in `#[job(…)]`.

use cron::{Cron, Zone};
use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::{Error, LitInt, LitStr, Result};

use crate::scheduled::{ONE_RULE, checked, period_tokens};

/// Arguments of the attribute, each given at most once.
#[derive(Default)]
pub struct Declaration {
    cron: Option<LitStr>,
    zone: Option<LitStr>,
    fixed_rate: Option<LitStr>,
    fixed_delay: Option<LitStr>,
    name: Option<LitStr>,
    param: Option<LitStr>,
    timeout: Option<LitStr>,
    route: Option<LitStr>,
    retries: Option<LitInt>,
}

impl Declaration {
    /// Parses the value if `key` is one of ours and returns whether it was already set; returns `None` for other
    /// keys.
    pub fn take(&mut self, key: &str, meta: &ParseNestedMeta<'_>) -> Result<Option<bool>> {
        let place = match key {
            "cron" => &mut self.cron,
            "zone" => &mut self.zone,
            "fixed_rate" => &mut self.fixed_rate,
            "fixed_delay" => &mut self.fixed_delay,
            "name" => &mut self.name,
            "param" => &mut self.param,
            "timeout" => &mut self.timeout,
            "route" => &mut self.route,
            "retries" => return Ok(Some(self.retries.replace(meta.value()?.parse()?).is_some())),
            _ => return Ok(None),
        };
        Ok(Some(place.replace(meta.value()?.parse()?).is_some()))
    }

    /// Generates the call that declares the job; empty if the attribute has no schedule.
    pub fn written(&self, executor: &TokenStream) -> Result<TokenStream> {
        let new = match (&self.cron, &self.fixed_rate, &self.fixed_delay) {
            (Some(cron), None, None) => {
                checked(cron, Cron::parse)?;
                quote!(cron(#cron))
            }
            (None, Some(period), None) => {
                let period = period_tokens(period)?;
                quote!(fixed_rate(#period))
            }
            (None, None, Some(delay)) => {
                let delay = period_tokens(delay)?;
                quote!(fixed_delay(#delay))
            }
            (None, None, None) => return self.nothing(),
            (_, Some(second), None) | (_, _, Some(second)) => {
                return Err(Error::new(second.span(), ONE_RULE));
            }
        };
        if let Some(zone) = &self.zone {
            checked(zone, Zone::parse)?;
            if self.cron.is_none() {
                let why = "`zone` requires `cron`";
                return Err(Error::new(zone.span(), why));
            }
        }
        let zone = self.zone.as_ref().map(|zone| quote!(.zone(#zone)));
        let name = self.name.as_ref().map(|name| quote!(.name(#name)));
        let param = self.param.as_ref().map(|param| quote!(.param(#param)));
        let timeout = self.timeout.as_ref().map(period_tokens).transpose()?;
        let timeout = timeout.map(|timeout| quote!(.timeout(#timeout)));
        let retries = self.retries.as_ref().map(count).transpose()?;
        let retries = retries.map(|retries| quote!(.retries(#retries)));
        let route = self.route.as_ref().map(|route| quote!(.route(#route)));
        Ok(quote! {
            .declare(#executor::Declaration::#new #zone #name #param #timeout #retries #route)
        })
    }

    /// Rejects job settings that are given without a schedule.
    fn nothing(&self) -> Result<TokenStream> {
        let texts = [&self.zone, &self.name, &self.param, &self.timeout, &self.route];
        let span = texts.into_iter().flatten().map(LitStr::span).next();
        match span.or(self.retries.as_ref().map(LitInt::span)) {
            Some(span) => Err(Error::new(span, ONE_RULE)),
            None => Ok(TokenStream::new()),
        }
    }
}

fn count(literal: &LitInt) -> Result<u32> {
    let why = "expected a number of retries, 0 or more, for example `retries = 2`";
    literal.base10_parse().map_err(|_| Error::new(literal.span(), why))
}

#[cfg(test)]
mod tests {
    use crate::job::expand;

    fn expanded(arguments: &str) -> syn::Result<String> {
        let arguments = format!("\"sync\", {arguments}");
        let expanded = expand(arguments.parse().unwrap(), "async fn f() {}".parse().unwrap());
        expanded.map(|tokens| tokens.to_string().replace(' ', ""))
    }

    #[test]
    fn what_is_written_is_declared() {
        let check = |arguments: &str, declared: &str| {
            let expanded = expanded(arguments).unwrap();
            let expected = format!(".declare(::tickwright_executor::Declaration::{declared})");
            assert!(expanded.contains(&expected), "{arguments}: {expanded}");
        };
        check(
            r#"cron = "0 0/5 * * * ?", zone = "Asia/Shanghai""#,
            r#"cron("00/5***?").zone("Asia/Shanghai")"#,
        );
        check(
            r#"fixed_rate = "5s", init = connect"#,
            "fixed_rate(::core::time::Duration::from_millis(5000u64))",
        );
        check(
            r#"fixed_delay = "5s", timeout = "1m", retries = 2, param = "x", name = "n", route = "round_robin""#,
            "fixed_delay(::core::time::Duration::from_millis(5000u64)).name(\"n\").param(\"x\")\
             .timeout(::core::time::Duration::from_millis(60000u64)).retries(2u32).route(\"round_robin\")",
        );
        assert!(!expanded("init = connect").unwrap().contains("declare"));
    }

    #[test]
    fn mistakes_are_explained() {
        let check = |arguments: &str, explained: &str| {
            let error = expanded(arguments).expect_err(arguments).to_string();
            assert!(error.contains(explained), "#[job(\"sync\", {arguments})]: {error}");
        };
        check(r#"cron = "0 0 25 * * ?""#, "25");
        check(r#"cron = "0 0 2 * * ?", zone = "Europe/Lodnon""#, "Lodnon");
        check(r#"fixed_rate = "5s", zone = "Europe/London""#, "`zone` requires `cron`");
        check(r#"cron = "0 0 2 * * ?", fixed_rate = "5s""#, "expected exactly one schedule");
        check(r#"fixed_rate = "0s""#, "must be at least `1ms`");
        check(r#"fixed_rate = "5 seconds""#, "is not a duration");
        check(r#"retries = 2"#, "expected exactly one schedule");
        check(r#"zone = "Asia/Shanghai""#, "expected exactly one schedule");
        check(r#"cron = "0 0 2 * * ?", retries = -1"#, "0 or more");
        check(r#"cron = "0 0 2 * * ?", cron = "0 0 3 * * ?""#, "`cron` is given twice");
    }
}
