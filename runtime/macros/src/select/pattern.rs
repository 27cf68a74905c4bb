//! The user's pattern, made fit to look at an output without taking it.
//!
//! A pattern that binds nothing looks at the output itself. One that binds looks at a reference, `match &output`, where a
//! binding may not ask for how it binds: `mut x`, `ref x` and `&x` are errors or moves there. The names stay: they may
//! be constants (`none`), and all parts of `a | b` bind the same ones. They bind references then.
//!
//! Names with a capital (`None`, `FIVE`) are taken for constants. If such a name binds after all, the compiler says that
//! the output is used after it was moved; nothing goes wrong unseen.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::Pat;
use syn::visit::{self, Visit};

/// What to look at, and with which pattern.
pub(super) struct Look {
    pub(super) at: TokenStream,
    pub(super) pattern: TokenStream,
}

/// The look at `value`; `None` if the pattern matches whatever comes.
pub(super) fn look(pattern: &Pat, value: &TokenStream) -> Option<Look> {
    if matches_all(pattern) {
        return None;
    }
    let mut binds = Binds(false);
    binds.visit_pat(pattern);
    if !binds.0 {
        return Some(Look {
            at: value.clone(),
            pattern: pattern.to_token_stream(),
        });
    }
    let mut pattern = pattern.clone();
    clean(&mut pattern);
    Some(Look {
        at: quote!(&#value),
        pattern: pattern.into_token_stream(),
    })
}

/// Whether a pattern may bind something.
struct Binds(bool);

impl Visit<'_> for Binds {
    fn visit_pat(&mut self, pattern: &Pat) {
        match pattern {
            Pat::Ident(ident) => {
                let name = ident.ident.to_string();
                let constant = ident.by_ref.is_none()
                    && ident.mutability.is_none()
                    && ident.subpat.is_none()
                    && name.starts_with(char::is_uppercase);
                self.0 |= !constant;
            }
            // Nobody knows what is in it.
            Pat::Macro(_) | Pat::Verbatim(_) => self.0 = true,
            _ => visit::visit_pat(self, pattern),
        }
    }
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
