//! A list of futures as a balanced tree of pairs, as `runtime/src/macros/support/pair.rs` has it.
//!
//! A tuple could hold them, but not give them out pinned without `unsafe` in the user's code; a list would be as deep
//! as it is long, and the compiler gives up on types that are 128 deep.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};

/// `Pair::new(Pair::new(a, b), c)`
pub(crate) fn build(support: &TokenStream, leaves: &[TokenStream]) -> TokenStream {
    match leaves {
        [] => quote!(()),
        [leaf] => leaf.clone(),
        _ => {
            let (left, right) = halves(leaves);
            let (left, right) = (build(support, left), build(support, right));
            quote!(#support::Pair::new(#left, #right))
        }
    }
}

/// `let` statements that bind each name to its pinned leaf.
pub(crate) fn split(names: &[Ident], tree: &Ident) -> TokenStream {
    let mut code = TokenStream::new();
    let mut made = 0;
    split_into(names, &quote!(#tree.as_mut()), &mut made, &mut code);
    code
}

fn split_into(names: &[Ident], tree: &TokenStream, made: &mut usize, code: &mut TokenStream) {
    if let [name] = names {
        code.extend(quote!(let mut #name = #tree;));
        return;
    }
    let (left, right) = halves(names);
    let mut inner = || {
        *made += 1;
        format_ident!("half{made}", span = Span::mixed_site())
    };
    let (a, b) = (inner(), inner());
    code.extend(quote!(let (#a, #b) = #tree.split();));
    split_into(left, &quote!(#a), made, code);
    split_into(right, &quote!(#b), made, code);
}

/// The pattern of a tree of outputs: `((a, b), c)`.
pub(crate) fn pattern(names: &[Ident]) -> TokenStream {
    match names {
        [] => quote!(()),
        [name] => quote!(#name),
        _ => {
            let (left, right) = halves(names);
            let (left, right) = (pattern(left), pattern(right));
            quote!((#left, #right))
        }
    }
}

/// Where a tree of that many leaves divides.
fn halves<T>(leaves: &[T]) -> (&[T], &[T]) {
    leaves.split_at(leaves.len().div_ceil(2))
}
