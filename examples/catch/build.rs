//! Gives the game its build id, and the programs in this package their git commit.

fn main() {
    sametick_build_id::emit();
    sametick_build_id::emit_commit();
}
