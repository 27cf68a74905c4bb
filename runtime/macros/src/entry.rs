//! From `#[rt::main] async fn f() { body }` to a function that builds a runtime and blocks on the body.
//!
//! # What it guarantees
//! - An error in the options never hides errors in the body: the function is expanded all the same, with the options
//!   that were right, and each complaint stands at the tokens that it is about.
//! - The tokens of the body are passed on untouched and unparsed, so an editor completes inside a half-written body.
//! - A wrong type in the body is reported where it stands, see [`typed_body`].
//! - Nothing that the macro adds can be seen from the body, and no name of the body changes what the macro wrote.

mod options;
#[cfg(test)]
mod tests;

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Error, ReturnType, Signature, Type, Visibility, token};

use self::options::{Flavor, Options};

/// Which of the two attributes is expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Main,
    Test,
}

impl Kind {
    /// How messages call the attribute.
    fn name(self) -> &'static str {
        match self {
            Kind::Main => "#[rt::main]",
            Kind::Test => "#[rt::test]",
        }
    }
}

/// Expands one attribute. Errors come back as `compile_error!` beside whatever could still be made of the function.
pub(crate) fn expand(kind: Kind, args: TokenStream, item: TokenStream) -> TokenStream {
    let function = match syn::parse2::<Function>(item.clone()) {
        Ok(function) => function,
        Err(_) => {
            // Not a function, or not one with a body. The item goes back as it was: if it is broken Rust, the
            // compiler's own message is better than ours.
            let error =
                Error::new_spanned(first_token(&item), needs_async(kind)).into_compile_error();
            return quote!(#error #item);
        }
    };

    let mut errors = Errors::default();
    let options = Options::parse(kind, args, &mut errors);
    function.check(kind, &mut errors);
    let function = function.into_tokens(kind, &options);
    let errors = errors.into_compile_error();
    quote!(#errors #function)
}

fn needs_async(kind: Kind) -> String {
    let example = match kind {
        Kind::Main => "async fn main() { .. }",
        Kind::Test => "async fn name_of_the_test() { .. }",
    };
    format!("`{}` goes on an async function: `{example}`", kind.name())
}

/// The first token, which is where a message about a whole item stands best.
fn first_token(tokens: &TokenStream) -> TokenStream {
    tokens.clone().into_iter().take(1).collect()
}

/// Collects complaints, so that one build shows all of them.
#[derive(Default)]
struct Errors(Option<Error>);

impl Errors {
    /// Adds a complaint that stands at `tokens`.
    fn at(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.add(Error::new_spanned(tokens, message));
    }

    fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            none => *none = Some(error),
        }
    }

    fn into_compile_error(self) -> Option<TokenStream> {
        self.0.map(Error::into_compile_error)
    }
}

/// A function whose body is kept as tokens.
struct Function {
    attributes: Vec<Attribute>,
    visibility: Visibility,
    signature: Signature,
    /// Attributes of the form `#![..]` at the top of the body.
    inner_attributes: Vec<Attribute>,
    brace: token::Brace,
    body: TokenStream,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        let signature = input.parse()?;
        let content;
        let brace = syn::braced!(content in input);
        let inner_attributes = content.call(Attribute::parse_inner)?;
        let body = content.parse()?;
        Ok(Function {
            attributes,
            visibility,
            signature,
            inner_attributes,
            brace,
            body,
        })
    }
}

impl Function {
    fn check(&self, kind: Kind, errors: &mut Errors) {
        let signature = &self.signature;
        if signature.asyncness.is_none() {
            errors.at(signature.fn_token, needs_async(kind));
        }
        // Functions with other names are called by the user, who may well pass something. For tests the compiler
        // says it, and attributes that come after ours may still take the arguments away.
        if kind == Kind::Main && signature.ident == "main" && !signature.inputs.is_empty() {
            errors.at(
                &signature.inputs,
                "`main` takes no arguments; the command line is in `std::env::args()`",
            );
        }
        if kind == Kind::Test
            && let Some(attribute) = self.attributes.iter().find(|attribute| is_test(attribute))
        {
            errors.at(
                attribute,
                "this function is a test already, `#[rt::test]` adds `#[test]` by itself; remove this attribute",
            );
        }
    }

