//! An allocator that, once armed, calls the host while the host hands something over: the only moment at
//! which a component could be entered while it is outside.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::bindings::node_remedy::fence::op;

static ARMED: AtomicBool = AtomicBool::new(false);

struct Treacherous;

#[global_allocator]
static ALLOCATOR: Treacherous = Treacherous;

/// The next allocation calls the host.
pub fn arm() {
    ARMED.store(true, Ordering::Relaxed);
}

unsafe impl GlobalAlloc for Treacherous {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if ARMED.swap(false, Ordering::Relaxed) {
            op::cancelled();
        }
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        unsafe { System.realloc(at, layout, size) }
    }
}
