//! Codes one entity: which fields changed, and the residual of each against its prediction.

use sametick_wire::range::Coder;

use crate::learnt::Pages;
use crate::models::{Class, FRESH, FieldOdds, FieldPlan, RESTING, TablePlan, Way};
use crate::odds::{Tops, number};
use crate::spin::{self, Point, Scale};
use crate::track::{Head, Lane, Pull, Span};

/// The class of new values in a field that changes in steps.
const STEP_FRESH: usize = 1;

/// The time since an entity's last change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since {
    /// Ticks from its last change to the base.
    pub(crate) rested: u32,
    /// Ticks from its last change to now.
    pub(crate) elapsed: u32,
}

/// The models of a table's entities, and the tracks of this entity.
pub(crate) struct RowModels<'a> {
    pub(crate) plan: &'a TablePlan,
    pub(crate) fields: &'a mut [FieldOdds],
    pub(crate) tops: Pages<'a, Tops>,
    pub(crate) classes: Pages<'a, Class>,
    pub(crate) pulls: &'a mut [Pull],
    pub(crate) heads: &'a mut [Head],
    pub(crate) lanes: &'a mut [Lane],
}

/// The context for coding a residual.
#[derive(Clone, Copy)]
struct Context {
    class: usize,
    surprised: bool,
    shade: usize,
    turned: bool,
}

impl Context {
    fn plain(class: usize, surprised: bool) -> Context {
        Context { class, surprised, shade: 0, turned: false }
    }
}

/// A field and its models.
struct Pen<'a, C> {
    coder: &'a mut C,
    odds: &'a mut FieldOdds,
    /// The first page is that of this field.
    tops: Pages<'a, Tops>,
    classes: Pages<'a, Class>,
}

impl<C: Coder> Pen<'_, C> {
    /// Codes the difference of a slot from its prediction.
    fn residual(&mut self, context: Context, residual: i32) -> i32 {
        let Context { class, surprised, shade, turned } = context;
        let class = self.classes.at(class);
        let surprised = usize::from(surprised);
        if class.zero[surprised][shade].code(self.coder, residual == 0) {
            return 0;
        }
        let below = class.sign[surprised][shade].code(self.coder, (residual < 0) != turned) != turned;
        let size = residual.unsigned_abs().wrapping_sub(1);
        let size = number(self.coder, &mut class.lengths[surprised], self.tops.at(0), size);
        let size = size.wrapping_add(1) as i32;
        if below { size.wrapping_neg() } else { size }
    }
}

/// Codes an entity that is known, or similar to another: `values` is written, or filled when reading.
pub(crate) fn known<C: Coder>(
    coder: &mut C,
    models: RowModels<'_>,
    since: Since,
    base: &[i32],
    values: &mut [i32],
) {
    let RowModels { plan, fields, mut tops, mut classes, pulls, heads, lanes } = models;
    let (mut surprised, mut changed_before) = (false, false);
    for (at, ((plan, odds), head)) in plan.fields.iter().zip(fields).zip(heads).enumerate() {
        let (base, values) = (&base[plan.slots.clone()], &mut values[plan.slots.clone()]);
        let rests = u32::from(head.age).saturating_add(since.rested) >= u32::from(head.interval);
        let context = usize::from(head.changed) | usize::from(rests) << 1 | usize::from(changed_before) << 2;
        head.changed = odds.changed[context].code(coder, *values != *base);
        changed_before = head.changed;
        let age = u32::from(head.age).saturating_add(since.elapsed);
        head.age = u16::try_from(age).unwrap_or(u16::MAX);
        if !head.changed {
            values.copy_from_slice(base);
            continue;
        }
        // A resting field was compared when the base was made, and had not moved.
        let recent = since.elapsed.saturating_sub(since.rested);
        let moves = Moves { age: Span::new(age), recent: Span::new(recent), rests, surprised };
        let (tops, classes) = (tops.part(at..at + 1), classes.part(plan.classes.clone()));
        let pen = Pen { coder, odds, tops, classes };
        let (pulls, lanes) = (&mut pulls[plan.lanes.clone()], &mut lanes[plan.lanes.clone()]);
        surprised |= changed(pen, plan, moves, base, values, pulls, lanes);
        let interval = if rests { recent } else { age };
        head.interval = u16::try_from(interval.max(1)).unwrap_or(u16::MAX);
        head.age = 0;
    }
}

/// How far a changed field may have moved.
#[derive(Clone, Copy)]
struct Moves {
    /// Ticks since its last change, and since the base.
    age: Span,
    recent: Span,
    /// Whether it was resting.
    rests: bool,
    surprised: bool,
}

/// Codes a changed field, and returns whether it was a surprise.
fn changed<C: Coder>(
    mut pen: Pen<'_, C>,
    plan: &FieldPlan,
    moves: Moves,
    base: &[i32],
    values: &mut [i32],
    pulls: &mut [Pull],
    lanes: &mut [Lane],
) -> bool {
    match plan.way {
        Way::Step => {
            step(&mut pen, Context::plain(0, moves.surprised), base, values);
            false
        }
        Way::Smooth(circle) => smooth(&mut pen, circle, moves, base, values, pulls, lanes),
        Way::Rotation(scale) => match <&mut [Lane; 4]>::try_from(lanes) {
            Ok(lanes) => rotation(&mut pen, &scale, moves, base, values, lanes),
            Err(_) => unreachable!("a rotation has four lanes"),
        },
    }
}

/// Codes each slot as its difference from the base.
fn step<C: Coder>(pen: &mut Pen<'_, C>, mut context: Context, base: &[i32], values: &mut [i32]) {
    for (base, value) in base.iter().zip(values) {
        let residual = pen.residual(context, value.wrapping_sub(*base));
        context.surprised |= residual != 0;
        *value = base.wrapping_add(residual);
    }
}

