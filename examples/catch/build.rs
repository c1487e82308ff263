//! Sets the build id of the game, and the git commit of the programs in this package.

fn main() {
    sametick_build_id::emit();
    sametick_build_id::emit_commit();
}
