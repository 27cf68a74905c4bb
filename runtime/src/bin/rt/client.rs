//! Finds the socket of a process, and asks.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rt::inspect::place;
use rt::inspect::wire::{Answer, Question, VERSION};

/// Asks a process. The errors say what is wrong with it, and what would help.
pub(crate) fn ask(pid: u32, question: Question) -> Result<Answer, String> {
    let stream = connect(pid)?;
    talk(stream, question).map_err(|error| format!("process {pid}: {error}"))
}

fn connect(pid: u32) -> Result<UnixStream, String> {
    if !place::is_alive(pid) {
        return Err(format!("there is no process {pid}"));
    }
    let me = place::user();
    // Where there is no `/proc`, a process of another user looks like one without a socket.
    let owner = fs::metadata(format!("/proc/{pid}")).map_or(me, |found| found.uid());
    if owner != me && me != 0 {
        return Err(format!(
            "process {pid} is not yours: it belongs to user {owner}, and you are user {me}"
        ));
    }
    let mut refused = None;
    for folder in place::folders(owner) {
        match UnixStream::connect(place::socket(&folder, pid)) {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => refused = Some(error),
        }
    }
    Err(match refused {
        Some(error) => format!("process {pid} does not answer: {error}"),
        None => format!(
            "process {pid} does not listen: it is no program with an rt runtime, or was built without the feature \
             `inspect` of the crate `rt`, or runs with RT_INSPECT=0, another XDG_RUNTIME_DIR, or in a container"
        ),
    })
}

fn talk(mut stream: UnixStream, question: Question) -> Result<Answer, String> {
    let failed = |error: io::Error| format!("it does not answer: {error}");
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .map_err(failed)?;
    stream
        .write_all(question.line().as_bytes())
        .map_err(failed)?;
    let mut text = String::new();
    stream.read_to_string(&mut text).map_err(failed)?;
    let (head, body) = text.split_once('\n').unwrap_or((&text, ""));
    let ok = format!("rt {VERSION} ok");
    if head != ok {
        return Err(match head.split_once(" error ") {
            Some((_, why)) => why.to_owned(),
            None => format!("it answers '{head}' instead of '{ok}'"),
        });
    }
    serde_json::from_str(body).map_err(|error| format!("its answer is not understood: {error}"))
}
