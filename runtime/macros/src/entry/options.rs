//! The options between the brackets: `flavor`, `worker_threads`, `start_paused`, `name`, `crate`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, Lit, LitStr, Meta, Path, Token};

use super::{Errors, Kind};

const KNOWN: &str = "`flavor`, `worker_threads`, `start_paused`, `name` and `crate`";
const FLAVORS: &str = "`\"multi_thread\"` or `\"current_thread\"`";

/// Which builder is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavor {
    MultiThread,
    CurrentThread,
}

/// What the attribute asks for, after all checks.
pub(super) struct Options {
    pub(super) flavor: Flavor,
    /// `None`: the builder decides.
    pub(super) worker_threads: Option<usize>,
    pub(super) start_paused: bool,
    pub(super) name: Option<LitStr>,
    /// The path of the crate `rt`.
    pub(super) rt: TokenStream,
}

/// A value together with the option that gave it, which is where a message about it stands.
struct Given<T> {
    value: T,
    option: Meta,
}

#[derive(Default)]
struct Raw {
    flavor: Option<Given<Flavor>>,
    worker_threads: Option<Given<usize>>,
    start_paused: Option<Given<bool>>,
    name: Option<Given<LitStr>>,
    rt: Option<Given<Path>>,
}

impl Options {
    /// Reads the options. What is wrong goes to `errors` and is then left out.
    pub(super) fn parse(kind: Kind, args: TokenStream, errors: &mut Errors) -> Options {
        let mut raw = Raw::default();
        match Punctuated::<Meta, Token![,]>::parse_terminated.parse2(args) {
            Ok(options) => {
                for option in options {
                    raw.read(kind, option, errors);
                }
            }
            Err(error) => errors.add(syn::Error::new(
                error.span(),
                format!("{error}; options are written `name = value`, separated by commas"),
            )),
        }
        raw.check(kind, errors)
    }
}

impl Raw {
    fn read(&mut self, kind: Kind, option: Meta, errors: &mut Errors) {
        let name = match option.path().get_ident() {
            Some(ident) => ident.to_string(),
            None => option.path().to_token_stream().to_string().replace(' ', ""),
        };
        match name.as_str() {
            "flavor" => set(&mut self.flavor, &name, option, errors, flavor),
            "worker_threads" => set(
                &mut self.worker_threads,
                &name,
                option,
                errors,
                worker_threads,
            ),
            "start_paused" => set(&mut self.start_paused, &name, option, errors, start_paused),
            "name" => set(&mut self.name, &name, option, errors, runtime_name),
            "crate" => set(&mut self.rt, &name, option, errors, rt),
            _ => {
                let close = match name.as_str() {
                    "flavour" => "; write `flavor`",
                    "workers" | "threads" | "num_threads" | "num_workers" | "core_threads" => {
                        "; write `worker_threads`"
                    }
                    "paused" => "; write `start_paused`",
                    _ => "",
                };
                let attribute = kind.name();
                errors.at(
                    option.path(),
                    format!("`{attribute}` has no option `{name}`, it knows {KNOWN}{close}"),
                );
            }
        }
    }

    /// Options that do not go together. Of a bad pair, the flavor stays and the other is left out.
    fn check(self, kind: Kind, errors: &mut Errors) -> Options {
        let default = match kind {
            Kind::Main => Flavor::MultiThread,
            Kind::Test => Flavor::CurrentThread,
        };
        let flavor = self.flavor.as_ref().map_or(default, |given| given.value);
        // Whether the flavor was written down decides what has to be said about it.
        let why = match self.flavor {
            Some(_) => String::new(),
            None => format!(", which `{}` uses unless told otherwise", kind.name()),
        };

        let worker_threads = self.worker_threads.and_then(|given| match flavor {
            Flavor::MultiThread => Some(given.value),
            Flavor::CurrentThread => {
                errors.at(
                    given.option,
                    format!(
                        "`worker_threads` needs `flavor = \"multi_thread\"`: the flavor `current_thread`{why} has \
                         no worker threads"
                    ),
                );
                None
            }
        });
        let start_paused = self.start_paused.is_some_and(|given| match flavor {
            Flavor::MultiThread if given.value => {
                errors.at(
                    given.option,
                    format!(
                        "`start_paused` needs `flavor = \"current_thread\"`: with the flavor `multi_thread`{why} \
                         nobody can say when all threads are idle, and only then may a paused clock move"
                    ),
                );
                false
            }
            _ => given.value,
        });
        let rt = match self.rt {
            Some(given) => given.value.into_token_stream(),
            None => quote_spanned!(Span::mixed_site()=> ::rt),
        };
        Options {
            flavor,
            worker_threads,
            start_paused,
            name: self.name.map(|given| given.value),
            rt,
        }
    }
}

