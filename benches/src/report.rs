//! Interleaved samples, their medians, the table and the CSV.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};

use crate::child::ChildError;
use crate::goal::Goal;
use crate::options::Options;
use crate::peer::PeerId;

/// One number that a sample gives.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// What it is: `time`, `CPU`, `p99`.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// What `rt` is meant to reach; empty if the number is only shown.
    pub goals: &'static [Goal],
}

/// All samples of one metric in one place of the table.
#[derive(Debug)]
pub struct Cell {
    /// Name of the row.
    pub row: String,
    /// Number of workers.
    pub workers: usize,
    /// What was measured.
    pub metric: Metric,
    samples: Vec<(PeerId, Vec<f64>)>,
}

impl Cell {
    /// The median of a peer's samples.
    #[must_use]
    pub fn median(&self, peer: PeerId) -> Option<f64> {
        let (_, samples) = self.samples.iter().find(|(of, _)| *of == peer)?;
        median(samples)
    }

    /// The ratio of two peers' medians.
    #[must_use]
    pub fn ratio(&self, peer: PeerId, to: PeerId) -> Option<f64> {
        Some(self.median(peer)? / self.median(to)?).filter(|ratio| ratio.is_finite())
    }
}

fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle).copied()?;
    Some(if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[middle - 1], upper)
    } else {
        upper
    })
}

/// Collects cells and prints each as soon as it is complete.
#[derive(Debug)]
pub struct Report {
    cells: Vec<Cell>,
    csv: Option<BufWriter<File>>,
    peers: Vec<PeerId>,
    reached: usize,
    missed: usize,
    failures: Vec<String>,
}

impl Report {
    /// An empty table; prints its head.
    ///
    /// # Errors
    ///
    /// If the CSV file cannot be written.
    pub fn new(options: &Options) -> io::Result<Self> {
        let mut csv = options
            .csv
            .as_ref()
            .map(File::create)
            .transpose()?
            .map(BufWriter::new);
        if let Some(file) = &mut csv {
            writeln!(file, "row,workers,metric,unit,peer,round,value")?;
        }
        println!("{}", head());
        Ok(Self {
            cells: Vec::new(),
            csv,
            peers: options.peers.clone(),
            reached: 0,
            missed: 0,
            failures: Vec::new(),
        })
    }

    /// Takes `rounds` samples of each of `peers` in turn, and prints one line a metric.
    pub fn measure(
        &mut self,
        row: &str,
        workers: usize,
        peers: &[PeerId],
        rounds: usize,
        metrics: &[Metric],
        mut sample: impl FnMut(PeerId) -> Result<Vec<f64>, ChildError>,
    ) {
        let peers: Vec<PeerId> = peers
            .iter()
            .copied()
            .filter(|peer| self.peers.contains(peer))
            .collect();
        let mut cells: Vec<Cell> = metrics
            .iter()
            .map(|metric| Cell {
                row: row.to_owned(),
                workers,
                metric: *metric,
                samples: peers.iter().map(|peer| (*peer, Vec::new())).collect(),
            })
            .collect();
        for _ in 0..rounds {
            for (place, peer) in peers.iter().enumerate() {
                match sample(*peer) {
                    Ok(numbers) if numbers.len() == metrics.len() => {
                        for (cell, number) in cells.iter_mut().zip(numbers) {
                            cell.samples[place].1.push(number);
                        }
                    }
                    Ok(numbers) => self.fail(
                        row,
                        format!(
                            "{peer} gave {} numbers, not {}",
                            numbers.len(),
                            metrics.len()
                        ),
                    ),
                    Err(error) => self.fail(row, format!("{peer}: {error}")),
                }
            }
        }
        for cell in cells {
            self.finish(cell);
        }
    }

    /// Whether to measure a row now: it is wanted, and if the table is a quick one, there is time left (or a note says so).
    pub fn takes(&mut self, options: &Options, row: &str) -> bool {
        if !options.wants(row) {
            return false;
        }
        let late = options.out_of_time();
        if late {
            self.fail(
                row,
                "left out, the quick table's time is over; name the row to measure it",
            );
        }
        !late
    }

