//! Going through sessions on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use super::Ask;
use crate::decide::Decider;
use crate::learn::Session;

/// What `work` makes of each session, in their order. `progress` is told how many are done.
///
/// An arbiter's questions are asked one session after the other, so that what a budget cuts off does
/// not hang on which core is quicker. Nobody else has questions, so then all cores work.
pub(super) fn each<T: Send>(
    sessions: &[&Session],
    decider: Decider,
    progress: &mut dyn FnMut(usize),
    ask: &mut Ask<'_>,
    work: &(dyn Fn(&Session, &mut Ask<'_>) -> T + Sync),
) -> Vec<T> {
    if decider == Decider::Arbiter {
        return sessions
            .iter()
            .enumerate()
            .map(|(done, session)| {
                progress(done);
                work(session, ask)
            })
            .collect();
    }
    let threads = thread::available_parallelism()
        .map_or(1, Into::into)
        .min(sessions.len());
    let next = AtomicUsize::new(0);
    let (finished, made) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (next, finished) = (&next, finished.clone());
            scope.spawn(move || {
                let ask = &mut |_: &_| Err("only an arbiter asks".to_owned());
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(session) = sessions.get(place) else {
                        return;
                    };
                    if finished.send((place, work(session, ask))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(finished);
        let mut all = Vec::with_capacity(sessions.len());
        for one in made {
            progress(all.len());
            all.push(one);
        }
        all.sort_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, one)| one).collect()
    })
}
