//! The user's pattern, made fit to look at an output without taking it.
//!
//! The look is `match &output { pattern => .. }`, so a binding may not ask for how it binds: `mut x`, `ref x` and `&x`
//! are errors or moves there. The names stay: they may be constants (`None`), and all parts of `a | b` bind the same ones.
//! They bind references then.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::Pat;

/// The pattern for the look; `None` if it matches whatever comes.
pub(super) fn without_bindings(pattern: &Pat) -> Option<TokenStream> {
    if matches_all(pattern) {
        return None;
    }
    let mut pattern = pattern.clone();
    clean(&mut pattern);
    Some(pattern.into_token_stream())
}

fn matches_all(pattern: &Pat) -> bool {
    match pattern {
        Pat::Wild(_) => true,
        // With neither `mut` nor `ref` it may be a constant.
        Pat::Ident(ident) => match &ident.subpat {
            Some((_, inner)) => matches_all(inner),
            None => ident.mutability.is_some() || ident.by_ref.is_some(),
        },
        Pat::Tuple(tuple) => tuple
            .elems
            .iter()
            .all(|inner| matches!(inner, Pat::Rest(_)) || matches_all(inner)),
        Pat::Paren(paren) => matches_all(&paren.pat),
        Pat::Reference(reference) => matches_all(&reference.pat),
        _ => false,
    }
}

fn clean(pattern: &mut Pat) {
    match pattern {
        Pat::Ident(ident) => {
            ident.by_ref = None;
            ident.mutability = None;
            if let Some((_, inner)) = &mut ident.subpat {
                clean(inner);
            }
        }
        // A pattern that is no reference looks through references by itself.
        Pat::Reference(reference) => {
            clean(&mut reference.pat);
            *pattern = (*reference.pat).clone();
        }
        Pat::Or(or) => or.cases.iter_mut().for_each(clean),
        Pat::Paren(paren) => clean(&mut paren.pat),
        Pat::Slice(slice) => slice.elems.iter_mut().for_each(clean),
        Pat::Tuple(tuple) => tuple.elems.iter_mut().for_each(clean),
        Pat::TupleStruct(tuple) => tuple.elems.iter_mut().for_each(clean),
        Pat::Struct(item) => item
            .fields
            .iter_mut()
            .for_each(|field| clean(&mut field.pat)),
        _ => {}
    }
}
