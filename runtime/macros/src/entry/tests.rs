//! What the macros write, and each complaint with the tokens that it stands at.

use proc_macro2::{TokenStream, TokenTree};

use super::{Kind, expand};

/// Expands `item` and returns the code without spaces, so that tests do not depend on how tokens are printed.
fn code(kind: Kind, args: &str, item: &str) -> String {
    let output = expand(kind, args.parse().unwrap(), item.parse().unwrap());
    assert_eq!(complaints(&output), [] as [(String, String); 0]);
    output.to_string().replace([' ', '\n'], "")
}

/// Expands `item` and returns each message with the source text it stands at.
fn errors(kind: Kind, args: &str, item: &str) -> Vec<(String, String)> {
    complaints(&expand(kind, args.parse().unwrap(), item.parse().unwrap()))
}

/// The one error that is expected.
fn error(kind: Kind, args: &str, item: &str) -> (String, String) {
    let mut errors = errors(kind, args, item);
    assert_eq!(errors.len(), 1, "expected one error, got {errors:?}");
    errors.remove(0)
}

/// Finds every `::core::compile_error! { "message" }`. syn puts the span of the first token of what it stands at on the path
/// and that of the last token on the braces.
fn complaints(output: &TokenStream) -> Vec<(String, String)> {
    let tokens: Vec<TokenTree> = output.clone().into_iter().collect();
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let TokenTree::Ident(ident) = token else {
            continue;
        };
        if ident != "compile_error" {
            continue;
        }
        let TokenTree::Group(group) = &tokens[index + 2] else {
            panic!("compile_error! without an argument");
        };
        let message: syn::LitStr = syn::parse2(group.stream()).unwrap();
        let first = ident.span().source_text().unwrap_or_default();
        let last = group.span().source_text().unwrap_or_default();
        let place = if first == last {
            first
        } else {
            format!("{first} .. {last}")
        };
        found.push((message.value(), place));
    }
    found
}

const MAIN: &str = "async fn main() { work().await }";
const TEST: &str = "async fn works() { work().await }";

#[test]
fn main_uses_a_multi_thread_runtime() {
    let code = code(Kind::Main, "", MAIN);
    assert!(code.starts_with("fnmain(){"), "{code}");
    assert!(
        code.contains("::rt::runtime::Builder::new_multi_thread().enable_all().build().expect("),
        "{code}"
    );
    assert!(code.contains("work().await}"), "{code}");
    assert!(code.ends_with("runtime.block_on(future)}"), "{code}");
    assert!(!code.contains("test]"), "{code}");
}

#[test]
fn test_uses_a_current_thread_runtime_and_adds_test() {
    let code = code(Kind::Test, "", TEST);
    assert!(
        code.starts_with("#[::core::prelude::v1::test]fnworks(){"),
        "{code}"
    );
    assert!(
        code.contains("::rt::runtime::Builder::new_current_thread().enable_all().build()"),
        "{code}"
    );
    assert!(
        code.contains("dyn::core::future::Future<Output=()>"),
        "{code}"
    );
}

#[test]
fn options_reach_the_builder() {
    let threads = code(
        Kind::Test,
        r#"flavor = "multi_thread", worker_threads = 3"#,
        TEST,
    );
    assert!(
        threads.contains("new_multi_thread().enable_all().worker_threads(3usize).build()"),
        "{threads}"
    );
    let paused = code(
        Kind::Main,
        r#"flavor = "current_thread", start_paused = true,"#,
        MAIN,
    );
    assert!(
        paused.contains("new_current_thread().enable_all().start_paused(true).build()"),
        "{paused}"
    );
    let running = code(Kind::Main, "start_paused = false", MAIN);
    assert!(
        running.contains("new_multi_thread().enable_all().build()"),
        "{running}"
    );
}

