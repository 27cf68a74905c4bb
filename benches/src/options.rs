//! The command line of `compare`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::peer::PeerId;

/// What to measure, and how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// Short samples and few rounds: the whole table within two minutes.
    pub quick: bool,
    /// Where to write every sample as CSV.
    pub csv: Option<PathBuf>,
    /// Numbers of workers to measure with.
    pub workers: Vec<usize>,
    /// Peers to measure.
    pub peers: Vec<PeerId>,
    /// Samples of each peer in a cell, instead of what each row thinks right.
    pub rounds: Option<usize>,
    /// Rows whose name contains one of these; all if empty.
    pub filters: Vec<String>,
    /// Only print the names of the rows.
    pub list: bool,
    started: Instant,
}

/// A quick table takes about 80 s on an idle machine of two cores. On a busy one it saves rounds after this time,
const SAVE_AFTER: Duration = Duration::from_secs(60);
/// and rows after this, so as to end within two minutes.
const SKIP_AFTER: Duration = Duration::from_secs(105);

impl Options {
    /// Reads the arguments after the program's name.
    ///
    /// # Errors
    ///
    /// Says which argument is wrong and which there are.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            quick: false,
            csv: None,
            workers: vec![1, 2],
            peers: PeerId::ALL.to_vec(),
            rounds: None,
            filters: Vec::new(),
            list: false,
            started: Instant::now(),
        };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value = || {
                arguments
                    .next()
                    .ok_or_else(|| format!("{argument} needs a value after it"))
            };
            match argument.as_str() {
                // What `cargo bench` adds of its own accord.
                "--bench" => {}
                "--quick" => options.quick = true,
                "--list" => options.list = true,
                "--csv" => options.csv = Some(value()?.into()),
                "--workers" => {
                    options.workers = list(&value()?, |word| positive(word, "--workers"))?
                }
                "--rounds" => options.rounds = Some(positive(&value()?, "--rounds")?),
                "--peers" => options.peers = list(&value()?, str::parse)?,
                flag if flag.starts_with('-') => {
                    return Err(format!(
                        "unknown option {flag}; there are --quick, --csv FILE, --workers 1,2, --peers rt,tokio,smol,by-hand,flume, \
                         --rounds N, --list, and words that row names contain"
                    ));
                }
                _ => options.filters.push(argument),
            }
        }
        Ok(options)
    }

    /// How many samples each peer gives in a cell: what the user said, else `quick` or `full`.
    #[must_use]
    pub fn rounds(&self, quick: usize, full: usize) -> usize {
        match self.rounds {
            Some(rounds) => rounds,
            None if !self.quick => full,
            None if self.started.elapsed() > SAVE_AFTER => 1,
            None => quick,
        }
    }

    /// Whether a quick table has used up its time.
    #[must_use]
    pub fn out_of_time(&self) -> bool {
        self.quick && self.started.elapsed() > SKIP_AFTER
    }

    /// Whether a row of this name is wanted.
    #[must_use]
    pub fn wants(&self, row: &str) -> bool {
        self.filters.is_empty()
            || self
                .filters
                .iter()
                .any(|filter| row.contains(filter.as_str()))
    }
}

fn list<T>(words: &str, each: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    words.split(',').map(|word| each(word.trim())).collect()
}

fn positive(word: &str, option: &str) -> Result<usize, String> {
    match word.parse() {
        Ok(number @ 1..=1024) => Ok(number),
        _ => Err(format!(
            "{option} takes numbers from 1 to 1024, not {word:?}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_and_filters_may_stand_in_any_order() {
        let options = parse("echo --bench --workers 1,4 --quick http").expect("parses");
        assert!(options.quick);
        assert_eq!(options.workers, [1, 4]);
        assert!(options.wants("echo 64 B") && options.wants("http") && !options.wants("yield"));
    }

    #[test]
    fn wrong_values_are_named() {
        assert!(parse("--workers 0").unwrap_err().contains("\"0\""));
        assert!(
            parse("--peers async-std")
                .unwrap_err()
                .contains("async-std")
        );
        assert!(parse("--fast").unwrap_err().contains("--fast"));
        assert!(parse("--csv").unwrap_err().contains("--csv"));
    }
}
