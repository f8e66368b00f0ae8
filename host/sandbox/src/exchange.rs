//! The exchange record of one call: what went over the wire, and what the host itself sealed into it or
//! opened from it. The host encrypts and decrypts in a plugin's place, so it knows what stood inside
//! of a session without keeping any key. Not here: what a protocol means by the bytes.

use std::collections::VecDeque;

use crate::limits::{
    EXCHANGE_BYTES_MAX, EXCHANGES_MAX, PLAINTEXT_BYTES_MAX, SEALED_BYTES_MAX, SEALED_KEPT_MAX,
};
use crate::types::{Direction, Exchange, ExchangeRecord};
use crate::words::find;

/// What a call keeps. Everything that comes in is redacted already.
#[derive(Default)]
pub(crate) struct Exchanges {
    record: ExchangeRecord,
    kept: Vec<Exchange>,
    bytes: usize,
    dropped: u32,
    /// What was encrypted last, the oldest first: a datagram with it may yet be sent, also twice.
    sealed: VecDeque<Sealed>,
}

struct Sealed {
    ciphertext: Vec<u8>,
    plaintext: Vec<u8>,
}

impl Exchanges {
    pub(crate) fn new(record: ExchangeRecord) -> Self {
        Self { record, ..Self::default() }
    }

    pub(crate) fn are_kept(&self) -> bool {
        self.record != ExchangeRecord::Off
    }

    /// Whether a transcript is kept, too.
    pub(crate) fn is_whole(&self) -> bool {
        self.record == ExchangeRecord::Whole
    }

