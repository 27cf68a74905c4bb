//! Each complaint of `join!` and `try_join!`.

use syn::parse::{ParseStream, Parser};

use super::{Join, Kind, parse};

fn run(kind: Kind, input: &str) -> syn::Result<Join> {
    let parser = |input: ParseStream<'_>| parse(kind, input);
    parser.parse_str(&format!("rt; {input}"))
}

fn error(kind: Kind, input: &str) -> (String, String) {
    match run(kind, input) {
        Ok(_) => panic!("no complaint about {input}"),
        Err(error) => (
            error.to_string(),
            error.span().source_text().unwrap_or_default(),
        ),
    }
}

#[test]
fn futures_and_commas() {
    for (input, count, biased) in [
        ("", 0, false),
        ("a", 1, false),
        ("a, b(c, d), async { e },", 3, false),
        ("biased;", 0, true),
        ("biased; a, b", 2, true),
        // A future of that name.
        ("biased, a", 2, false),
    ] {
        let join = run(Kind::Join, input).unwrap_or_else(|error| panic!("{input}: {error}"));
        assert_eq!(
            (join.futures.len(), join.biased),
            (count, biased),
            "{input}"
        );
    }
}

#[test]
fn a_comma_is_missing() {
    let (message, place) = error(Kind::Join, "a b");
    assert_eq!(message, "expected `,` between the futures");
    assert_eq!(place, "b");
}

#[test]
fn there_are_no_handlers() {
    let (message, _) = error(Kind::TryJoin, "x = a => {}");
    assert_eq!(
        message,
        "expected `,` between the futures: `try_join!` has no handlers, it gives the outputs as a tuple"
    );
}
