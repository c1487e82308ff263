//! Sets the game's build id, see `sametick_pong::Pong::BUILD`.

fn main() {
    sametick_build_id::emit();
}
