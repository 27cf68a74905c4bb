//! Options of UDP sockets.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use socket2::SockRef;

use super::UdpSocket;

/// Options: each has the errors of `getsockopt` or `setsockopt`.
impl UdpSocket {
    /// Whether messages may go to a broadcast address (`SO_BROADCAST`).
    ///
    /// # Errors
    /// That of the system.
    pub fn broadcast(&self) -> io::Result<bool> {
        self.io.get_ref().broadcast()
    }

    /// Allows messages to a broadcast address.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_broadcast(&self, on: bool) -> io::Result<()> {
        self.io.get_ref().set_broadcast(on)
    }

    /// Whether multicast messages come back to this host (`IP_MULTICAST_LOOP`).
    ///
    /// # Errors
    /// That of the system.
    pub fn multicast_loop_v4(&self) -> io::Result<bool> {
        self.io.get_ref().multicast_loop_v4()
    }

    /// Makes multicast messages come back to this host, or not.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_multicast_loop_v4(&self, on: bool) -> io::Result<()> {
        self.io.get_ref().set_multicast_loop_v4(on)
    }

    /// Time-to-live of multicast messages (`IP_MULTICAST_TTL`).
    ///
    /// # Errors
    /// That of the system.
    pub fn multicast_ttl_v4(&self) -> io::Result<u32> {
        self.io.get_ref().multicast_ttl_v4()
    }

    /// Sets the time-to-live of multicast messages.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_multicast_ttl_v4(&self, ttl: u32) -> io::Result<()> {
        self.io.get_ref().set_multicast_ttl_v4(ttl)
    }

    /// [`multicast_loop_v4`](Self::multicast_loop_v4) for IPv6.
    ///
    /// # Errors
    /// That of the system.
    pub fn multicast_loop_v6(&self) -> io::Result<bool> {
        self.io.get_ref().multicast_loop_v6()
    }

    /// [`set_multicast_loop_v4`](Self::set_multicast_loop_v4) for IPv6.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_multicast_loop_v6(&self, on: bool) -> io::Result<()> {
        self.io.get_ref().set_multicast_loop_v6(on)
    }

    /// Joins a multicast group on the interface with this address.
    ///
    /// # Errors
    /// That of the system.
    pub fn join_multicast_v4(&self, multiaddr: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.io.get_ref().join_multicast_v4(&multiaddr, &interface)
    }

    /// Joins a multicast group on the interface with this index.
    ///
    /// # Errors
    /// That of the system.
    pub fn join_multicast_v6(&self, multiaddr: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.io.get_ref().join_multicast_v6(multiaddr, interface)
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    /// That of the system.
    pub fn leave_multicast_v4(&self, multiaddr: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.io.get_ref().leave_multicast_v4(&multiaddr, &interface)
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    /// That of the system.
    pub fn leave_multicast_v6(&self, multiaddr: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.io.get_ref().leave_multicast_v6(multiaddr, interface)
    }

    /// Time-to-live of messages (`IP_TTL`).
    ///
    /// # Errors
    /// That of the system.
    pub fn ttl(&self) -> io::Result<u32> {
        self.io.get_ref().ttl()
    }

    /// Sets the time-to-live of messages.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.io.get_ref().set_ttl(ttl)
    }

    /// Type of service of messages (`IP_TOS`).
    ///
    /// # Errors
    /// That of the system.
    pub fn tos_v4(&self) -> io::Result<u32> {
        SockRef::from(self).tos_v4()
    }

    /// Sets the type of service of messages.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_tos_v4(&self, tos: u32) -> io::Result<()> {
        SockRef::from(self).set_tos_v4(tos)
    }

    /// Traffic class of IPv6 messages (`IPV6_TCLASS`).
    ///
    /// # Errors
    /// That of the system.
    pub fn tclass_v6(&self) -> io::Result<u32> {
        Ok(rustix::net::sockopt::ipv6_tclass(self)?)
    }

    /// Sets the traffic class of IPv6 messages.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_tclass_v6(&self, tclass: u32) -> io::Result<()> {
        Ok(rustix::net::sockopt::set_ipv6_tclass(self, tclass)?)
    }

    /// The interface that the socket is bound to (`SO_BINDTODEVICE`).
    ///
    /// # Errors
    /// That of the system.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn device(&self) -> io::Result<Option<Vec<u8>>> {
        SockRef::from(self).device()
    }

    /// Binds the socket to an interface, or to none.
    ///
    /// # Errors
    /// That of the system.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn bind_device(&self, interface: Option<&[u8]>) -> io::Result<()> {
        SockRef::from(self).bind_device(interface)
    }
}
