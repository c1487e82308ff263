//! Any text as a network profile is refused with a reason or understood, and understood the same when it is written
//! again.
#![cfg_attr(fuzzing, no_main)]

use sametick_sim::Time;
use sametick_wire::netem::{Netem, Profile};

sametick_fuzz::target!(|bytes: &[u8]| {
    let Ok(text) = str::from_utf8(bytes) else { return };
    match text.parse::<Profile>() {
        Ok(profile) => {
            let written = profile.to_string();
            assert_eq!(written.parse(), Ok(profile), "{written}");
            carry(profile);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

/// Any valid profile carries packets, and accounts for each.
fn carry(profile: Profile) {
    let mut network: Netem = Netem::new(profile, 7);
    let mut packet = Vec::new();
    for n in 0..20 {
        network.send(Time::from_millis(n), (), &[0; 20]);
        while network.poll(Time::from_millis(n), &mut packet).is_some() {}
    }
    while network.poll(Time::from_micros(u64::MAX), &mut packet).is_some() {}
    let stats = network.stats();
    let gone = stats.delivered + stats.lost + stats.cut + stats.queue_dropped + stats.overflowed;
    assert_eq!(stats.sent + stats.duplicated, gone);
}
