//! The comparison table: `cargo bench -p rt-benches -- [--quick] [--csv FILE] [--workers 1,2] [word...]`.
//!
//! What it measures, how, and where each row is described: the head of the crate.

use std::process::ExitCode;

use rt_benches::options::Options;
use rt_benches::report::Report;
use rt_benches::{roles, rows, usage};

fn main() -> ExitCode {
    roles::play_if_child();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Test runners start this program bare, or to list its tests, when asked for all targets: that is not the wish for
    // minutes of measuring. `cargo bench` adds `--bench`.
    if arguments.is_empty() || arguments.iter().any(|argument| argument == "--format") {
        eprintln!("nothing measured: cargo bench -p rt-benches -- --quick");
        return ExitCode::SUCCESS;
    }
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
    };
    if options.list {
        for name in rows::names() {
            println!("{name}");
        }
        return ExitCode::SUCCESS;
    }
    usage::raise_descriptor_limit();
    match Report::new(&options) {
        Ok(mut report) => {
            rows::measure(&options, &mut report);
            report.close();
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("the CSV file cannot be written: {error}");
            ExitCode::FAILURE
        }
    }
}
