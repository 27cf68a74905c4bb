//! Sends every byte back: `cargo run --release --example echo -- --addr 127.0.0.1:7777 --workers 2`.
//!
//! Ctrl-C ends it.

mod support;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream};

fn main() -> io::Result<()> {
    let args = support::Args::from_command_line("127.0.0.1:7777");
    let runtime = args.runtime()?;
    runtime.block_on(serve(args.addr))?;
    runtime.shutdown_background();
    Ok(())
}

async fn serve(addr: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(addr).await?;
    let addr = listener.local_addr()?;
    // A task of its own, so that with worker threads the sockets live there and not on the main thread.
    drop(rt::spawn(accept(listener)));
    println!("listening on {addr}");
    rt::signal::ctrl_c().await
}

async fn accept(listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Dropping the handle lets the task go on by itself.
                drop(rt::spawn(async move {
                    if let Err(error) = echo(stream).await {
                        eprintln!("{peer}: {error}");
                    }
                }));
            }
            Err(error) => {
                eprintln!("accept: {error}");
                rt::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..length]).await?;
    }
}
