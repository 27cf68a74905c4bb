//! `select!`: from branches to the code that polls them.
//!
//! # What it writes
//! ```text
//! {
//!     enum Out<B0, B1> { B0(B0), B1(B1), Disabled }
//!     let mut disabled = 0;                           // a bit per branch, set by preconditions
//!     let output = {
//!         let f0 = ..; let f1 = ..;                   // what the user wrote, so that temporaries live as in a `let`
//!         let mut futures = pin!(Pair::new(f0, f1));  // a balanced tree
//!         select_fn(move |cx| ..).await               // gives the first output that matches its pattern
//!     };                                              // every future is dropped here
//!     match output { B0(pattern) => handler, B1(pattern) => handler, Disabled => else }
//! }
//! ```
//! So a handler runs in the user's own function (`?`, `return`, `break` and `.await` work), after the futures and what
//! they borrow are gone. The user's pattern is needed twice: to bind, and before, to see whether an output matches at
//! all (`pattern.rs`).
//!
//! # Why a procedural macro
//! The pattern has to be changed for the first look, which declarative macros cannot do; and complaints can say what a
//! branch looks like.

mod parse;
mod pattern;

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use self::parse::{Branch, Select};
pub(crate) use self::parse::{biased, root};
use self::pattern::Look;
use crate::tree;

/// More branches than that have no bit left in the widest mask.
const MOST: usize = 64;

/// Expands the input of `select!`, which begins with the path of the facade and a semicolon.
pub(crate) fn expand(input: TokenStream) -> TokenStream {
    match syn::parse2::<Select>(input) {
        Ok(select) => write(&select),
        Err(error) => error.into_compile_error(),
    }
}

fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

fn write(select: &Select) -> TokenStream {
    let Select {
        root,
        biased,
        branches,
        otherwise,
    } = select;
    if branches.is_empty() {
        // `else` alone: the parser takes no empty input.
        return quote!({ #otherwise });
    }
    let support = quote!(#root::macros::support);
    let out = local("__RtSelectOut");
    let (disabled, output, futures) = (local("disabled"), local("output"), local("futures"));
    let mask = match branches.len() {
        0..=8 => quote!(u8),
        9..=16 => quote!(u16),
        17..=32 => quote!(u32),
        _ => quote!(u64),
    };

    let variants: Vec<Ident> = names("B", branches);
    let fields: Vec<Ident> = names("future", branches);
    let bits: Vec<TokenStream> = (0..branches.len())
        .map(|index| {
            let index = Literal::usize_unsuffixed(index);
            quote!((1 << #index))
        })
        .collect();

    let preconditions = branches.iter().zip(&bits).filter_map(|(branch, bit)| {
        let condition = branch.condition.as_ref()?;
        let precondition = local("precondition");
        Some(
            quote_spanned! {condition.span().resolved_at(Span::mixed_site())=>
                let #precondition: bool = #condition;
                if !#precondition {
                    #disabled |= #bit;
                }
            },
        )
    });
    let futures_of = branches.iter().zip(&fields).map(|(branch, field)| {
        let future = &branch.future;
        quote!(let #field = #future;)
    });
    let leaves: Vec<TokenStream> = branches
        .iter()
        .zip(&fields)
        .map(|(branch, field)| {
            // The span of the expression: there "is not a future" is said.
            quote_spanned! {branch.future.span().resolved_at(Span::mixed_site())=>
                #support::IntoFuture::into_future(#field)
            }
        })
        .collect();
    let tree = tree::build(&support, &leaves);
    let split = tree::split(&fields, &futures);
    let poll = poll(select, &support, &variants, &fields, &bits);
    let arms = branches.iter().zip(&variants).map(|(branch, variant)| {
        let Branch {
            pattern, handler, ..
        } = branch;
        quote!(#out::#variant(#pattern) => #handler,)
    });
    let otherwise = match otherwise {
        Some(otherwise) => quote!(#otherwise),
        None => {
            quote!(#support::panic!("all branches are disabled and there is no else branch"))
        }
    };
    let note = if *biased || branches.len() == 1 {
        quote!()
    } else {
        let branch = local("branch");
        let count = Literal::usize_unsuffixed(branches.len());
        quote!(let mut #branch: u32 = #support::random_below(#count);)
    };

    // `allow` in generated code, not `expect`: whether the lint fires depends on what the user wrote.
    quote!({
        #[allow(clippy::enum_variant_names, clippy::large_enum_variant)]
        enum #out<#(#variants,)*> {
            #(#variants(#variants),)*
            Disabled,
        }
        #[allow(unused_mut)]
        let mut #disabled: #mask = 0;
        #(#preconditions)*
        // A handler may take a part of it by `ref mut`.
        #[allow(unused_mut)]
        let mut #output = {
            #(#futures_of)*
            let mut #futures = #support::pin!(#tree);
            #support::select_fn(move |cx: &mut #support::Context<'_>| {
                if !#support::proceed(cx) {
                    return #support::Poll::Pending;
                }
                #split
                #note
                #poll
            })
            .await
        };
        match #output {
            #(#arms)*
            #out::Disabled => #otherwise,
            #[allow(unreachable_patterns)]
            _ => #support::unreachable!("the output matched its pattern before"),
        }
    })
}

/// `B0 B1 ..`
fn names(prefix: &str, branches: &[Branch]) -> Vec<Ident> {
    (0..branches.len())
        .map(|index| format_ident!("{prefix}{index}", span = Span::mixed_site()))
        .collect()
}

/// One poll: every branch that is enabled, once, until one has an output that matches.
fn poll(
    select: &Select,
    support: &TokenStream,
    variants: &[Ident],
    fields: &[Ident],
    bits: &[TokenStream],
) -> TokenStream {
    let out = local("__RtSelectOut");
    let (disabled, waiting, value) = (local("disabled"), local("waiting"), local("value"));
    let steps: Vec<TokenStream> = select
        .branches
        .iter()
        .enumerate()
        .map(|(index, branch)| {
            let (variant, field, bit) = (&variants[index], &fields[index], &bits[index]);
            let found = quote!(return #support::Poll::Ready(#out::#variant(#value)););
            let check = match pattern::look(&branch.pattern, &quote!(#value)) {
                None => found,
                Some(Look { at, pattern }) => quote! {
                    #[allow(unused_variables, non_snake_case)]
                    match #at {
                        #pattern => { #found }
                        #[allow(unreachable_patterns)]
                        _ => {}
                    }
                },
            };
            // An output type without values makes what follows the poll unreachable.
            quote! {
                #[allow(unreachable_code)]
                if #disabled & #bit == 0 {
                    match #support::Future::poll(#support::Pin::as_mut(&mut #field), cx) {
                        #support::Poll::Pending => #waiting = true,
                        #support::Poll::Ready(#value) => {
                            #disabled |= #bit;
                            #check
                        }
                    }
                }
            }
        })
        .collect();
    let steps = if select.biased || steps.len() == 1 {
        quote!(#(#steps)*)
    } else {
        let branch = local("branch");
        let numbers = (0..steps.len()).map(Literal::usize_unsuffixed);
        let count = Literal::usize_unsuffixed(steps.len());
        quote! {
            for _ in 0..#count {
                match #branch {
                    #(#numbers => { #steps })*
                    _ => #support::unreachable!(),
                }
                #branch += 1;
                if #branch == #count {
                    #branch = 0;
                }
            }
        }
    };
    quote! {
        let mut #waiting = false;
        #steps
        if #waiting {
            #support::Poll::Pending
        } else {
            #support::Poll::Ready(#out::Disabled)
        }
    }
}

#[cfg(test)]
mod tests;
