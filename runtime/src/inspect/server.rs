//! The thread that answers.

use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use super::{place, runtimes, wire};

/// How long a client may take to ask, or to take its answer, piece by piece.
const PATIENCE: Duration = Duration::from_secs(1);

/// The longest question.
const LINE: u64 = 128;

/// A socket, and the thread behind it.
pub(super) struct Server {
    path: PathBuf,
    stopped: Arc<AtomicBool>,
}

impl Server {
    pub(super) fn start() -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for folder in place::folders(place::user()) {
            match bind(&folder) {
                Ok((listener, path)) => {
                    let stopped = Arc::new(AtomicBool::new(false));
                    let stop = stopped.clone();
                    let thread = thread::Builder::new().name("rt-inspect".to_owned());
                    thread.spawn(move || serve(&listener, &stop))?;
                    return Ok(Self { path, stopped });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the socket away, and lets the thread end.
    pub(super) fn stop(self) {
        self.stopped.store(true, SeqCst);
        // Out of `accept`.
        let _ = UnixStream::connect(&self.path);
        let _ = fs::remove_file(&self.path);
    }
}

fn bind(folder: &Path) -> io::Result<(UnixListener, PathBuf)> {
    place::make(folder)?;
    place::clean(folder);
    let path = place::socket(folder, process::id());
    // Of a process that had the same number. One that has it now, in a container beside this one, keeps its socket: then
    // the next line fails.
    if place::is_abandoned(&path) {
        fs::remove_file(&path)?;
    }
    let listener = UnixListener::bind(&path)?;
    // Nobody else gets into the folder meanwhile.
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    Ok((listener, path))
}

fn serve(listener: &UnixListener, stopped: &AtomicBool) {
    loop {
        let accepted = listener.accept();
        if stopped.load(SeqCst) {
            return;
        }
        match accepted {
            // A client that goes away, or does not speak, is its own trouble.
            Ok((stream, _)) => drop(answer(&stream)),
            // Out of descriptors: others will be closed.
            Err(_) => thread::sleep(PATIENCE / 10),
        }
    }
}

fn answer(stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut question = String::new();
    BufReader::new(stream.take(LINE)).read_line(&mut question)?;
    let question = wire::Question::parse(&question);
    let (head, body) = match question {
        Ok(question) => match serde_json::to_vec(&wire::Answer::new(question, &runtimes())) {
            Ok(body) => ("ok".to_owned(), body),
            Err(error) => (format!("error {error}"), Vec::new()),
        },
        Err(why) => (format!("error {why}"), Vec::new()),
    };
    let mut stream = stream;
    stream.write_all(format!("rt {} {head}\n", wire::VERSION).as_bytes())?;
    stream.write_all(&body)
}
