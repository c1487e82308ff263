//! Sets the game's build id, see `sametick_arena::Arena::BUILD`.

fn main() {
    sametick_build_id::emit();
}