    /// Keeps a datagram, with the plaintext of what was encrypted for it.
    pub(crate) fn keep(&mut self, mut exchange: Exchange) {
        if exchange.direction != Direction::Received {
            let inside = |sealed: &&Sealed| holds(&exchange.bytes, &sealed.ciphertext);
            let sealed = self.sealed.iter().rev().find(inside);
            exchange.plaintext = sealed.map(|sealed| sealed.plaintext.clone());
        }
        let bytes = exchange.bytes.len() + exchange.plaintext.as_ref().map_or(0, Vec::len);
        if self.kept.len() >= EXCHANGES_MAX || self.bytes + bytes > EXCHANGE_BYTES_MAX {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        self.bytes += bytes;
        self.kept.push(exchange);
    }

    /// Notes what the host encrypted: a datagram that is sent later says so.
    pub(crate) fn encrypted(&mut self, plaintext: Vec<u8>, ciphertext: &[u8]) {
        if plaintext.len() > PLAINTEXT_BYTES_MAX {
            return;
        }
        if self.sealed.len() >= SEALED_KEPT_MAX {
            self.sealed.pop_front();
        }
        self.sealed.push_back(Sealed { ciphertext: ciphertext.to_vec(), plaintext });
    }

    /// Notes what the host decrypted: it came in a datagram just before.
    pub(crate) fn decrypted(&mut self, ciphertext: &[u8], plaintext: Vec<u8>) {
        let fits = plaintext.len() <= PLAINTEXT_BYTES_MAX
            && self.bytes + plaintext.len() <= EXCHANGE_BYTES_MAX;
        let mut latest = self.kept.iter_mut().rev().take(SEALED_KEPT_MAX);
        let held = latest.find(|exchange| {
            exchange.direction == Direction::Received && holds(&exchange.bytes, ciphertext)
        });
        if let (true, Some(exchange)) = (fits, held)
            && exchange.plaintext.is_none()
        {
            self.bytes += plaintext.len();
            exchange.plaintext = Some(plaintext);
        }
    }

    /// What was kept, and how many exchanges were not.
    pub(crate) fn into_kept(self) -> (Vec<Exchange>, u32) {
        (self.kept, self.dropped)
    }
}

/// Whether a datagram holds a ciphertext. Long ones are not searched: a plugin could make that
/// slow, and no session's messages are that long.
fn holds(datagram: &[u8], ciphertext: &[u8]) -> bool {
    !ciphertext.is_empty()
        && datagram.len() <= SEALED_BYTES_MAX
        && find(datagram, ciphertext).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(direction: Direction, bytes: &[u8]) -> Exchange {
        Exchange {
            at_ms: 0,
            endpoint: "bmc".to_owned(),
            direction,
            bytes: bytes.to_vec(),
            plaintext: None,
        }
    }

    fn plaintexts(exchanges: Exchanges) -> Vec<Option<Vec<u8>>> {
        exchanges.into_kept().0.into_iter().map(|exchange| exchange.plaintext).collect()
    }

    #[test]
    fn a_datagram_carries_the_plaintext_of_what_is_inside_it() {
        use Direction::{Farewell, Received, Sent};
        let mut exchanges = Exchanges::new(ExchangeRecord::On);
        exchanges.encrypted(b"ask".to_vec(), b"SEALED-1");
        exchanges.encrypted(b"close".to_vec(), b"SEALED-2");
        exchanges.keep(exchange(Sent, b"head SEALED-1 tail"));
        exchanges.keep(exchange(Received, b"head SEALED-1 echoed"));
        exchanges.keep(exchange(Sent, b"head SEALED-1 tail"));
        exchanges.keep(exchange(Received, b"head SEALED-3 tail"));
        exchanges.keep(exchange(Sent, b"in the clear"));
        exchanges.decrypted(b"SEALED-3", b"answer".to_vec());
        exchanges.decrypted(b"SEALED-4", b"never received".to_vec());
        exchanges.decrypted(b"", b"nothing".to_vec());
        exchanges.keep(exchange(Farewell, b"head SEALED-2 tail"));
        let expected: [Option<&[u8]>; 6] =
            [Some(b"ask"), None, Some(b"ask"), Some(b"answer"), None, Some(b"close")];
        assert_eq!(plaintexts(exchanges), expected.map(|plain| plain.map(<[u8]>::to_vec)));
    }

    #[test]
    fn plaintexts_are_bounded_in_size_number_and_sum() {
        let mut exchanges = Exchanges::new(ExchangeRecord::On);
        let long = vec![0; PLAINTEXT_BYTES_MAX];
        exchanges.encrypted(b"forgotten".to_vec(), b"FORGOTTEN");
        exchanges.encrypted(long.clone(), b"LONG");
        exchanges.encrypted([long.as_slice(), b"."].concat(), b"TOO-MUCH");
        for _ in 1..SEALED_KEPT_MAX {
            exchanges.encrypted(b"x".to_vec(), b"SEALED");
        }
        exchanges.keep(exchange(Direction::Sent, b"LONG"));
        exchanges.keep(exchange(Direction::Sent, b"TOO-MUCH"));
        exchanges.keep(exchange(Direction::Sent, b"FORGOTTEN"));
        let mut datagram = b"SEALED".to_vec();
        datagram.resize(SEALED_BYTES_MAX, b'.');
        exchanges.keep(exchange(Direction::Sent, &datagram));
        datagram.push(b'.');
        exchanges.keep(exchange(Direction::Sent, &datagram));
        assert_eq!(plaintexts(exchanges), [Some(long), None, None, Some(b"x".to_vec()), None]);

        let mut full = Exchanges::new(ExchangeRecord::On);
        full.keep(exchange(Direction::Sent, &vec![b'.'; EXCHANGE_BYTES_MAX - 10]));
        full.keep(exchange(Direction::Received, b"SEALED"));
        full.decrypted(b"SEALED", b"12345".to_vec());
        full.keep(exchange(Direction::Received, b"12345"));
        full.keep(exchange(Direction::Received, b"1234"));
        full.keep(exchange(Direction::Received, b"1"));
        let (kept, dropped) = full.into_kept();
        assert_eq!((kept.len(), dropped), (3, 2), "to the last byte");
        assert_eq!(kept[1].plaintext, None);
    }
}
