//! Measures the allocations of a decoder, and fails when they exceed a bound.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The allowance of any decoder, however short its input: scratch buffers, tables, error messages.
pub const ALLOWANCE: usize = 64 * 1024;

/// Runs `f` on behalf of `input`.
///
/// # Panics
///
/// When the bytes `f` holds at any one moment, beyond those before, exceed twice the input plus the allowance: then a
/// few hostile bytes cost us much memory.
pub fn bounded(input: &[u8], allowance: usize, f: impl FnOnce()) {
    LIVE.set(0);
    PEAK.set(0);
    f();
    let peak = usize::try_from(PEAK.get()).unwrap_or(0);
    let bound = 2 * input.len() + allowance;
    assert!(
        peak <= bound,
        "{} bytes of input led to {peak} bytes allocated at once; the bound is {bound}",
        input.len()
    );
}

thread_local! {
    // Per thread, because tests run side by side. Neither has a destructor, so an allocator may touch them.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    let live = LIVE.get().saturating_add(bytes);
    LIVE.set(live);
    PEAK.set(PEAK.get().max(live));
}

/// A layout's size always fits: Rust refuses larger ones.
fn signed(size: usize) -> isize {
    isize::try_from(size).unwrap_or(isize::MAX)
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is passed on to the system's allocator unchanged; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-signed(layout.size()));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(signed(new_size) - signed(layout.size()));
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    fn hold(bytes: usize) {
        drop(black_box(Vec::<u8>::with_capacity(bytes)));
    }

    #[test]
    fn allocations_up_to_the_bound_pass() {
        bounded(&[0; 100], ALLOWANCE, || hold(ALLOWANCE + 200));
    }

    #[test]
    #[should_panic(expected = "100 bytes of input led to 65737 bytes")]
    fn one_byte_over_the_bound_is_refused() {
        bounded(&[0; 100], ALLOWANCE, || hold(ALLOWANCE + 201));
    }

    #[test]
    #[should_panic(expected = "allocated at once")]
    fn growth_by_steps_counts() {
        bounded(&[], ALLOWANCE, || {
            let mut bytes = Vec::new();
            (0..ALLOWANCE + 1).for_each(|_| bytes.push(black_box(0_u8)));
        });
    }

    #[test]
    fn freed_memory_does_not_count() {
        bounded(&[], ALLOWANCE, || (0..100).for_each(|_| hold(ALLOWANCE)));
    }

    #[test]
    fn earlier_memory_does_not_count() {
        let before = black_box(vec![0_u8; 10 * ALLOWANCE]);
        bounded(&[], ALLOWANCE, || hold(ALLOWANCE));
        drop(before);
    }
}
