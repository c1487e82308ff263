//! The decoder's input: a slice that does not let a declared length decide how much is allocated.

use postcard::Error;
use postcard::de_flavors::Flavor;

/// The remaining bytes.
pub(super) struct Reading<'de>(pub(super) &'de [u8]);

/// The most items for which memory is reserved before the first is read. Longer sequences grow as their items arrive,
/// because a thousand bytes can declare a thousand items of a kilobyte each.
const ITEMS_AHEAD: usize = 64;

impl<'de> Flavor<'de> for Reading<'de> {
    type Remainder = &'de [u8];
    type Source = &'de [u8];

    #[inline]
    fn pop(&mut self) -> Result<u8, Error> {
        let (first, rest) = self.0.split_first().ok_or(Error::DeserializeUnexpectedEnd)?;
        self.0 = rest;
        Ok(*first)
    }

    /// For a sequence that declares more items than this, the hint is zero.
    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len().min(ITEMS_AHEAD))
    }

    #[inline]
    fn try_take_n(&mut self, count: usize) -> Result<&'de [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Error::DeserializeUnexpectedEnd)?;
        self.0 = rest;
        Ok(taken)
    }

    fn finalize(self) -> Result<&'de [u8], Error> {
        Ok(self.0)
    }
}
