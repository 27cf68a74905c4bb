//! The file: the JSON object format of Chrome's trace events.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process;
use std::sync::Arc;

use super::{Event, Ring, What, lock};

pub(super) fn write(path: &Path, rings: &[Arc<Ring>]) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    write_all(&mut file, rings)?;
    file.flush()
}

fn write_all(file: &mut impl Write, rings: &[Arc<Ring>]) -> io::Result<()> {
    let pid = process::id();
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(Path::file_name);
    let program = program.map_or("rt".into(), |name| name.to_string_lossy());
    write!(
        file,
        r#"{{"displayTimeUnit":"ns","traceEvents":[{{"ph":"M","pid":{pid},"name":"process_name","args":{{"name":{}}}}}"#,
        Text(&program)
    )?;
    for ring in rings {
        // Copied, so that the thread does not wait for the disk.
        let (events, dropped) = {
            let events = lock(&ring.events);
            (events.last.clone(), events.dropped)
        };
        let tid = ring.number;
        write!(
            file,
            ",\n{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"thread_name\",\"args\":{{\"name\":{},\"dropped events\":{dropped}}}}}",
            Text(&ring.name)
        )?;
        for event in events {
            write_event(file, pid, tid, &event)?;
        }
    }
    file.write_all(b"]}\n")
}

fn write_event(file: &mut impl Write, pid: u32, tid: u64, event: &Event) -> io::Result<()> {
    write!(
        file,
        ",\n{{\"pid\":{pid},\"tid\":{tid},\"ts\":{}",
        Micros(event.at)
    )?;
    if event.took == 0 {
        file.write_all(b",\"ph\":\"i\",\"s\":\"t\"")?;
    } else {
        write!(file, ",\"ph\":\"X\",\"dur\":{}", Micros(event.took))?;
    }
    match &event.what {
        What::Poll { id, name, site } => {
            match name {
                Some(name) => write!(file, ",\"name\":{}", Text(name))?,
                None => write!(file, ",\"name\":\"task {id}\"")?,
            }
            let site = site.to_string();
            write!(
                file,
                ",\"cat\":\"poll\",\"args\":{{\"task\":{id},\"spawned at\":{}}}}}",
                Text(&site)
            )
        }
        What::Root(site) => {
            let site = site.to_string();
            write!(
                file,
                ",\"name\":\"block_on\",\"cat\":\"poll\",\"args\":{{\"at\":{}}}}}",
                Text(&site)
            )
        }
        What::Park => file.write_all(b",\"name\":\"parked\",\"cat\":\"park\"}"),
        What::Steal => file.write_all(b",\"name\":\"steal\",\"cat\":\"scheduler\"}"),
        What::Help { seat } => write!(
            file,
            ",\"name\":\"help\",\"cat\":\"scheduler\",\"args\":{{\"worker\":{seat}}}}}"
        ),
        What::HandOff => file.write_all(b",\"name\":\"hand-off\",\"cat\":\"scheduler\"}"),
    }
}

/// Nanoseconds as microseconds with three digits behind the point.
struct Micros(u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A string of JSON.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                c if c < ' ' => write!(f, "\\u{:04x}", u32::from(c))?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_and_times_exact() {
        assert_eq!(Text("a\"b\\c\nd µ").to_string(), r#""a\"b\\c\u000ad µ""#);
        assert_eq!(Micros(1_234_005).to_string(), "1234.005");
    }
}
