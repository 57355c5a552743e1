//! Clients of the Sentinel port that never finish, say too much, say nonsense, do not read or come in crowds: they hold
//! nothing up, neither there nor for clients.

use std::io::{Read, Write};
use std::net::TcpStream;

use wire::{Random, Reply};

use crate::group::{Group, connect, master};
use crate::support::{eventually, info, ok};

#[test]
fn silent_and_half_said_requests_keep_nobody_out() {
    let Some((_group, writer)) = Group::with_writer(&[]) else { return };
    let mut client = writer.connect();
    let mut listener = writer.ask();
    listener.run("SUBSCRIBE +switch-master");
    let mut sockets: Vec<TcpStream> = Vec::new();
    // More than may be connected.
    for number in 0..1_500 {
        let mut socket = TcpStream::connect(writer.sentinel).expect("it accepts");
        let beginning: &[u8] = match number % 4 {
            0 => b"",
            1 => b"*2\r\n$8\r\nSENTI",
            2 => b"PING",
            _ => b"*1\r\n$4\r\nPING\r\n",
        };
        let _ = socket.write_all(beginning);
        sockets.push(socket);
        if number % 300 == 0 {
            ok(&mut client, "SET a 1");
            assert_eq!(writer.master(), Some(writer.port()));
        }
    }
    assert_eq!(writer.master(), Some(writer.port()));
    assert_eq!(listener.run("PING").to_string(), "[\"pong\", \"\"]", "one that listens stays");
    let open =
        || std::fs::read_dir(format!("/proc/{}/fd", writer.server.process_id())).expect("/proc is there").count();
    assert!(open() < 1_200, "there are {} descriptors", open());
    assert_eq!(client.run("INFO clients").text().matches("connected_clients:1\r\n").count(), 1, "they are no clients");
    // Those that have begun a request, or said nothing, are closed without another word from them.
    for (number, mut socket) in sockets.into_iter().enumerate() {
        if number % 4 != 3 {
            let _ = socket.read_to_end(&mut Vec::new());
        }
    }
    eventually("their descriptors are free", || open() < 500);
    ok(&mut client, "SET a 2");
}

#[test]
fn large_requests_are_refused() {
    let Some((_group, writer)) = Group::with_writer(&[]) else { return };
    let mut many = b"*200\r\n".to_vec();
    many.extend(b"$1\r\na\r\n".repeat(200));
    let long = [b"*2\r\n$4\r\nPING\r\n$100000\r\n".to_vec(), vec![b'a'; 100_000]].concat();
    let mut words = b"*128\r\n".to_vec();
    words.extend([b"$4000\r\n".as_slice(), &[b'a'; 4000], b"\r\n"].concat().repeat(127));
    for request in [many, long, words, vec![b'a'; 1 << 20], b"*1\r\n$".repeat(100_000)] {
        let mut socket = TcpStream::connect(writer.sentinel).expect("it accepts");
        let _ = socket.write_all(&request);
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"-ERR Protocol error"), "{}", answer.escape_ascii());
        assert_eq!(writer.master(), Some(writer.port()));
    }
    let mut asks = writer.ask();
    let names: String = (0..65).map(|number| format!(" c{number}")).collect();
    assert!(asks.run(&format!("SUBSCRIBE{names}")).to_string().starts_with("-ERR a client of this port listens to 64"));
}

#[test]
fn nonsense_is_answered_or_the_connection_ends() {
    let Some((_group, writer)) = Group::with_writer(&[]) else { return };
    let mut random = Random::from_env();
    let words = [
        "SENTINEL",
        "masters",
        "HELLO",
        "3",
        "2",
        "SUBSCRIBE",
        "PSUBSCRIBE",
        "[",
        "*",
        "",
        "\0",
        "CLIENT",
        "INFO",
        "-1",
    ];
    for _ in 0..400 {
        let mut socket = TcpStream::connect(writer.sentinel).expect("it accepts");
        for _ in 0..random.below(6) {
            let bytes: Vec<u8> = match random.below(3) {
                0 => (0..random.below(200)).map(|_| random.next_u64() as u8).collect(),
                1 => {
                    let chosen: Vec<&str> = (0..1 + random.below(5)).map(|_| random.pick(&words)).collect();
                    let words = chosen.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect::<String>();
                    format!("*{}\r\n{words}", chosen.len()).into_bytes()
                }
                _ => {
                    let chosen: Vec<&str> = (0..1 + random.below(5)).map(|_| random.pick(&words)).collect();
                    format!("{}\r\n", chosen.join(" ")).into_bytes()
                }
            };
            let _ = socket.write_all(&bytes);
        }
        drop(socket);
    }
    assert_eq!(writer.master(), Some(writer.port()));
    ok(&mut writer.connect(), "SET a 1");
}

/// A client that sends requests and reads no reply is closed, and has taken little memory until then.
#[test]
fn a_client_that_does_not_read_is_closed() {
    let Some((_group, writer)) = Group::with_writer(&[]) else { return };
    let mut client = writer.connect();
    let before: u64 = info(&mut client, "used_memory");
    // Replies that are much longer than their requests fill the buffers of the system soon.
    let request = b"*1\r\n$7\r\nCOMMAND\r\n".repeat(1_000);
    let mut sockets: Vec<TcpStream> =
        (0..4).map(|_| TcpStream::connect(writer.sentinel).expect("it accepts")).collect();
    for socket in &mut sockets {
        socket.set_nonblocking(true).expect("a socket");
        // Until it takes no more, be it because it waits for its replies to be read or has closed already.
        let mut refused = 0;
        while refused < 20 {
            match socket.write(&request) {
                Ok(bytes) if bytes > 0 => refused = 0,
                _ => {
                    refused += 1;
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            }
        }
        ok(&mut client, "SET a 1");
        assert_eq!(writer.master(), Some(writer.port()));
    }
    let taken = info::<u64>(&mut client, "used_memory").saturating_sub(before);
    assert!(taken < 4 << 20, "{taken} bytes");
    let mut asks = connect(writer.sentinel);
    eventually("all are closed", || asks.run("INFO clients").text().contains("connected_clients:1\r\n"));
    assert_eq!(master(&mut asks), Some(writer.port()));
    assert_ne!(asks.run("PING"), Reply::Closed);
}
