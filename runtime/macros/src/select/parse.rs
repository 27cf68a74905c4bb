//! The syntax of `select!`, and what is said when it is broken.

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;
use syn::parse::discouraged::Speculative;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprBlock, Ident, Pat, Result, Token, token};

use super::MOST;

/// The input of `select!`.
pub(super) struct Select {
    /// The path of the facade.
    pub(super) root: TokenStream,
    pub(super) biased: bool,
    pub(super) branches: Vec<Branch>,
    /// What stands behind `else`.
    pub(super) otherwise: Option<Expr>,
}

/// `pattern = future, if condition => handler`.
pub(super) struct Branch {
    pub(super) pattern: Pat,
    pub(super) future: Expr,
    pub(super) condition: Option<Expr>,
    pub(super) handler: Expr,
}

/// The path of the facade and the semicolon, which the declarative macro puts in front.
pub(crate) fn root(input: ParseStream<'_>) -> Result<TokenStream> {
    let mut root = TokenStream::new();
    while !input.peek(Token![;]) {
        root.extend([input.parse::<TokenTree>()?]);
    }
    input.parse::<Token![;]>()?;
    Ok(root)
}

/// Takes `biased;` if it is there.
pub(crate) fn biased(input: ParseStream<'_>) -> Result<bool> {
    let ahead = input.fork();
    if !ahead.parse::<Ident>().is_ok_and(|ident| ident == "biased") || !ahead.peek(Token![;]) {
        return Ok(false);
    }
    ahead.parse::<Token![;]>()?;
    input.advance_to(&ahead);
    Ok(true)
}

impl Parse for Select {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let root = root(input)?;
        let biased = biased(input)?;
        let mut branches = Vec::new();
        let mut otherwise = None;
        while !input.is_empty() {
            if input.peek(Token![else]) {
                otherwise = Some(parse_else(input)?);
                break;
            }
            let branch = Branch::parse(input)?;
            if branches.len() == MOST {
                return Err(Error::new(
                    branch.pattern.span(),
                    format!(
                        "`select!` has at most {MOST} branches: gather some of them in a future of their own"
                    ),
                ));
            }
            branches.push(branch);
        }
        if branches.is_empty() && otherwise.is_none() {
            return Err(input.error("`select!` requires at least one branch"));
        }
        Ok(Select {
            root,
            biased,
            branches,
            otherwise,
        })
    }
}

/// `else => expression` and nothing behind it.
fn parse_else(input: ParseStream<'_>) -> Result<Expr> {
    let keyword: Token![else] = input.parse()?;
    if input.peek(Token![,]) && input.peek2(Token![if]) || input.peek(Token![if]) {
        return Err(input
            .error("`else` has no precondition: it is taken when every other branch is disabled"));
    }
    if !input.peek(Token![=>]) {
        return Err(input.error("expected `=>` after `else`"));
    }
    input.parse::<Token![=>]>()?;
    if input.is_empty() {
        return Err(input.error("expected what to do when all branches are disabled"));
    }
    let otherwise = parse_handler(input)?;
    if !input.is_empty() {
        return Err(Error::new(
            keyword.span,
            "`else` must be the last branch of `select!`",
        ));
    }
    Ok(otherwise)
}

impl Branch {
    fn parse(input: ParseStream<'_>) -> Result<Branch> {
        let pattern = parse_pattern(input)?;
        input.parse::<Token![=]>()?;
        if input.is_empty() || input.peek(Token![=>]) || input.peek(Token![,]) {
            return Err(input.error("expected a future after `=`"));
        }
        let future: Expr = input.parse()?;
        let condition = parse_condition(input)?;
        if !input.peek(Token![=>]) {
            return Err(input.error(
                "expected `=>` and a handler, or `, if` and a precondition, after the future",
            ));
        }
        input.parse::<Token![=>]>()?;
        if input.is_empty() || input.peek(Token![,]) {
            return Err(
                input.error("expected a handler after `=>`: `{}` if there is nothing to do")
            );
        }
        let handler = parse_handler(input)?;
        Ok(Branch {
            pattern,
            future,
            condition,
            handler,
        })
    }
}

fn parse_pattern(input: ParseStream<'_>) -> Result<Pat> {
    let start = input.fork();
    let shape = "a branch of `select!` reads `pattern = future => handler`";
    match Pat::parse_multi_with_leading_vert(input) {
        Ok(pattern)
            if input.peek(Token![=]) && !input.peek(Token![=>]) && !input.peek(Token![==]) =>
        {
            Ok(pattern)
        }
        parsed => {
            // `future => handler` is what people write who leave the pattern out.
            if let Ok(future) = start.parse::<Expr>()
                && (start.peek(Token![=>]) || start.peek(Token![,]) && start.peek2(Token![if]))
            {
                let text = quote!(#future).to_string();
                let hint = if text.len() <= 12 {
                    format!("`_ = {text}`")
                } else {
                    "`_ = ...`".to_owned()
                };
                return Err(Error::new(
                    future.span(),
                    format!(
                        "expected a pattern and `=` before the future: {shape}, so {hint} if its output is not needed"
                    ),
                ));
            }
            match parsed {
                Ok(_) => Err(input.error(format!("expected `=` after the pattern: {shape}"))),
                Err(error) => Err(Error::new(error.span(), format!("{error}: {shape}"))),
            }
        }
    }
}

/// `, if condition`
fn parse_condition(input: ParseStream<'_>) -> Result<Option<Expr>> {
    if input.peek(Token![if]) {
        return Err(input.error("expected `,` between the future and `if`"));
    }
    if !(input.peek(Token![,]) && input.peek2(Token![if])) {
        return Ok(None);
    }
    input.parse::<Token![,]>()?;
    input.parse::<Token![if]>()?;
    if input.is_empty() || input.peek(Token![=>]) {
        return Err(input.error("expected a precondition after `if`"));
    }
    if input.peek(Token![let]) {
        return Err(input.error(
            "a precondition is of type `bool` and binds nothing: use `matches!(..)`, or `if let` in the handler",
        ));
    }
    input.parse().map(Some)
}

/// A handler, with the comma behind it: needed unless a block ends the handler, as in `match`.
fn parse_handler(input: ParseStream<'_>) -> Result<Expr> {
    let handler = if input.peek(token::Brace) {
        // A block ends the branch even if what follows would make it an operand.
        Expr::Block(ExprBlock {
            attrs: Vec::new(),
            label: None,
            block: input.parse()?,
        })
    } else {
        input.parse()?
    };
    if input.peek(Token![,]) {
        input.parse::<Token![,]>()?;
    } else if !input.is_empty() && !ends_in_block(&handler) {
        return Err(input.error("expected `,` after the handler"));
    }
    Ok(handler)
}

fn ends_in_block(handler: &Expr) -> bool {
    match handler {
        Expr::Block(_)
        | Expr::If(_)
        | Expr::Match(_)
        | Expr::While(_)
        | Expr::ForLoop(_)
        | Expr::Loop(_)
        | Expr::Unsafe(_)
        | Expr::Const(_)
        | Expr::TryBlock(_) => true,
        // What a macro of the user handed on as `$handler:block` or `$handler:expr`.
        Expr::Group(group) => ends_in_block(&group.expr),
        _ => false,
    }
}
