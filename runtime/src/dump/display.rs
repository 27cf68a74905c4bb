//! A dump for people.

use std::fmt;

use super::{Dump, TaskDump};
use crate::runtime::metrics::Short;
use crate::task::Activity;

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "runtime '{}': {} workers, {} tasks",
            self.runtime,
            self.num_workers,
            self.tasks.len()
        )?;
        for (index, worker) in self.workers.iter().enumerate() {
            match index.checked_sub(self.num_workers) {
                None => write!(f, "  worker {index}: ")?,
                Some(guest) => write!(f, "  guest {guest}: ")?,
            }
            match worker.parked {
                Some(time) => writeln!(f, "asleep for {}", Short(time))?,
                None if worker.occupied => writeln!(
                    f,
                    "at work, {} tasks in its queue, {} turns so far",
                    worker.queue_depth, worker.turns
                )?,
                None => writeln!(f, "free")?,
            }
        }
        self.tasks.iter().try_for_each(|task| writeln!(f, "{task}"))
    }
}

impl fmt::Display for TaskDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  task {}", self.id)?;
        if let Some(name) = &self.name {
            write!(f, " '{name}'")?;
        }
        match (self.activity, self.waits_for, self.waits_since) {
            (Activity::Running, ..) => {
                f.write_str(" runs")?;
                if let Some(since) = self.runs_since {
                    write!(f, " for {}", Short(since))?;
                }
            }
            (Activity::Ready, ..) => f.write_str(" is ready to run")?,
            (Activity::Over, ..) => f.write_str(" is over")?,
            (Activity::Waiting, Some((kind, site)), Some(since)) => {
                write!(f, " waits in {kind:?} at {site} for {}", Short(since))?;
            }
            (Activity::Waiting, Some((kind, site)), None) => {
                write!(f, " waits in {kind:?} at {site}")?;
            }
            (Activity::Waiting, None, Some(since)) => write!(f, " waits for {}", Short(since))?,
            (Activity::Waiting, None, None) => f.write_str(" waits")?,
        }
        write!(f, "; spawned at {}", self.spawned_at)?;
        if let Some(parent) = self.spawned_by {
            write!(f, " by task {parent}")?;
        }
        if let Some(group) = self.group {
            write!(f, " in group {group}")?;
        }
        if let Some(joiner) = self.awaited_by {
            write!(f, ", awaited by task {joiner}")?;
        }
        write!(f, "; {} polls", self.polls)?;
        if let Some((total, longest)) = self.poll_time {
            write!(
                f,
                ", {} in all, {} the longest",
                Short(total),
                Short(longest)
            )?;
        }
        Ok(())
    }
}
