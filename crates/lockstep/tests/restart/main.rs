//! Resuming a session after its relay was killed (L12), or long after it had ended: rule by rule, in virtual time.

mod assignment;
mod den;
mod examples;
mod hostile;
mod later;
mod peer;
mod seeds;
