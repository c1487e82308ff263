//! Renders the declarations as a Markdown table for the documentation.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::Write as _;

use super::{Code, Field, Kind, Motion};

/// The kinds as Markdown: fields with their precision, range, rate and audience.
pub fn markdown(kinds: &[Kind]) -> String {
    let mut text =
        String::from("| kind | field | coded as | moves | seen | by |\n|---|---|---|---|---|---|\n");
    for kind in kinds {
        for field in kind.fields {
            let [coded, moves, seen] = [coded(field), moves(field), seen(kind, field)];
            let by = if field.owner { "owner" } else { "all" };
            let _ = writeln!(text, "| {} | {} | {coded} | {moves} | {seen} | {by} |", kind.name, field.name);
        }
    }
    text
}

fn coded(field: &Field) -> String {
    let one = match field.code {
        Code::Whole { step: 0 | 1 } => "whole number".to_string(),
        Code::Whole { step } => format!("steps of {step}"),
        Code::Real { step } => format!("steps of {step}"),
        Code::Rotation { bits } => return format!("smallest three, {bits} bits each"),
    };
    if field.slots > 1 { format!("{} × {one}", field.slots) } else { one }
}

fn moves(field: &Field) -> String {
    match field.motion {
        Motion::Step => "at once".to_string(),
        Motion::Smooth => "smoothly".to_string(),
        Motion::Turn(circle) => format!("around {circle}"),
        Motion::Rotation => "turning".to_string(),
    }
}

fn seen(kind: &Kind, field: &Field) -> String {
    if kind.zones.is_empty() {
        return "everywhere".to_string();
    }
    let zones = kind.zones.iter().take(field.zones.into());
    let one = |zone: &super::Zone| {
        let hz = field.hz.map_or(zone.hz, |hz| hz.min(zone.hz));
        format!("{} <{}: {hz} Hz", zone.name, zone.within)
    };
    zones.map(one).collect::<alloc::vec::Vec<_>>().join(", ")
}
