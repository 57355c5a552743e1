//! A proxy between two processes that cuts their connections. Knows no protocol.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    pub(crate) fn to(target: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("cannot bind to a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let kept = open.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A target that is down closes what comes to it.
                let Ok(server) = TcpStream::connect(target) else { continue };
                let pair = |from: &TcpStream, to: &TcpStream| Some((from.try_clone().ok()?, to.try_clone().ok()?));
                let (Some(there), Some(back)) = (pair(&client, &server), pair(&server, &client)) else { continue };
                for (from, to) in [there, back] {
                    thread::spawn(move || carry(from, to));
                }
                kept.lock().expect("no test panics here").extend([client, server]);
            }
        });
        Proxy { address, open }
    }

    /// Breaks every connection, with what is on its way.
    pub(crate) fn cut(&self) {
        for socket in self.open.lock().expect("no test panics here").drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
