//! Schema hashes change with every change of the bytes' meaning.

use sametick_sim::{Inputs, Schema, SchemaHash, schema};

mod shapes {
    //! Versions of one type.
    use sametick_sim::Schema;

    macro_rules! version {
        ($version:ident { $($body:tt)* }) => {
            pub mod $version {
                use super::*;
                #[derive(Schema)]
                #[expect(dead_code, reason = "only its shape matters")]
                pub struct Ship { $($body)* }
            }
        };
    }

    version!(first { name: String, hull: u32, tubes: Vec<u8> });
    version!(again { name: String, hull: u32, tubes: Vec<u8> });
    version!(renamed { name: String, armour: u32, tubes: Vec<u8> });
    version!(retyped { name: String, hull: u64, tubes: Vec<u8> });
    version!(reordered { hull: u32, name: String, tubes: Vec<u8> });
    version!(added { name: String, hull: u32, tubes: Vec<u8>, speed: f32 });
    version!(deeper { name: String, hull: u32, tubes: Vec<i8> });
    version!(optional { name: String, hull: Option<u32>, tubes: Vec<u8> });
}

#[derive(Schema)]
#[expect(dead_code, reason = "only its shape matters")]
enum Order {
    Stop,
    Turn(f32),
    Fire { tube: u8, at: (f32, f32) },
}

#[test]
fn a_description_reads_line_by_line() {
    assert_eq!(
        schema::description::<Inputs<Order>>(),
        "\
Inputs: struct
Inputs.rows: sequence
Inputs.rows[]: struct Row
Inputs.rows[].seat: newtype Seat
Inputs.rows[].seat.0: u16
Inputs.rows[].joined: bool
Inputs.rows[].left: bool
Inputs.rows[].input: option
Inputs.rows[].input?: enum Order
Inputs.rows[].input?::0 Stop: unit
Inputs.rows[].input?::1 Turn: newtype
Inputs.rows[].input?::1 Turn.0: f32
Inputs.rows[].input?::2 Fire: struct
Inputs.rows[].input?::2 Fire.tube: u8
Inputs.rows[].input?::2 Fire.at: tuple
Inputs.rows[].input?::2 Fire.at.0: f32
Inputs.rows[].input?::2 Fire.at.1: f32
Inputs.brought: sequence
Inputs.brought[]: struct Restored
Inputs.brought[].owner: enum Owner
Inputs.brought[].owner::0 Place: unit
Inputs.brought[].owner::1 Player: newtype
Inputs.brought[].owner::1 Player.0: newtype Seat
Inputs.brought[].owner::1 Player.0.0: u16
Inputs.brought[].owner::2 Character: newtype
Inputs.brought[].owner::2 Character.0: newtype Seat
Inputs.brought[].owner::2 Character.0.0: u16
Inputs.brought[].bytes: sequence
Inputs.brought[].bytes[]: u8
"
    );
}

#[test]
fn every_change_of_a_type_changes_its_hash() {
    use shapes::*;
    let all: [SchemaHash; 7] = [
        schema::hash::<first::Ship>(),
        schema::hash::<renamed::Ship>(),
        schema::hash::<retyped::Ship>(),
        schema::hash::<reordered::Ship>(),
        schema::hash::<added::Ship>(),
        schema::hash::<deeper::Ship>(),
        schema::hash::<optional::Ship>(),
    ];
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
    assert_eq!(all[0], schema::hash::<again::Ship>());
}

#[test]
fn several_types_hash_in_order() {
    assert_ne!(schema::hash::<(Order, u8)>(), schema::hash::<(u8, Order)>());
    assert_ne!(schema::hash::<(Order, u8)>(), schema::hash::<(Order, (u8,))>());
}

#[test]
fn the_first_line_that_differs_is_named() {
    use shapes::*;
    let [ours, theirs] = [schema::description::<first::Ship>(), schema::description::<retyped::Ship>()];
    let expected = "ours has `Ship.hull: u32`, theirs has `Ship.hull: u64`";
    assert_eq!(schema::first_difference(&ours, &theirs).unwrap(), expected);
    let theirs = schema::description::<added::Ship>();
    let expected = "ours has `nothing more`, theirs has `Ship.speed: f32`";
    assert_eq!(schema::first_difference(&ours, &theirs).unwrap(), expected);
    assert_eq!(schema::first_difference(&ours, &ours), None);
}

#[test]
fn golden_hash() {
    assert_eq!(
        schema::hash::<Order>().to_string(),
        "5563a500d44bd2da146156daf07b74f4eac4e256422d3342799d45de3d5341df"
    );
}
