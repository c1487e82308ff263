//! Gives the game its build id.

fn main() {
    sametick_build_id::emit();
}
