//! The random number sequence is pinned: another sequence would change every game.

use sametick_sim::Rng;

#[test]
fn golden_numbers() {
    let mut rng = Rng::new(0);
    assert_eq!(
        [(); 4].map(|()| rng.next_u64()),
        [
            8_027_914_721_839_967_969,
            13_805_497_956_912_239_790,
            5_832_902_954_942_651_379,
            16_586_653_246_892_612_534
        ]
    );
    let mut rng = Rng::new(0xdead_beef);
    assert_eq!([(); 6].map(|()| rng.below(100)), [56, 9, 95, 29, 0, 64]);
    assert_eq!([(); 6].map(|()| rng.between(-3, 3)), [3, 2, 2, -3, 0, 1]);
    assert_eq!([(); 2].map(|()| rng.unit_f32().to_bits()), [0x3f1e76c1, 0x3f11634a]);
}

#[test]
fn numbers_stay_within_their_bounds_and_reach_them() {
    let mut rng = Rng::new(1);
    let rolls: Vec<i32> = (0..1000).map(|_| rng.between(-2, 2)).collect();
    assert_eq!((rolls.iter().min(), rolls.iter().max()), (Some(&-2), Some(&2)));
    assert_eq!(rng.between(5, 5), 5);
    assert_eq!(rng.between(5, -5), 5);
    rng.between(i32::MIN, i32::MAX);
    assert!((0..1000).all(|_| (0.0..1.0).contains(&rng.unit_f32())));
    assert_eq!(rng.below(0), 0);
    assert_eq!(rng.pick::<u8>(&[]), None);
}

#[test]
fn a_shuffle_keeps_every_item_and_every_order_occurs() {
    let mut rng = Rng::new(2);
    let mut orders = std::collections::BTreeSet::new();
    for _ in 0..500 {
        let mut items = [1, 2, 3, 4];
        rng.shuffle(&mut items);
        orders.insert(items);
    }
    assert_eq!(orders.len(), 24);
}
