//! One connection that asks and waits for the answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::wire::Codec;
use crate::Result;

pub(super) struct Caller {
    pub(super) codec: Codec,
    stream: TcpStream,
    input: Vec<u8>,
}

impl Caller {
    pub(super) fn connect(
        address: SocketAddr,
        codec: &Codec,
        silence_max: Duration,
    ) -> Result<Caller> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(silence_max))?;
        Ok(Caller { codec: codec.clone(), stream, input: Vec::new() })
    }

    pub(super) fn send(&mut self, request: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(request)
    }

    /// Waits for one reply that the codec can take off the input.
    pub(super) fn receive(
        &mut self,
        mut reply: impl FnMut(&Codec, &[u8]) -> Result<Option<usize>>,
    ) -> Result<()> {
        let mut piece = [0; 16_384];
        loop {
            if let Some(len) = reply(&self.codec, &self.input)? {
                self.input.drain(..len);
                return Ok(());
            }
            let read = self.stream.read(&mut piece)?;
            if read == 0 {
                return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
            }
            self.input.extend_from_slice(&piece[..read]);
        }
    }

    /// Discards the input after a reply that could not be read.
    pub(super) fn forget(&mut self) {
        self.input.clear();
    }

    /// For a thread that only sends.
    pub(super) fn sender(&self) -> std::io::Result<TcpStream> {
        self.stream.try_clone()
    }
}
