//! Learnt values in pages with version numbers: copying a set copies only the pages that differ.

use alloc::vec::Vec;

/// Pages, each with the number of the delta in which it was last written; zero if it never was. Pages with the same
/// number have the same content in every copy.
#[derive(Clone, Debug)]
pub(crate) struct Learnt<T> {
    pages: Vec<T>,
    deltas: Vec<u64>,
}

impl<T: Copy> Learnt<T> {
    /// `count` new pages.
    pub(crate) fn new(count: usize, new: T) -> Learnt<T> {
        Learnt { pages: alloc::vec![new; count], deltas: alloc::vec![0; count] }
    }

    /// Resets all pages.
    pub(crate) fn reset(&mut self, new: T) {
        for (page, delta) in self.pages.iter_mut().zip(&mut self.deltas) {
            if *delta != 0 {
                (*page, *delta) = (new, 0);
            }
        }
    }

    /// Copies from another set with the same number of pages.
    pub(crate) fn follow(&mut self, other: &Learnt<T>) {
        let own = self.pages.iter_mut().zip(&mut self.deltas);
        for ((page, delta), (from, of)) in own.zip(other.pages.iter().zip(&other.deltas)) {
            if delta != of {
                (*page, *delta) = (*from, *of);
            }
        }
    }

    /// All pages, for writing in the delta with this number.
    pub(crate) fn pages(&mut self, delta: u64) -> Pages<'_, T> {
        Pages { pages: &mut self.pages, deltas: &mut self.deltas, delta }
    }
}

/// Compares the contents of the pages, not their numbers.
impl<T: PartialEq> PartialEq for Learnt<T> {
    fn eq(&self, other: &Learnt<T>) -> bool {
        self.pages == other.pages
    }
}

/// Pages that are written in one delta.
pub(crate) struct Pages<'a, T> {
    pages: &'a mut [T],
    deltas: &'a mut [u64],
    delta: u64,
}

impl<'a, T> Pages<'a, T> {
    /// A page, for reading and writing.
    #[inline]
    pub(crate) fn at(&mut self, index: usize) -> &mut T {
        self.deltas[index] = self.delta;
        &mut self.pages[index]
    }

    /// Splits off the first pages.
    pub(crate) fn take(&mut self, count: usize) -> Pages<'a, T> {
        let (pages, rest) = core::mem::take(&mut self.pages).split_at_mut(count);
        self.pages = rest;
        let (deltas, rest) = core::mem::take(&mut self.deltas).split_at_mut(count);
        self.deltas = rest;
        Pages { pages, deltas, delta: self.delta }
    }

    /// Reborrows all pages.
    pub(crate) fn all(&mut self) -> Pages<'_, T> {
        Pages { pages: self.pages, deltas: self.deltas, delta: self.delta }
    }

    /// Some of the pages.
    pub(crate) fn part(&mut self, range: core::ops::Range<usize>) -> Pages<'_, T> {
        Pages { pages: &mut self.pages[range.clone()], deltas: &mut self.deltas[range], delta: self.delta }
    }
}
