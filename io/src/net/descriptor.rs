//! How sockets and pipes give out their descriptor, and how sockets become those of the standard library: written once.
//!
//! The types keep their `Registered` in a field called `io`.

/// `AsFd` and `AsRawFd`.
macro_rules! descriptor {
    ($($type:ty),*) => {$(
        impl std::os::fd::AsFd for $type {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.io.get_ref().as_fd()
            }
        }

        impl std::os::fd::AsRawFd for $type {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                self.io.get_ref().as_raw_fd()
            }
        }
    )*};
}

/// The same, and conversions from the standard library's socket and to a bare descriptor.
macro_rules! like_std {
    ($socket:ident, $std:ty) => {
        $crate::net::descriptor::descriptor!($socket);

        impl TryFrom<$std> for $socket {
            type Error = std::io::Error;

            #[doc = concat!("Same as [`", stringify!($socket), "::from_std`].")]
            fn try_from(socket: $std) -> std::io::Result<Self> {
                Self::from_std(socket)
            }
        }

        impl From<$socket> for std::os::fd::OwnedFd {
            /// Deregisters; the descriptor stays non-blocking.
            fn from(socket: $socket) -> std::os::fd::OwnedFd {
                socket.io.into_inner().into()
            }
        }
    };
}

pub(crate) use {descriptor, like_std};
