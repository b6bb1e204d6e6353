//! Expands `#[job("name")]` on a function into that function and an entry in the registry.

use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Error, ItemFn, LitStr, Path, Result, Token};

use crate::declaration::Declaration;

pub fn expand(arguments: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let arguments: Arguments = syn::parse2(arguments)?;
    let function: ItemFn = syn::parse2(function)?;
    check_signature(&function)?;
    let executor = arguments.executor()?;
    let name = &arguments.name;
    let ident = &function.sig.ident;
    let handler = if function.sig.inputs.is_empty() { quote!(|_| #ident()) } else { quote!(#ident) };
    let (new, init, destroy) = if function.sig.asyncness.is_some() {
        (quote!(new), quote!(init_async), quote!(destroy_async))
    } else {
        (quote!(blocking), quote!(init), quote!(destroy))
    };
    let init = arguments.init.map(|path| quote!(.#init(#path)));
    let declare = arguments.declaration.written(&executor)?;
    let destroy = arguments.destroy.map(|path| quote!(.#destroy(#path)));
    Ok(quote! {
        #function

        #executor::__private::inventory::submit! {
            #executor::Marked { job: || #executor::Job::#new(#name, #handler) #declare #init #destroy }
        }
    })
}

/// Arguments of the attribute.
struct Arguments {
    name: LitStr,
    declaration: Declaration,
    init: Option<Path>,
    destroy: Option<Path>,
    krate: Option<LitStr>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Arguments> {
        if !input.peek(LitStr) {
            return Err(input.error(NAME_FIRST));
        }
        let name: LitStr = input.parse()?;
        if name.value().trim().is_empty() {
            return Err(Error::new(name.span(), NAME_FIRST));
        }
        let declaration = Declaration::default();
        let mut arguments = Arguments { name, declaration, init: None, destroy: None, krate: None };
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
        let rest: TokenStream = input.parse()?;
        syn::meta::parser(|meta| arguments.take(meta)).parse2(rest)?;
        Ok(arguments)
    }
}

impl Arguments {
    fn take(&mut self, meta: ParseNestedMeta<'_>) -> Result<()> {
        let key = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        let is_second = match key.as_str() {
            "init" => self.init.replace(meta.value()?.parse()?).is_some(),
            "destroy" => self.destroy.replace(meta.value()?.parse()?).is_some(),
            "crate" => self.krate.replace(meta.value()?.parse()?).is_some(),
            key => match self.declaration.take(key, &meta)? {
                Some(is_second) => is_second,
                None => return Err(meta.error(KEYS)),
            },
        };
        if is_second { Err(meta.error(format!("`{key}` is given twice"))) } else { Ok(()) }
    }

    /// Path of the executor crate.
    fn executor(&self) -> Result<TokenStream> {
        match &self.krate {
            Some(path) => path.parse::<Path>().map(|path| quote!(#path)),
            None => Ok(quote!(::tickwright_executor)),
        }
    }
}

const NAME_FIRST: &str = "missing name of the handler, for example `#[job(\"my-handler\")]`";
const KEYS: &str = "expected one of `cron`, `zone`, `fixed_rate`, `fixed_delay`, `name`, `param`, `timeout`, `retries`, `route`, `init`, `destroy`, `crate`";

fn check_signature(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    if signature.inputs.len() > 1 {
        return Err(Error::new_spanned(&signature.inputs, "a handler takes a `Context` or no argument"));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new_spanned(&signature.generics, "a handler cannot be generic"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_explained() {
        let check = |arguments: &str, function: &str, explained: &str| {
            let expanded = expand(arguments.parse().unwrap(), function.parse().unwrap());
            let error = expanded.expect_err(arguments).to_string();
            assert!(error.ends_with(explained), "#[job({arguments})] {function}: {error}");
        };
        let name = "missing name of the handler, for example `#[job(\"my-handler\")]`";
        check("", "async fn f() {}", name);
        check(r#""""#, "async fn f() {}", name);
        check(r#""a", setup = connect"#, "async fn f() {}", "`route`, `init`, `destroy`, `crate`");
        check(r#""a", init = connect, init = connect"#, "async fn f() {}", "`init` is given twice");
        check(r#""a""#, "async fn f(_one: u8, _more: u8) {}", "a handler takes a `Context` or no argument");
        check(r#""a""#, "fn f<T>() {}", "a handler cannot be generic");
    }
}
