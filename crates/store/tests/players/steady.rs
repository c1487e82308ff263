//! No allocation per checkpoint on the tick thread.

use sametick_store::players::{Answer, PlayerId};

use crate::kit::{Kit, checkpoint, folder};

#[test]
fn saving_checkpoints_allocates_nothing() {
    let (_folder, path) = folder();
    let mut kit = Kit::open(&path);
    let mut first = 0;
    for tick in 0..30 {
        let saving = allocation_counter::measure(|| {
            for player in 0..1000 {
                kit.writer.save(checkpoint(player, tick));
            }
            kit.writer.tend();
        });
        // Building the bytes of a checkpoint allocates in this test; the rest is the writer's.
        let building = allocation_counter::measure(|| {
            (0..1000).for_each(|player| drop(checkpoint(player, tick)));
        });
        first += building.count_total;
        assert_eq!(saving.count_total, building.count_total, "tick {tick}");
        kit.flush();
    }
    assert!(first > 0, "the counter counts");
    assert_eq!(kit.writer.stats().overflows, 0);
    assert_eq!(kit.tick_of(PlayerId(999)), Some(29));
    assert!(!kit.heard.iter().any(|answer| matches!(answer, Answer::Failing(_))));
}
