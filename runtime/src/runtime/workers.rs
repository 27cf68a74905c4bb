//! How many workers a runtime has by default: the cores, cut to the quota of the control group; `RT_WORKER_THREADS`
//! overrides both.

use std::ffi::OsString;
use std::io;

/// More threads than this are a mistake.
pub(super) const MOST: usize = 32_768;

const VARIABLE: &str = "RT_WORKER_THREADS";

/// The number of workers when the builder was told none.
pub(super) fn default() -> io::Result<usize> {
    match std::env::var_os(VARIABLE) {
        Some(value) => parse(&value),
        // num_cpus heeds the affinity mask and the quota of the control group.
        None => Ok(num_cpus::get().max(1)),
    }
}

fn parse(value: &OsString) -> io::Result<usize> {
    let number = value
        .to_str()
        .and_then(|text| text.trim().parse::<usize>().ok());
    match number {
        Some(number) if (1..=MOST).contains(&number) => Ok(number),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "{VARIABLE} is {value:?}: it has to be a number of threads between 1 and {MOST}, or unset"
            ),
        )),
    }
}

/// Checks what the builder was told.
pub(super) fn check(number: usize) -> io::Result<usize> {
    if (1..=MOST).contains(&number) {
        return Ok(number);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!(
            "worker_threads is {number}: a multi-thread runtime has between 1 and {MOST} workers \
             (for none, use Builder::new_current_thread)"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_in_the_variable_is_an_error_that_names_it() {
        for value in ["0", "", "many", "-1", "1000000000", "2.5"] {
            let error = parse(&OsString::from(value)).expect_err(value).to_string();
            assert!(error.contains(VARIABLE) && error.contains(value), "{error}");
        }
        assert_eq!(parse(&OsString::from(" 3 ")).ok(), Some(3));
    }
}