/// The shorter way round a circle.
fn around(way: i64, circle: i64) -> i64 {
    (way + circle / 2).rem_euclid(circle) - circle / 2
}

/// Whether a residual is larger than usual.
fn surprises(residual: i64, noise: u16) -> bool {
    residual.abs() * 16 > 2 * i64::from(noise) + 32
}

fn smooth<C: Coder>(
    pen: &mut Pen<'_, C>,
    circle: Option<i32>,
    moves: Moves,
    base: &[i32],
    values: &mut [i32],
    pulls: &mut [Pull],
    lanes: &mut [Lane],
) -> bool {
    let mut surprised = moves.surprised;
    let circle = circle.filter(|circle| {
        let all_on = values.iter().all(|value| (0..*circle).contains(value));
        pen.odds.regular.code(pen.coder, all_on)
    });
    for (((base, value), lane), pull) in base.iter().zip(values).zip(lanes).zip(pulls) {
        let rests =
            moves.rests && (lane.points == 0 || lane.was_to_move(moves.age.ticks - moves.recent.ticks));
        let seen = lane.predict(*base, if rests { moves.recent } else { moves.age }, rests, pull);
        let class = if rests { RESTING } else { lane.class() };
        let (shade, turned) = seen.shade(class);
        let context = Context { class, surprised, shade, turned };
        let (residual, moved);
        if let Some(circle) = circle.map(i64::from) {
            let way = around(i64::from(*value) - seen.code, circle);
            residual = i64::from(pen.residual(context, way as i32));
            *value = (seen.code + residual).rem_euclid(circle) as i32;
            moved = around(i64::from(*value) - i64::from(*base), circle);
        } else {
            let code = seen.code as i32;
            *value = code.wrapping_add(pen.residual(context, value.wrapping_sub(code)));
            residual = i64::from(*value) - seen.code;
            moved = i64::from(*value) - i64::from(*base);
        }
        surprised |= surprises(residual, lane.noise);
        lane.learn(&seen, residual, moved, pull);
    }
    surprised
}

fn rotation<C: Coder>(
    pen: &mut Pen<'_, C>,
    scale: &Scale,
    moves: Moves,
    base: &[i32],
    values: &mut [i32],
    lanes: &mut [Lane; 4],
) -> bool {
    let regular = scale.is_regular(base) && scale.is_regular(values);
    if !pen.odds.regular.code(pen.coder, regular) || !scale.is_regular(base) {
        step(pen, Context::plain(RESTING, moves.surprised), base, values);
        spin::begin(lanes, scale.point(values));
        return true;
    }
    let elapsed = if moves.rests { moves.recent } else { moves.age };
    let predicted = spin::predict(lanes, scale, base, elapsed, moves.rests);
    let largest = code_largest(pen, scale, &predicted.0, values[0]);
    values[0] = largest as i32;
    let class = if moves.rests { RESTING } else { lanes[0].class() };
    let mut surprised = moves.surprised;
    for (value, fine) in values[1..].iter_mut().zip(scale.codes(&predicted.0, largest)) {
        let code = ((fine + 2_048) >> 12) as i32;
        let off = fine - (i64::from(code) << 12);
        let context =
            Context { class, surprised, shade: ((off.abs() >> 9) as usize).min(3), turned: off < 0 };
        let residual = pen.residual(context, value.wrapping_sub(code));
        *value = code.wrapping_add(residual);
        surprised |= surprises(residual.into(), lanes[0].noise);
    }
    match scale.point(values) {
        Some(now) => spin::learn(lanes, scale, base, &predicted, elapsed, moves.rests, &now),
        // Only an invalid stream marks irregular codes as regular.
        None => spin::begin(lanes, None),
    }
    surprised
}

/// Codes which component is the largest: mostly the predicted one.
fn code_largest<C: Coder>(pen: &mut Pen<'_, C>, scale: &Scale, point: &Point, value: i32) -> usize {
    let (likely, margin) = spin::largest(point);
    let clearness = match scale.steps(margin) {
        ..2 => 0,
        2..8 => 1,
        8..32 => 2,
        _ => 3,
    };
    if pen.odds.largest[clearness].code(pen.coder, value == likely as i32) {
        return likely;
    }
    let high = pen.odds.other[1].code(pen.coder, value & 2 != 0);
    let low = pen.odds.other[2 + usize::from(high)].code(pen.coder, value & 1 != 0);
    usize::from(high) << 1 | usize::from(low)
}

/// Codes an entity that was not known, by its difference from another.
pub(crate) fn fresh<C: Coder>(coder: &mut C, models: RowModels<'_>, like: &[i32], values: &mut [i32]) {
    let RowModels { plan, fields, mut tops, mut classes, pulls: _, heads, lanes } = models;
    for (at, ((plan, odds), head)) in plan.fields.iter().zip(fields).zip(heads).enumerate() {
        *head = Head::default();
        let (like, values) = (&like[plan.slots.clone()], &mut values[plan.slots.clone()]);
        let class = if plan.way == Way::Step { STEP_FRESH } else { FRESH };
        let (tops, classes) = (tops.part(at..at + 1), classes.part(plan.classes.clone()));
        let mut pen = Pen { coder, odds, tops, classes };
        step(&mut pen, Context::plain(class, false), like, values);
        let lanes = &mut lanes[plan.lanes.clone()];
        lanes.fill(Lane::NEW);
        if let (Way::Rotation(scale), Ok(lanes)) = (plan.way, <&mut [Lane; 4]>::try_from(lanes)) {
            spin::begin(lanes, scale.point(values));
        }
    }
}
