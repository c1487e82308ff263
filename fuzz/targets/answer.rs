//! Any bytes as the answer to a first message are refused or understood, and understood the same when written again.
#![cfg_attr(fuzzing, no_main)]

use sametick_wire::hello::{Answer, MAX_ANSWER, Refusal, VERSION};

sametick_fuzz::target!(|bytes: &[u8]| {
    let Ok(answer) = Answer::from_bytes(bytes) else { return };
    let again = answer.to_bytes();
    assert!(again.len() <= MAX_ANSWER);
    match &answer {
        // Another version's answer may have any other content as well.
        Answer::Refused(Refusal::Version { client: VERSION, server }) if *server != VERSION => {}
        _ => assert!(again.len() <= bytes.len()),
    }
    assert_eq!(Answer::from_bytes(&again), Ok(answer));
});
