//! A fiber ends, pauses, and goes on in another thread.

use fiber::{Fiber, FiberState, Stack};

const STACK_BYTES: usize = 256 * 1024;

fn stack() -> Stack {
    Stack::new(STACK_BYTES).expect("there is address space")
}

#[allow(unsafe_code, reason = "a fiber is made by a promise")]
fn fiber<R: Send + 'static>(stack: Stack, work: impl FnOnce() -> R + Send + 'static) -> Fiber<R> {
    // SAFETY: the work of these tests keeps numbers, texts and boxes across a pause.
    unsafe { Fiber::new(stack, work) }
}

#[test]
fn work_that_never_pauses_ends_at_once_and_its_stack_serves_again() {
    let mut stack = stack();
    for number in 0..1000_u64 {
        match fiber(stack, move || number * 2).resume() {
            FiberState::Done(result, free) => {
                assert_eq!(result, number * 2);
                stack = free;
            }
            FiberState::Paused(_) => panic!("it has not paused"),
        }
    }
    assert!(!fiber::is_running() && !fiber::pause());
}

#[test]
fn paused_work_goes_on_in_another_thread_with_all_that_it_has() {
    fn deep(depth: usize, text: &mut String) -> usize {
        let local = Box::new([depth; 3]);
        if depth == 0 {
            let here = std::thread::current().id();
            assert!(fiber::is_running() && fiber::pause());
            text.push_str(if std::thread::current().id() == here { "here" } else { "elsewhere" });
            return 0;
        }
        deep(depth - 1, text) + local.len()
    }
    let started = fiber(stack(), || {
        let mut text = String::from("goes on ");
        let sum = deep(50, &mut text);
        (sum, text)
    });
    let FiberState::Paused(paused) = started.resume() else { panic!("it pauses") };
    assert!(!fiber::is_running());
    let ended = std::thread::spawn(move || match paused.resume() {
        FiberState::Done(result, _) => result,
        FiberState::Paused(_) => panic!("it pauses once"),
    });
    assert_eq!(ended.join().unwrap(), (150, "goes on elsewhere".to_owned()));
}

#[test]
fn many_threads_pass_fibers_on() {
    let mut fibers: Vec<Fiber<u64>> = (0..8_u64)
        .map(|number| {
            fiber(stack(), move || {
                let mut sum = Box::new(number);
                for _ in 0..100 {
                    fiber::pause();
                    *sum += 1;
                }
                *sum
            })
        })
        .collect();
    let mut results = Vec::new();
    while !fibers.is_empty() {
        let resumed: Vec<_> = fibers.drain(..).map(|paused| std::thread::spawn(move || paused.resume())).collect();
        for thread in resumed {
            match thread.join().unwrap() {
                FiberState::Done(result, _) => results.push(result),
                FiberState::Paused(paused) => fibers.push(paused),
            }
        }
    }
    results.sort_unstable();
    assert_eq!(results, (100..108).collect::<Vec<_>>());
}

#[test]
fn a_panic_comes_out_where_the_fiber_was_resumed() {
    let begun = fiber(stack(), || {
        fiber::pause();
        assert!(std::hint::black_box(false), "on purpose");
    });
    let FiberState::Paused(paused) = begun.resume() else { panic!("it pauses") };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| paused.resume()));
    assert!(outcome.is_err() && !fiber::is_running());
}
