//! What was learnt, in pages that know since which delta they are as they are: a copy is made of those that differ.

use alloc::vec::Vec;

/// Pages, and the number of the delta in which each was last written; zero for those that were not. Pages of one number are
/// the same wherever they are.
#[derive(Clone, Debug)]
pub(crate) struct Learnt<T> {
    pages: Vec<T>,
    deltas: Vec<u64>,
}

impl<T: Copy> Learnt<T> {
    /// So many new pages.
    pub(crate) fn new(count: usize, new: T) -> Learnt<T> {
        Learnt { pages: alloc::vec![new; count], deltas: alloc::vec![0; count] }
    }

    /// All pages are new again.
    pub(crate) fn reset(&mut self, new: T) {
        for (page, delta) in self.pages.iter_mut().zip(&mut self.deltas) {
            if *delta != 0 {
                (*page, *delta) = (new, 0);
            }
        }
    }

    /// Becomes the same as another of as many pages.
    pub(crate) fn follow(&mut self, other: &Learnt<T>) {
        let own = self.pages.iter_mut().zip(&mut self.deltas);
        for ((page, delta), (from, of)) in own.zip(other.pages.iter().zip(&other.deltas)) {
            if delta != of {
                (*page, *delta) = (*from, *of);
            }
        }
    }

    /// All pages, to be written in a delta of this number.
    pub(crate) fn pages(&mut self, delta: u64) -> Pages<'_, T> {
        Pages { pages: &mut self.pages, deltas: &mut self.deltas, delta }
    }
}

/// Whether the pages are the same, whenever they were written.
impl<T: PartialEq> PartialEq for Learnt<T> {
    fn eq(&self, other: &Learnt<T>) -> bool {
        self.pages == other.pages
    }
}

/// Pages to be written in one delta.
pub(crate) struct Pages<'a, T> {
    pages: &'a mut [T],
    deltas: &'a mut [u64],
    delta: u64,
}

impl<'a, T> Pages<'a, T> {
    /// A page, to read and write.
    #[inline]
    pub(crate) fn at(&mut self, index: usize) -> &mut T {
        self.deltas[index] = self.delta;
        &mut self.pages[index]
    }

    /// The first pages, which these no longer have.
    pub(crate) fn take(&mut self, count: usize) -> Pages<'a, T> {
        let (pages, rest) = core::mem::take(&mut self.pages).split_at_mut(count);
        self.pages = rest;
        let (deltas, rest) = core::mem::take(&mut self.deltas).split_at_mut(count);
        self.deltas = rest;
        Pages { pages, deltas, delta: self.delta }
    }

    /// The same, for a while.
    pub(crate) fn all(&mut self) -> Pages<'_, T> {
        Pages { pages: self.pages, deltas: self.deltas, delta: self.delta }
    }

    /// Some of the pages.
    pub(crate) fn part(&mut self, range: core::ops::Range<usize>) -> Pages<'_, T> {
        Pages { pages: &mut self.pages[range.clone()], deltas: &mut self.deltas[range], delta: self.delta }
    }
}
