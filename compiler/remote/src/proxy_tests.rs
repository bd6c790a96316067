//! A proxy between client and server that cuts, delays and changes bytes: no wrong result, no hang.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::tests::{TIMEOUT, outputs_with, settings};
use super::*;
use crate::action::{Command, InputRoot};
use crate::fake_server::{FakeServer, Options};

const FAULTS: u64 = 1_000;

/// Faults occur after a random number of bytes.
struct Proxy {
    authority: String,
    faults: Arc<AtomicU64>,
}

impl Proxy {
    fn start(server: String) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let faults = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&faults);
        // Ends with the test's process.
        std::thread::spawn(move || {
            for (seed, client) in (0..).zip(listener.incoming()) {
                let (client, server) = (client.unwrap(), TcpStream::connect(&server).unwrap());
                for (from, to, seed) in [(&client, &server, 2 * seed), (&server, &client, 2 * seed + 1)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let (counter, rng) = (Arc::clone(&counter), fastrand::Rng::with_seed(seed));
                    std::thread::spawn(move || forward(from, to, rng, &counter));
                }
            }
        });
        Proxy { authority, faults }
    }

    fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, mut rng: fastrand::Rng, faults: &AtomicU64) {
    let mut buffer = [0; 16 << 10];
    let mut until_fault = 0;
    let next = |rng: &mut fastrand::Rng| 1_usize << rng.u32(6..20);
    loop {
        if until_fault == 0 {
            until_fault = next(&mut rng);
        }
        let Ok(count @ 1..) = from.read(&mut buffer) else { break };
        if count < until_fault {
            until_fault -= count;
        } else {
            until_fault = 0;
            faults.fetch_add(1, Ordering::Relaxed);
            match rng.u8(..4) {
                0 => break,
                1 => std::thread::sleep(Duration::from_millis(rng.u64(..30))),
                2 => buffer[rng.usize(..count)] ^= 1 << rng.u8(..8),
                _ => {
                    let _ = to.write_all(&buffer[..rng.usize(..count)]);
                    break;
                }
            }
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[test]
fn no_fault_of_the_connection_changes_a_result() {
    const CLIENTS: u32 = 16;
    let options = [false, true].map(|has_zstd| Options { has_zstd, ..Options::default() });
    let servers = options.map(FakeServer::start);
    let proxies = [0, 1].map(|index: usize| Proxy::start(servers[index].authority.clone()));
    let start = Instant::now();
    let count = AtomicU64::new(0);
    let found = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (proxy, count, found) = (&proxies[client as usize % 2], &count, &found);
            scope.spawn(move || {
                while proxy.faults() < FAULTS / 2 {
                    let number = count.fetch_add(1, Ordering::Relaxed);
                    let arguments = vec![number.to_string()];
                    let outputs_of_action = outputs_with(20_000);
                    let command = Command {
                        arguments,
                        outputs: outputs_of_action.keys().cloned().collect(),
                        ..Default::default()
                    };
                    let action = Action::new(&command, InputRoot::default().encode().root);
                    let remote = Remote::new(settings(&proxy.authority));
                    let operation = Instant::now();
                    remote.store(&action, &outputs_of_action);
                    if let Some(outcome) = remote.look_up(&action) {
                        assert!(outcome == outputs_of_action);
                        found.fetch_add(1, Ordering::Relaxed);
                    }
                    assert!(
                        operation.elapsed() < 4 * TIMEOUT + Duration::from_secs(10),
                        "{:?}",
                        operation.elapsed()
                    );
                }
            });
        }
    });
    let (count, found) = (count.into_inner(), found.into_inner());
    let stored: usize = servers.iter().map(|server| server.state().results.len()).sum();
    println!("{count} actions, {stored} stored, {found} found in {:?}", start.elapsed());
    assert!(found > 20, "the faults are not so many that nothing works");
}