#[test]
fn name_of_the_runtime() {
    let named = code(Kind::Main, r#"name = "web""#, MAIN);
    assert!(
        named.contains(r#".enable_all().name("web").build()"#),
        "{named}"
    );
    let (message, place) = error(Kind::Main, "name = web", MAIN);
    assert_eq!(message, "`name` is a string: `name = \"server\"`");
    assert_eq!(place, "web");
}

#[test]
fn crate_is_a_string_or_a_path() {
    for args in [r#"crate = "other::rt""#, "crate = other::rt"] {
        let code = code(Kind::Main, args, MAIN);
        assert!(code.contains("other::rt::runtime::Builder"), "{code}");
        assert!(
            !code.contains("::rt::runtime::Builder::") || code.contains("other::rt::"),
            "{code}"
        );
    }
    let own = code(Kind::Main, r#"crate = "crate""#, MAIN);
    assert!(own.contains("=crate::runtime::Builder"), "{own}");
}

#[test]
fn attributes_visibility_generics_and_output_stay() {
    let code = code(
        Kind::Main,
        "",
        "#[inline] pub(crate) async fn run<T: Clone>(value: &T) -> Result<T, E> { #![expect(unused)] Ok(value.clone()) }",
    );
    assert!(
        code.starts_with(
            "#[inline]pub(crate)fnrun<T:Clone>(value:&T)->Result<T,E>{#![expect(unused)]"
        ),
        "{code}"
    );
    assert!(code.contains("Option::None::<Result<T,E>>"), "{code}");
}

#[test]
fn outputs_that_cannot_be_named_get_no_hint() {
    for output in ["!", "impl Iterator<Item = u32>", "Box<[impl Copy]>"] {
        let code = code(
            Kind::Test,
            "",
            &format!("async fn f() -> {output} {{ todo!() }}"),
        );
        assert!(!code.contains("None::<"), "{code}");
        assert!(code.ends_with("runtime.block_on(future)}"), "{code}");
        assert!(!code.contains("dyn"), "{code}");
    }
}

#[test]
fn a_half_written_body_is_passed_on() {
    let code = code(
        Kind::Main,
        "",
        "async fn main() { let x = rt::spawn(y); foo. }",
    );
    assert!(code.contains("letx=rt::spawn(y);foo.}"), "{code}");
}

#[test]
fn not_async() {
    let (message, place) = error(Kind::Main, "", "fn main() {}");
    assert_eq!(
        message,
        "`#[rt::main]` goes on an async function: `async fn main() { .. }`"
    );
    assert_eq!(place, "fn");
    let (message, place) = error(Kind::Test, "", "pub fn t() {}");
    assert_eq!(
        message,
        "`#[rt::test]` goes on an async function: `async fn name_of_the_test() { .. }`"
    );
    assert_eq!(place, "fn");
}

#[test]
fn not_a_function() {
    let (message, place) = error(Kind::Main, "", "struct Main;");
    assert_eq!(
        message,
        "`#[rt::main]` goes on an async function: `async fn main() { .. }`"
    );
    assert_eq!(place, "struct");
    let output = expand(
        Kind::Main,
        TokenStream::new(),
        "struct Main;".parse().unwrap(),
    );
    assert!(
        output.to_string().ends_with("struct Main ;"),
        "the item is lost"
    );
}

#[test]
fn wrong_flavor() {
    let (message, place) = error(Kind::Main, r#"flavor = "threaded""#, MAIN);
    assert_eq!(
        message,
        r#"there is no flavor `threaded`; it is `"multi_thread"` or `"current_thread"`"#
    );
    assert_eq!(place, r#""threaded""#);
    let (message, place) = error(Kind::Main, "flavor = multi_thread", MAIN);
    assert_eq!(
        message,
        r#"`flavor` is a string: `"multi_thread"` or `"current_thread"`"#
    );
    assert_eq!(place, "multi_thread");
}

#[test]
fn worker_threads_without_workers() {
    let (message, place) = error(
        Kind::Main,
        r#"worker_threads = 2, flavor = "current_thread""#,
        MAIN,
    );
    assert_eq!(
        message,
        "`worker_threads` needs `flavor = \"multi_thread\"`: the flavor `current_thread` has no worker threads"
    );
    assert_eq!(place, "worker_threads .. 2");
    let (message, _) = error(Kind::Test, "worker_threads = 2", TEST);
    assert!(
        message.contains(
            "the flavor `current_thread`, which `#[rt::test]` uses unless told otherwise, has no"
        ) || message.contains("which `#[rt::test]` uses unless told otherwise has no"),
        "{message}"
    );
}

#[test]
fn worker_threads_that_are_no_count() {
    let (message, place) = error(Kind::Main, "worker_threads = 0", MAIN);
    assert_eq!(
        message,
        "`worker_threads` must be at least 1; for a runtime without worker threads write `flavor = \"current_thread\"`"
    );
    assert_eq!(place, "0");
    let (message, place) = error(Kind::Main, r#"worker_threads = "2""#, MAIN);
    assert_eq!(
        message,
        "`worker_threads` is a whole number, without quotes: `worker_threads = 2`"
    );
    assert_eq!(place, r#""2""#);
    let (message, place) = error(Kind::Main, "worker_threads = 99999999999999999999999", MAIN);
    assert!(
        message.starts_with("`worker_threads = 99999999999999999999999` cannot be used: "),
        "{message}"
    );
    assert_eq!(place, "99999999999999999999999");
}

#[test]
fn start_paused_with_workers() {
    let (message, place) = error(
        Kind::Test,
        r#"flavor = "multi_thread", start_paused = true"#,
        TEST,
    );
    assert!(
        message.starts_with("`start_paused` needs `flavor = \"current_thread\"`: with the flavor `multi_thread` nobody"),
        "{message}"
    );
    assert_eq!(place, "start_paused .. true");
    let (message, _) = error(Kind::Main, "start_paused = true", MAIN);
    assert!(
        message.contains("which `#[rt::main]` uses unless told otherwise"),
        "{message}"
    );
    let (message, place) = error(Kind::Test, "start_paused = 1", TEST);
    assert_eq!(message, "`start_paused` is `true` or `false`");
    assert_eq!(place, "1");
}

#[test]
fn unknown_options() {
    let (message, place) = error(Kind::Main, "colour = 1", MAIN);
    assert_eq!(
        message,
        "`#[rt::main]` has no option `colour`, it knows `flavor`, `worker_threads`, `start_paused`, `name` and `crate`"
    );
    assert_eq!(place, "colour");
    let (message, _) = error(Kind::Main, r#"flavour = "multi_thread""#, MAIN);
    assert!(message.ends_with("; write `flavor`"), "{message}");
    let (message, _) = error(Kind::Main, "a::b = 2", MAIN);
    assert!(message.contains("no option `a::b`"), "{message}");
}

#[test]
fn options_without_a_value() {
    let (message, place) = error(Kind::Main, "flavor", MAIN);
    assert_eq!(
        message,
        "the option `flavor` needs a value: `flavor = \"multi_thread\"`"
    );
    assert_eq!(place, "flavor");
    let (message, _) = error(Kind::Main, "worker_threads(4)", MAIN);
    assert_eq!(
        message,
        "the option `worker_threads` needs a value: `worker_threads = 2`"
    );
    let (message, place) = error(Kind::Main, "4", MAIN);
    assert!(
        message.contains("options are written `name = value`, separated by commas"),
        "{message}"
    );
    assert_eq!(place, "4");
}

#[test]
fn options_given_twice() {
    let (message, place) = error(Kind::Main, "worker_threads = 2, worker_threads = 3", MAIN);
    assert_eq!(message, "the option `worker_threads` is given twice");
    assert_eq!(place, "worker_threads .. 3");
}

#[test]
fn bad_crate() {
    let (message, place) = error(Kind::Main, r#"crate = "a b""#, MAIN);
    assert_eq!(
        message,
        "`crate` is the path of the crate `rt`: `crate = \"path::to::rt\"`"
    );
    assert_eq!(place, r#""a b""#);
}

#[test]
fn arguments_of_main() {
    let (message, place) = error(Kind::Main, "", "async fn main(args: Vec<String>, n: u8) {}");
    assert_eq!(
        message,
        "`main` takes no arguments; the command line is in `std::env::args()`"
    );
    assert_eq!(place, "args .. u8");
    // Any other function is called by its author.
    code(Kind::Main, "", "async fn run(args: Vec<String>) {}");
}

#[test]
fn a_test_that_is_one_already() {
    for attribute in ["#[test]", "#[core::prelude::v1::test]", "#[rt::test]"] {
        let (message, place) = error(Kind::Test, "", &format!("{attribute} async fn t() {{}}"));
        assert!(
            message.starts_with("this function is a test already"),
            "{message}"
        );
        assert_eq!(
            place,
            "# .. [".to_owned() + attribute.trim_start_matches("#["),
            "{attribute}"
        );
    }
    code(Kind::Test, "", "#[ignore] #[should_panic] async fn t() {}");
    // The attribute is not added again, so that no second message follows.
    let output = expand(
        Kind::Test,
        TokenStream::new(),
        "#[test] async fn t() {}".parse().unwrap(),
    );
    assert!(!output.to_string().contains("prelude"), "{output}");
}

#[test]
fn all_errors_at_once_and_the_function_stays() {
    let args = r#"flavor = "x", worker_threads = 0, colour"#;
    assert_eq!(errors(Kind::Main, args, "fn main() { body() }").len(), 4);
    let output = expand(Kind::Main, args.parse().unwrap(), MAIN.parse().unwrap()).to_string();
    assert!(
        output.contains("work () . await") || output.contains("work().await"),
        "{output}"
    );
}
