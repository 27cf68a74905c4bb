//! `join!` and `try_join!`: futures into a tree, a tree of outputs into a tuple.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Expr, Result, Token};

use crate::select::{biased, root};
use crate::tree;

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Join,
    TryJoin,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Join => "join!",
            Kind::TryJoin => "try_join!",
        }
    }
}

struct Join {
    root: TokenStream,
    biased: bool,
    futures: Vec<Expr>,
}

/// Expands the input, which begins with the path of the facade and a semicolon.
pub(crate) fn expand(kind: Kind, input: TokenStream) -> TokenStream {
    let parser = |input: ParseStream<'_>| parse(kind, input);
    match syn::parse::Parser::parse2(parser, input) {
        Ok(join) => write(kind, &join),
        Err(error) => error.into_compile_error(),
    }
}

fn parse(kind: Kind, input: ParseStream<'_>) -> Result<Join> {
    let root = root(input)?;
    let biased = biased(input)?;
    let mut futures = Vec::new();
    while !input.is_empty() {
        futures.push(Expr::parse(input)?);
        if input.is_empty() {
            break;
        }
        if !input.peek(Token![,]) {
            let hint = if input.peek(Token![=>]) {
                format!(
                    ": `{}` has no handlers, it gives the outputs as a tuple",
                    kind.name()
                )
            } else {
                String::new()
            };
            return Err(input.error(format!("expected `,` between the futures{hint}")));
        }
        input.parse::<Token![,]>()?;
    }
    Ok(Join {
        root,
        biased,
        futures,
    })
}

fn write(kind: Kind, join: &Join) -> TokenStream {
    let Join {
        root,
        biased,
        futures,
    } = join;
    let support = quote!(#root::macros::support);
    if futures.is_empty() {
        return match kind {
            Kind::Join => quote!(()),
            Kind::TryJoin => quote!(#support::Ok(())),
        };
    }
    let names: Vec<Ident> = (0..futures.len())
        .map(|index| format_ident!("future{index}", span = Span::mixed_site()))
        .collect();
    // Each in a `let` of its own: temporaries of the expression do not live across the await.
    let lets = futures.iter().zip(&names).map(|(future, name)| {
        let maybe_done = quote_spanned! {future.span().resolved_at(Span::mixed_site())=>
            #support::maybe_done(#future)
        };
        quote!(let #name = #maybe_done;)
    });
    let leaves: Vec<TokenStream> = names.iter().map(|name| quote!(#name)).collect();
    let tree = tree::build(&support, &leaves);
    let pattern = tree::pattern(&names);
    let run = match kind {
        Kind::Join => quote!(join),
        Kind::TryJoin => quote!(try_join),
    };
    let outputs = quote!((#(#names,)*));
    let rest = match kind {
        Kind::Join => quote! {
            let #pattern = #support::#run(#tree, #biased).await;
            #outputs
        },
        Kind::TryJoin => quote! {
            match #support::#run(#tree, #biased).await {
                #support::Ok(#pattern) => #support::Ok(#outputs),
                #support::Err(error) => #support::Err(error),
            }
        },
    };
    // An output type without values makes the tuple unreachable.
    // `allow` in generated code, not `expect`: whether the lint fires depends on what the user wrote.
    quote!({
        #[allow(unreachable_code)]
        {
            #(#lets)*
            #rest
        }
    })
}

#[cfg(test)]
mod tests;