    /// Says why a row, or a sample of it, is missing; printed again at the end.
    pub fn fail(&mut self, row: &str, why: impl std::fmt::Display) {
        let line = format!("{row}: {why}");
        if !self.failures.contains(&line) {
            self.failures.push(line);
        }
    }

    fn finish(&mut self, cell: Cell) {
        let verdicts: Vec<Option<bool>> = cell
            .metric
            .goals
            .iter()
            .map(|goal| goal.reached(|peer| cell.median(peer)))
            .collect();
        let verdict = if verdicts.contains(&Some(false)) {
            self.missed += 1;
            "MISS"
        } else if verdicts.is_empty() || verdicts.contains(&None) {
            ""
        } else {
            self.reached += 1;
            "ok"
        };
        println!("{}", line(&cell, verdict));
        if let Some(file) = &mut self.csv
            && let Err(error) = write_csv(file, &cell)
        {
            self.failures.push(format!("CSV: {error}"));
            self.csv = None;
        }
        self.cells.push(cell);
    }

    /// Prints what concerns the table as a whole.
    pub fn close(mut self) {
        if let Some(mean) = self.mean_ratio("echo", "CPU", PeerId::Rt, PeerId::ByHand) {
            let verdict = if mean <= LOOP_GOAL { "ok" } else { "MISS" };
            println!(
                "\necho, mean of rt/by-hand CPU over all cells: {mean:.2} (reach {LOOP_GOAL}) {verdict}"
            );
            if mean <= LOOP_GOAL {
                self.reached += 1;
            } else {
                self.missed += 1;
            }
        }
        for failure in &self.failures {
            println!("note: {failure}");
        }
        println!(
            "{} reached, {} missed, {} notes",
            self.reached,
            self.missed,
            self.failures.len()
        );
        if let Some(file) = &mut self.csv
            && let Err(error) = file.flush()
        {
            println!("note: CSV not written: {error}");
        }
    }

    fn mean_ratio(&self, row: &str, metric: &str, of: PeerId, to: PeerId) -> Option<f64> {
        let ratios: Vec<f64> = self
            .cells
            .iter()
            .filter(|cell| cell.row.starts_with(row) && cell.metric.name == metric)
            .filter_map(|cell| cell.ratio(of, to))
            .collect();
        (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64)
    }
}

/// A single cell of the echo rows may be above the hand-written loop, their mean not by more than this.
const LOOP_GOAL: f64 = 1.08;

fn head() -> String {
    format!(
        "{:<27} {:>2} {:<8} {:<5} {:>9} {:>9} {:>9} {:>9}  {:>8} {:>8} {:>8}  {:<32}",
        "row",
        "w",
        "metric",
        "unit",
        "rt",
        "tokio",
        "smol",
        "by-hand",
        "rt/tokio",
        "rt/smol",
        "rt/hand",
        "reach"
    )
}

fn line(cell: &Cell, verdict: &str) -> String {
    let mut line = format!(
        "{:<27} {:>2} {:<8} {:<5}",
        cell.row, cell.workers, cell.metric.name, cell.metric.unit
    );
    for peer in PeerId::ALL {
        let _ = write!(
            line,
            " {:>9}",
            cell.median(peer).map_or("-".to_owned(), figure)
        );
    }
    line.push(' ');
    for peer in [PeerId::Tokio, PeerId::Smol, PeerId::ByHand] {
        let ratio = cell.ratio(PeerId::Rt, peer);
        let _ = write!(
            line,
            " {:>8}",
            ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"))
        );
    }
    let goals: Vec<String> = cell.metric.goals.iter().map(ToString::to_string).collect();
    let _ = write!(line, "  {:<32} {verdict}", goals.join(", "));
    line.truncate(line.trim_end().len());
    line
}

/// A number with about four digits that say something.
#[must_use]
pub fn figure(number: f64) -> String {
    let digits = match number.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    format!("{number:.digits$}")
}

fn write_csv(file: &mut impl io::Write, cell: &Cell) -> io::Result<()> {
    for (peer, samples) in &cell.samples {
        for (round, sample) in samples.iter().enumerate() {
            let Metric { name, unit, .. } = cell.metric;
            writeln!(
                file,
                "\"{}\",{},{name},{unit},{peer},{round},{sample}",
                cell.row, cell.workers
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_even_and_odd_counts() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