    fn into_tokens(self, kind: Kind, options: &Options) -> TokenStream {
        let mixed = Span::mixed_site();
        let attributes = &self.attributes;
        let inner_attributes = &self.inner_attributes;
        let visibility = &self.visibility;
        let mut signature = self.signature.clone();
        signature.asyncness = None;

        let test_attribute = match kind {
            // Were `#[test]` added a second time, a warning would follow the error.
            Kind::Test if !self.attributes.iter().any(is_test) => {
                Some(quote_spanned!(mixed=> #[::core::prelude::v1::test]))
            }
            _ => None,
        };
        let builder = builder(options);
        let output = nameable_output(&signature.output);
        let future = typed_body(&self.signature, output.as_ref(), self.brace, self.body);

        // Each name is of mixed site, so the body cannot see it. The runtime stands first: its drop comes last.
        // `allow` in generated code, not `expect`: whether the lint fires depends on what the user wrote.
        let runtime = quote_spanned! {mixed=>
            #[allow(clippy::expect_used)]
            let runtime = #builder.build().expect("the runtime could not be started");
        };
        let run = match (kind, &output) {
            // One instance of `block_on` for all tests with this output keeps test binaries small to build.
            (Kind::Test, Some(output)) => quote_spanned! {mixed=>
                let future = ::core::pin::pin!(future);
                let future: ::core::pin::Pin<&mut dyn ::core::future::Future<Output = #output>> = future;
                runtime.block_on(future)
            },
            _ => quote_spanned!(mixed=> runtime.block_on(future)),
        };

        let body = quote_spanned! {mixed=>
            #(#inner_attributes)*
            #runtime
            let future = #future;
            #run
        };
        quote! {
            #(#attributes)*
            #test_attribute
            #visibility #signature { #body }
        }
    }
}

/// `Builder::new_..().enable_all()` and what the options add.
fn builder(options: &Options) -> TokenStream {
    let mixed = Span::mixed_site();
    let rt = &options.rt;
    let new = match options.flavor {
        Flavor::MultiThread => quote_spanned!(mixed=> new_multi_thread),
        Flavor::CurrentThread => quote_spanned!(mixed=> new_current_thread),
    };
    let worker_threads = options
        .worker_threads
        .map(|number| quote_spanned!(mixed=> .worker_threads(#number)));
    let start_paused = options
        .start_paused
        .then(|| quote_spanned!(mixed=> .start_paused(true)));
    let name = options
        .name
        .as_ref()
        .map(|name| quote_spanned!(mixed=> .name(#name)));
    quote_spanned!(mixed=> #rt::runtime::Builder::#new().enable_all() #worker_threads #start_paused #name)
}

/// The async block around the body.
///
/// A bare async block gets its type from its end, so `Ok(1)` in a function that returns `Result<String, _>` would be
/// reported at the call of `block_on`, and `Err("..".into())` would not compile at all. A `return` at the top that never runs
/// tells the compiler the type first; after that it reports exactly what it would report in an async function. An
/// async closure with a return type was tried too: rustc then complains about types of closures.
fn typed_body(
    signature: &Signature,
    output: Option<&TokenStream>,
    brace: token::Brace,
    body: TokenStream,
) -> TokenStream {
    let mixed = Span::mixed_site();
    // "Return type inferred here" then points at the type, or at the name where none is written.
    let written = match &signature.output {
        ReturnType::Default => signature.ident.span(),
        ReturnType::Type(_, output) => output.span(),
    };
    let at_output = mixed.located_at(written);
    let hint = output.map(|output| {
        quote_spanned! {at_output=>
            if let ::core::option::Option::Some(output) = ::core::option::Option::None::<#output> {
                return output;
            }
        }
    });
    // The keyword and the braces keep their places in the user's file, messages point at them.
    let keyword = signature.asyncness.unwrap_or(token::Async { span: mixed });
    let mut block = Group::new(Delimiter::Brace, quote!(#hint #body));
    block.set_span(brace.span.join());
    quote!(#keyword #block)
}

/// The output type, if it may be written inside the function: `!` and `impl Trait` may not.
fn nameable_output(output: &ReturnType) -> Option<TokenStream> {
    match output {
        ReturnType::Default => Some(quote_spanned!(Span::mixed_site()=> ())),
        ReturnType::Type(_, output) => is_nameable(output).then(|| output.to_token_stream()),
    }
}

fn is_nameable(output: &Type) -> bool {
    !matches!(output, Type::Never(_)) && !mentions_impl(output.to_token_stream())
}

fn mentions_impl(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == "impl",
        TokenTree::Group(group) => mentions_impl(group.stream()),
        _ => false,
    })
}

/// Whether the attribute is `#[test]`, by whatever path of the standard library, or `#[rt::test]`.
fn is_test(attribute: &Attribute) -> bool {
    let path: Vec<String> = attribute
        .path()
        .segments
        .iter()
        .map(|segment| segment.ident.to_string())
        .collect();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    matches!(
        path[..],
        ["test"] | ["rt", "test"] | ["core" | "std", "prelude", _, "test"]
    )
}
