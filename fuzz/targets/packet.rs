//! The head and frames of any datagram are understood or refused; what is understood has one encoding, equal to the
//! input.
#![cfg_attr(fuzzing, no_main)]

use sametick_wire::codec::Reader;
use sametick_wire::frame::Frame;
use sametick_wire::packet::{Head, MAX_HEAD};

sametick_fuzz::target!(|bytes: &[u8]| {
    let mut reader = Reader::new(bytes);
    let mut out = Vec::new();
    let Ok(head) = Head::read(&mut reader) else { return };
    head.put(&mut out);
    assert!(out.len() <= MAX_HEAD);
    let mut understood = bytes.len() - reader.rest().len();
    while let Ok(frame) = Frame::read(&mut reader) {
        understood = bytes.len() - reader.rest().len();
        frame.put(&mut out);
        if let Frame::Redundant(messages) = &frame {
            assert_eq!(messages.iter().count(), messages.len());
        }
    }
    assert_eq!(out, bytes[..understood]);
});
