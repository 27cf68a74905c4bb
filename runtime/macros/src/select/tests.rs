//! Each complaint of `select!`, with the tokens that it stands at, and how patterns are changed.

use quote::quote;
use syn::parse::Parser;
use syn::{Pat, Result};

use super::parse::Select;
use super::pattern::Look;
use super::{MOST, pattern};

/// The complaint about `input`, with the source text that it stands at.
fn error(input: &str) -> (String, String) {
    match syn::parse_str::<Select>(&format!("rt; {input}")) {
        Ok(_) => panic!("no complaint about {input}"),
        Err(error) => (
            error.to_string(),
            error.span().source_text().unwrap_or_default(),
        ),
    }
}

fn parse(input: &str) -> Result<Select> {
    syn::parse_str(&format!("rt; {input}"))
}

#[test]
fn nothing_to_wait_for() {
    let text = "`select!` requires at least one branch";
    assert!(error("").0.contains(text));
    assert!(error("biased;").0.contains(text));
}

#[test]
fn a_future_without_a_pattern() {
    let (message, place) = error("sleep(d) => {}");
    assert_eq!(
        message,
        "expected a pattern and `=` before the future: a branch of `select!` reads `pattern = future => handler`, so \
         `_ = sleep (d)` if its output is not needed"
    );
    assert_eq!(place, "sleep(d)");
    let (message, place) = error("_ = a => {} receiver.recv(&mut buffer) => {}");
    assert!(
        message.ends_with("so `_ = ...` if its output is not needed"),
        "{message}"
    );
    assert_eq!(place, "receiver.recv(&mut buffer)");
    let (message, _) = error("&mut sleep, if ready => {}");
    assert!(
        message.starts_with("expected a pattern and `=` before the future"),
        "{message}"
    );
}

#[test]
fn a_pattern_without_a_future() {
    assert_eq!(error("x = => {}").0, "expected a future after `=`");
    assert!(error("x =").0.ends_with("expected a future after `=`"));
    assert!(
        error("Some(x) 5")
            .0
            .starts_with("expected `=` after the pattern")
    );
    let (message, _) = error("? = a => {}");
    assert!(
        message.ends_with("a branch of `select!` reads `pattern = future => handler`"),
        "{message}"
    );
}

#[test]
fn a_branch_without_a_handler() {
    let (message, _) = error("x = a, y = b => {}");
    assert_eq!(
        message,
        "expected `=>` and a handler, or `, if` and a precondition, after the future"
    );
    let (message, place) = error("x = a =>, y = b => {}");
    assert_eq!(
        message,
        "expected a handler after `=>`: `{}` if there is nothing to do"
    );
    assert_eq!(place, ",");
    assert!(error("x = a =>").0.contains("expected a handler"));
}

#[test]
fn preconditions() {
    let (message, place) = error("x = a if b => {}");
    assert_eq!(message, "expected `,` between the future and `if`");
    assert_eq!(place, "if");
    assert_eq!(
        error("x = a, if => {}").0,
        "expected a precondition after `if`"
    );
    let (message, place) = error("x = a, if let Some(y) = z => {}");
    assert!(message.contains("binds nothing"), "{message}");
    assert_eq!(place, "let");
}

#[test]
fn handlers_are_told_apart_by_commas() {
    let (message, place) = error("x = a => f() y = b => g()");
    assert_eq!(message, "expected `,` after the handler");
    assert_eq!(place, "y");
    for input in [
        "x = a => {} y = b => {}",
        "x = a => {}, y = b => {},",
        "x = a => f(), y = b => g()",
        "x = a => match x { _ => {} } y = b => if x { } else { } else => loop {}",
        "x = a => unsafe { f() } y = b => return,",
        "biased; x = a, if b => {} else => {}",
        "x = a, if b => c = d, y = e => f += 1",
        "A | B = a => {} | C { d, .. } = b => {} else => { 5 }",
        "else => 5",
        "else => { 5 },",
    ] {
        if let Err(error) = parse(input) {
            panic!("{input}: {error}");
        }
    }
}

#[test]
fn the_branch_that_is_else() {
    let (message, place) = error("else => {} x = a => {}");
    assert_eq!(message, "`else` must be the last branch of `select!`");
    assert_eq!(place, "else");
    for input in [
        "x = a => {} else, if b => {}",
        "x = a => {} else if b => {}",
    ] {
        assert!(error(input).0.starts_with("`else` has no precondition"));
    }
    assert_eq!(
        error("x = a => {} else = b => {}").0,
        "expected `=>` after `else`"
    );
    assert!(
        error("else =>")
            .0
            .ends_with("when all branches are disabled")
    );
}

#[test]
fn at_most_as_many_branches_as_bits() {
    let most = "_ = a => {}".repeat(MOST);
    assert_eq!(
        parse(&most)
            .unwrap_or_else(|e| panic!("{e}"))
            .branches
            .len(),
        MOST
    );
    let (message, place) = error(&format!("{most} last = a => {{}}"));
    assert_eq!(
        message,
        "`select!` has at most 64 branches: gather some of them in a future of their own"
    );
    assert_eq!(place, "last");
}

#[test]
fn biased_is_a_word_only_in_front_of_a_semicolon() {
    let select = |input| parse(input).unwrap_or_else(|e| panic!("{e}"));
    assert!(select("biased; x = a => {}").biased);
    let name = select("biased = a => {}");
    assert!(!name.biased);
    assert_eq!(name.branches.len(), 1);
}

/// The look at `v`, without spaces; empty if there is none.
fn look(input: &str) -> String {
    let pattern = Pat::parse_multi_with_leading_vert.parse_str(input).unwrap();
    match pattern::look(&pattern, &quote!(v)) {
        None => String::new(),
        Some(Look { at, pattern }) => {
            let code = quote!(#at: #pattern).to_string();
            code.replace(' ', "")
        }
    }
}

#[test]
fn the_look_binds_nothing_by_move() {
    for (pattern, expected) in [
        ("_", ""),
        ("mut x", ""),
        ("ref x", ""),
        ("(mut x, _)", ""),
        ("(_, ..)", ""),
        ("&_", ""),
        ("x @ _", ""),
        // This may be a constant.
        ("x", "&v:x"),
        ("None", "v:None"),
        ("FIVE", "v:FIVE"),
        (r#""yes" | "no""#, r#"v:"yes"|"no""#),
        ("Some(_)", "v:Some(_)"),
        ("Some(&6)", "v:Some(&6)"),
        ("Point { x: 1, .. }", "v:Point{x:1,..}"),
        ("Some(mut x)", "&v:Some(x)"),
        ("Ok(ref mut x)", "&v:Ok(x)"),
        ("Some(&x)", "&v:Some(x)"),
        ("&mut Some(x)", "&v:Some(x)"),
        ("x @ Some(_)", "&v:x@Some(_)"),
        ("Ok(mut n @ 1..=5)", "&v:Ok(n@1..=5)"),
        ("Ok(mut x) | Err(mut x)", "&v:Ok(x)|Err(x)"),
        (
            "Point { mut x, ref y, z: mut w, .. }",
            "&v:Point{x,y,z:w,..}",
        ),
        ("[mut a, .., ref b]", "&v:[a,..,b]"),
        ("[a @ .., 3]", "&v:[a@..,3]"),
        ("(mut a | a)", "&v:(a|a)"),
        ("m!()", "&v:m!()"),
    ] {
        assert_eq!(look(pattern), expected, "{pattern}");
    }
}
