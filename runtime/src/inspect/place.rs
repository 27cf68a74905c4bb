//! Where the sockets are: `$XDG_RUNTIME_DIR/rt/PID.sock`, or `/tmp/rt-UID/PID.sock`.
//!
//! The folder has to belong to its user and to be closed to everyone else; it is made so, and one that is not is not used.
//! Another user may have made `/tmp/rt-UID` first: then there is no socket, rather than one that this user controls.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, test_kill_process};

/// The user of this process.
#[must_use]
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The folders in which a process of this user may have its socket, the first choice first.
#[must_use]
pub fn folders(user: u32) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if user == self::user()
        && let Some(dir) = std::env::var_os("XDG_RUNTIME_DIR")
        && Path::new(&dir).is_absolute()
    {
        folders.push(Path::new(&dir).join("rt"));
    }
    let usual = PathBuf::from(format!("/run/user/{user}/rt"));
    if !folders.contains(&usual) {
        folders.push(usual);
    }
    folders.push(PathBuf::from(format!("/tmp/rt-{user}")));
    folders
}

/// The socket of a process in one of these folders.
#[must_use]
pub fn socket(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("{pid}.sock"))
}

/// Whether there is such a process, whoever it belongs to.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return false;
    };
    test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
}

/// Makes a folder that is this user's alone, or finds that it is.
///
/// # Errors
/// If it cannot be made, or is not.
pub(super) fn make(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(folder)?;
    if !found.is_dir() || found.uid() != user() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("'{}' is not a folder of user {}", folder.display(), user()),
        ));
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Whether nobody listens there any more. Numbers of processes tell less: containers that share the folder have numbers
/// of their own, and there may be a process of the same number in each.
pub(super) fn is_abandoned(socket: &Path) -> bool {
    // Not to wait for one that is stopped, and has as many callers as it takes.
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let called = SocketAddrUnix::new(socket).and_then(|address| {
        let caller = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&caller, &address)
    });
    called == Err(rustix::io::Errno::CONNREFUSED)
}

/// Takes away the sockets of processes that are gone.
pub(super) fn clean(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let pid = path
            .file_name()
            .and_then(|name| name.to_str()?.strip_suffix(".sock")?.parse().ok());
        if pid.is_some_and(|pid| !is_alive(pid)) && is_abandoned(&path) {
            let _ = fs::remove_file(path);
        }
    }
}
