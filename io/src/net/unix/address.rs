//! Addresses of the Unix domain: paths, and names in the abstract namespace.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::SocketAddr;
use std::path::Path;

use rustix::net::SocketAddrUnix;

/// The address that a path stands for; one that begins with a NUL byte is an abstract name.
pub(super) fn of_path(path: &Path) -> io::Result<SocketAddr> {
    match path.as_os_str().as_bytes() {
        [0, name @ ..] => of_abstract_name(name),
        _ => SocketAddr::from_pathname(path).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!(
                    "{} cannot be the address of a Unix socket: {error}",
                    path.display()
                ),
            )
        }),
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn of_abstract_name(name: &[u8]) -> io::Result<SocketAddr> {
    #[cfg(target_os = "android")]
    use std::os::android::net::SocketAddrExt;
    #[cfg(target_os = "linux")]
    use std::os::linux::net::SocketAddrExt;

    SocketAddr::from_abstract_name(name)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn of_abstract_name(name: &[u8]) -> io::Result<SocketAddr> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        format!(
            "this system has no abstract Unix socket names (asked for \\0{}): use a path",
            name.escape_ascii()
        ),
    ))
}

/// The address as the system calls take it.
pub(super) fn raw(addr: &SocketAddr) -> io::Result<SocketAddrUnix> {
    if let Some(path) = addr.as_pathname() {
        return Ok(SocketAddrUnix::new(path)?);
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        #[cfg(target_os = "android")]
        use std::os::android::net::SocketAddrExt;
        #[cfg(target_os = "linux")]
        use std::os::linux::net::SocketAddrExt;

        if let Some(name) = addr.as_abstract_name() {
            return Ok(SocketAddrUnix::new_abstract_name(name)?);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "an unnamed Unix socket address leads nowhere: give a path or an abstract name",
    ))
}
