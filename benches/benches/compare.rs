//! The comparison table: `cargo bench -p rt-benches -- [--quick] [--csv FILE] [--workers 1,2] [word...]`.
//!
//! What it measures, how, and where each row is described: the head of the crate.

use std::process::ExitCode;

use rt_benches::options::Options;
use rt_benches::report::Report;
use rt_benches::{roles, rows, usage};

fn main() -> ExitCode {
    roles::play_if_child();
    let options = match Options::parse(std::env::args().skip(1)) {
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