/// Stores the value of one option, if it is one and none was stored before.
fn set<T>(
    slot: &mut Option<Given<T>>,
    name: &str,
    option: Meta,
    errors: &mut Errors,
    read: impl FnOnce(&Expr) -> Result<T, String>,
) {
    if slot.is_some() {
        errors.at(&option, format!("the option `{name}` is given twice"));
        return;
    }
    let value = match &option {
        Meta::NameValue(pair) => &pair.value,
        _ => {
            let example = match name {
                "flavor" => "\"multi_thread\"",
                "worker_threads" => "2",
                "start_paused" => "true",
                "name" => "\"server\"",
                _ => "\"path::to::rt\"",
            };
            errors.at(
                &option,
                format!("the option `{name}` needs a value: `{name} = {example}`"),
            );
            return;
        }
    };
    match read(value) {
        Ok(value) => *slot = Some(Given { value, option }),
        Err(message) => errors.at(value, message),
    }
}

fn flavor(value: &Expr) -> Result<Flavor, String> {
    let Some(Lit::Str(text)) = literal(value) else {
        return Err(format!("`flavor` is a string: {FLAVORS}"));
    };
    match text.value().as_str() {
        "multi_thread" => Ok(Flavor::MultiThread),
        "current_thread" => Ok(Flavor::CurrentThread),
        other => Err(format!("there is no flavor `{other}`; it is {FLAVORS}")),
    }
}

fn worker_threads(value: &Expr) -> Result<usize, String> {
    let number = match literal(value) {
        Some(Lit::Int(number)) => number,
        _ => {
            return Err(
                "`worker_threads` is a whole number, without quotes: `worker_threads = 2`"
                    .to_owned(),
            );
        }
    };
    match number.base10_parse::<usize>() {
        Ok(0) => Err(
            "`worker_threads` must be at least 1; for a runtime without worker threads write \
                      `flavor = \"current_thread\"`"
                .to_owned(),
        ),
        Ok(number) => Ok(number),
        Err(error) => Err(format!(
            "`worker_threads = {number}` cannot be used: {error}"
        )),
    }
}

fn start_paused(value: &Expr) -> Result<bool, String> {
    match literal(value) {
        Some(Lit::Bool(flag)) => Ok(flag.value),
        _ => Err("`start_paused` is `true` or `false`".to_owned()),
    }
}

fn runtime_name(value: &Expr) -> Result<LitStr, String> {
    match literal(value) {
        Some(Lit::Str(name)) => Ok(name.clone()),
        _ => Err("`name` is a string: `name = \"server\"`".to_owned()),
    }
}

/// `crate = "some::path"`, and `crate = some::path` too.
fn rt(value: &Expr) -> Result<Path, String> {
    let path = match value {
        Expr::Path(path) if path.attrs.is_empty() && path.qself.is_none() => {
            Some(path.path.clone())
        }
        _ => match literal(value) {
            Some(Lit::Str(text)) => text.parse_with(Path::parse_mod_style).ok(),
            _ => None,
        },
    };
    path.ok_or_else(|| {
        "`crate` is the path of the crate `rt`: `crate = \"path::to::rt\"`".to_owned()
    })
}

fn literal(value: &Expr) -> Option<&Lit> {
    match value {
        Expr::Lit(ExprLit { lit, attrs }) if attrs.is_empty() => Some(lit),
        _ => None,
    }
}
