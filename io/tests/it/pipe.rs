//! Pipes and FIFOs.

use std::fs::File;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read};
use std::os::fd::OwnedFd;
use std::pin::pin;

use futures_lite::future::zip;
use rt_io::net::unix::pipe::{self, OpenOptions, Receiver, Sender};
use rt_io::util::{AsyncReadExt, AsyncWriteExt};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::pipe::PipeFlags;

use crate::exec::{Counter, Owner};
use crate::support::{Random, within_limit};
use crate::unix::TempPath;

#[test]
fn more_than_fits_goes_through_and_then_comes_the_end() {
    within_limit(|| {
        Owner::new("pipe").block_on(async {
            let (mut sender, mut receiver) = pipe::pipe().unwrap();
            let data = Random::new(3).bytes(400_000);
            let send = async {
                sender.write_all(&data).await.unwrap();
                sender.close().await.unwrap();
                drop(sender);
            };
            let mut got = Vec::new();
            let ((), read) = zip(send, receiver.read_to_end(&mut got)).await;
            read.unwrap();
            assert!(got == data, "other bytes than were sent");
        });
    });
}

#[test]
fn a_waiting_writer_is_woken_when_the_reader_goes() {
    within_limit(|| {
        let mut owner = Owner::new("pipe");
        let (mut sender, receiver) = pipe::pipe().unwrap();
        while sender.try_write(&[0; 4096]).is_ok() {}
        let counter = Counter::new(None);
        let mut write = pin!(sender.write_all(b"x"));
        assert!(owner.poll(write.as_mut(), &counter).is_pending());
        drop(receiver);
        let error = owner.block_on(write).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_waiting_reader_is_woken_when_the_writer_goes() {
    within_limit(|| {
        let mut owner = Owner::new("pipe");
        let (sender, mut receiver) = pipe::pipe().unwrap();
        let counter = Counter::new(None);
        let mut buf = [0; 8];
        let mut read = pin!(receiver.read(&mut buf));
        assert!(owner.poll(read.as_mut(), &counter).is_pending());
        drop(sender);
        assert_eq!(owner.block_on(read).unwrap(), 0);
    });
}

#[test]
fn packets_are_read_one_by_one_and_none_is_forgotten() {
    within_limit(|| {
        Owner::new("pipe").block_on(async {
            let flags = PipeFlags::CLOEXEC | PipeFlags::DIRECT;
            let (read, write) = rustix::pipe::pipe_with(flags).unwrap();
            let mut receiver = Receiver::from_owned_fd(read).unwrap();
            let sender = Sender::from_owned_fd(write).unwrap();
            let mut buf = [0; 64];
            // Registers: from here on the readiness word decides.
            assert!(
                futures_lite::future::poll_once(receiver.read(&mut buf))
                    .await
                    .is_none()
            );
            for packet in ["one", "two", "three"] {
                sender.try_write(packet.as_bytes()).unwrap();
            }
            for packet in ["one", "two", "three"] {
                let read = receiver.read(&mut buf).await.unwrap();
                assert_eq!(&buf[..read], packet.as_bytes());
            }
        });
    });
}

#[test]
fn vectored_calls_use_all_buffers() {
    within_limit(|| {
        Owner::new("pipe").block_on(async {
            let (mut sender, mut receiver) = pipe::pipe().unwrap();
            let parts = [IoSlice::new(b"ab"), IoSlice::new(b"cde")];
            assert_eq!(sender.write_vectored(&parts).await.unwrap(), 5);
            assert_eq!(sender.try_write_vectored(&parts).unwrap(), 5);
            let (mut first, mut second) = ([0; 1], [0; 6]);
            let mut bufs = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
            assert_eq!(receiver.read_vectored(&mut bufs).await.unwrap(), 7);
            let mut bufs = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
            assert_eq!(receiver.try_read_vectored(&mut bufs).unwrap(), 3);
            assert_eq!((&first, &second[..2]), (b"c", &b"de"[..]));
        });
    });
}

#[test]
fn the_wrong_end_and_other_files_are_refused() {
    let (read, write) = rustix::pipe::pipe().unwrap();
    let error = Sender::from_owned_fd(read).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let error = Receiver::from_owned_fd(write).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let null = File::open("/dev/null").unwrap();
    let error = Receiver::from_file(null).unwrap_err();
    assert!(error.to_string().contains("no pipe"), "{error}");
    let error = OpenOptions::new().open_receiver("/dev/null").unwrap_err();
    assert!(error.to_string().contains("/dev/null"), "{error}");
}

#[test]
fn a_fifo_is_opened_without_waiting() {
    within_limit(|| {
        Owner::new("pipe").block_on(async {
            let path = TempPath::new("fifo");
            mknodat(CWD, &path.0, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            let error = OpenOptions::new().open_sender(&path.0).unwrap_err();
            assert_eq!(
                error.raw_os_error(),
                Some(rustix::io::Errno::NXIO.raw_os_error())
            );
            let mut receiver = OpenOptions::new().open_receiver(&path.0).unwrap();
            assert_eq!(
                receiver.read(&mut [0; 8]).await.unwrap(),
                0,
                "no sender yet"
            );
            let mut sender = OpenOptions::new().open_sender(&path.0).unwrap();
            let mut buf = [0; 8];
            let (wrote, read) = zip(sender.write_all(b"hello"), receiver.read(&mut buf)).await;
            wrote.unwrap();
            assert_eq!(read.unwrap(), 5);
            drop(receiver);

            let keeps_open = OpenOptions::new()
                .read_write(true)
                .open_sender(&path.0)
                .unwrap();
            let receiver = OpenOptions::new().open_receiver(&path.0).unwrap();
            let error = receiver.try_read(&mut buf).unwrap_err();
            assert_eq!(
                error.kind(),
                ErrorKind::WouldBlock,
                "no end while one sender is there"
            );
            drop(keeps_open);
        });
    });
}

#[test]
fn a_descriptor_comes_back_blocking_or_not() {
    let (sender, receiver) = pipe::pipe().unwrap();
    let read: OwnedFd = receiver.into_nonblocking_fd().unwrap();
    let error = File::from(read.try_clone().unwrap())
        .read(&mut [0])
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    let receiver = Receiver::from_owned_fd(read).unwrap();
    let mut file = File::from(receiver.into_blocking_fd().unwrap());
    within_limit(move || {
        let reader = std::thread::spawn(move || file.read(&mut [0; 8]).unwrap());
        sender.try_write(b"abc").unwrap();
        assert_eq!(reader.join().unwrap(), 3);
    });
}
