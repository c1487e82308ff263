//! What the coder expects.
