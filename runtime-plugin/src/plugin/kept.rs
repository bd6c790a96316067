//! Answers that TensorRT keeps pointers into: each is made once for what it is about, and stays as long as the object.

use std::sync::OnceLock;

/// Answers by what they are about. Nothing is ever taken out or moved, so a shared reference is enough to add one.
#[derive(Debug)]
pub(super) struct Kept<K, V>(OnceLock<Box<Entry<K, V>>>);

#[derive(Debug)]
struct Entry<K, V> {
    about: K,
    answer: V,
    next: Kept<K, V>,
}

impl<K, V> Default for Kept<K, V> {
    fn default() -> Kept<K, V> {
        Kept(OnceLock::new())
    }
}

impl<K: PartialEq, V> Kept<K, V> {
    /// The answer about `about`, which `make` makes where there is none yet. Of two threads that make the same one, one is right.
    ///
    /// # Errors
    /// What `make` says; nothing is kept then.
    pub(super) fn get<E>(&self, about: K, make: impl FnOnce(&K) -> Result<V, E>) -> Result<&V, E> {
        let mut place = self;
        while let Some(entry) = place.0.get() {
            if entry.about == about {
                return Ok(&entry.answer);
            }
            place = &entry.next;
        }
        let answer = make(&about)?;
        let mut made = Some(Box::new(Entry { about, answer, next: Kept::default() }));
        loop {
            match (place.0.get(), &made) {
                // Another thread was quicker with something else.
                (Some(entry), Some(made)) if entry.about != made.about => place = &entry.next,
                (Some(entry), _) => return Ok(&entry.answer),
                (None, _) => made = made.and_then(|made| place.0.set(made).err()),
            }
        }
    }
}

impl<K, V> Drop for Kept<K, V> {
    /// One after the other: a long list does not become a deep recursion.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut entry) = next {
            next = entry.next.0.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_made_once_and_stay_where_they_are() {
        let kept = Kept::<usize, String>::default();
        let make = |about: &usize| Ok::<_, ()>(about.to_string());
        let first = kept.get(1, make).unwrap();
        for about in 2..100 {
            assert_eq!(*kept.get(about, make).unwrap(), about.to_string());
        }
        assert!(std::ptr::eq(first, kept.get(1, |_| Err(())).unwrap()));
        assert_eq!(kept.get(100, |_| Err("no")), Err("no"));
        assert_eq!(kept.get(100, make).unwrap(), "100", "a failure is not kept");
    }

    #[test]
    fn a_long_list_is_dropped() {
        let kept = Kept::<u32, ()>::default();
        let mut last = &kept;
        for about in 0..200_000 {
            let entry = Entry { about, answer: (), next: Kept::default() };
            assert!(last.0.set(Box::new(entry)).is_ok());
            last = &last.0.get().unwrap().next;
        }
    }

    #[test]
    fn threads_get_one_answer() {
        let kept = Kept::<u32, u64>::default();
        let count = std::sync::atomic::AtomicU64::new(0);
        let make = |_: &u32| Ok::<_, ()>(count.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| (0..50).map(|about| *kept.get(about, make).unwrap()).collect::<Vec<_>>())
                })
                .collect();
            let answers: Vec<_> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
            assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
        });
    }
}
