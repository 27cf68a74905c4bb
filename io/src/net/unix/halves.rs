//! The halves of a Unix stream: borrowed for use in one task, or owned together for use in two.

use std::error::Error;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::unix::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::UnixStream;
use crate::Interest;
use crate::driver::{Readable, WhenReady, Writable};
use crate::net::halves::halves;

halves!(UnixStream, SocketAddr, "Unix");
