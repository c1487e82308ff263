//! Gives the game its build id, which the native and the wasm build must agree on.

fn main() {
    sametick_build_id::emit();
}
