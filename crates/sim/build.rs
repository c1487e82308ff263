//! Sets the crate's own build id, see `sametick_sim::BUILD`.

fn main() {
    sametick_build_id::emit();
}
