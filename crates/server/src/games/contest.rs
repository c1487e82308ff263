//! Type-erased interface of games for which sessions can be made.

use std::any::Any;
use std::marker::PhantomData;

use sametick_sim::contest::{Contest, Outcome, SeatGroup, Wanted};
use sametick_sim::to_canonical;

/// What sessions need to know of a game of any type: see [`Contest`].
pub trait AnyContest: Send + Sync {
    /// [`Contest::GROUPS`].
    fn groups(&self) -> &'static [SeatGroup];

    /// [`Contest::SCENARIOS`].
    fn scenarios(&self) -> &'static [&'static str];

    /// The canonical bytes of the setup of a round.
    fn setup(&self, wanted: &Wanted<'_>) -> Vec<u8>;

    /// How a game in this state has ended, if it has: see [`Run::state`](super::Run::state) and
    /// [`AnyHost::state`](crate::rooms::AnyHost::state). A state of another game has no outcome.
    fn outcome(&self, state: &dyn Any) -> Option<Outcome>;
}

/// Sessions of a game of a known type.
pub(super) struct Contested<G>(PhantomData<fn() -> G>);

impl<G: Contest> Contested<G> {
    pub const NEW: Contested<G> = Contested(PhantomData);
}

impl<G: Contest> AnyContest for Contested<G> {
    fn groups(&self) -> &'static [SeatGroup] {
        G::GROUPS
    }

    fn scenarios(&self) -> &'static [&'static str] {
        G::SCENARIOS
    }

    fn setup(&self, wanted: &Wanted<'_>) -> Vec<u8> {
        to_canonical(&G::setup(wanted)).expect("a setup has canonical bytes")
    }

    fn outcome(&self, state: &dyn Any) -> Option<Outcome> {
        state.downcast_ref::<G>()?.outcome()
    }
}
