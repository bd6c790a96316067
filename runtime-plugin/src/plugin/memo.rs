//! Values that TensorRT points into: computed once per key, kept with the object.

use std::sync::OnceLock;

/// Entries never move or disappear, so adding needs only `&self`.
#[derive(Debug)]
pub(super) struct Memo<K, V>(OnceLock<Box<Entry<K, V>>>);

#[derive(Debug)]
struct Entry<K, V> {
    key: K,
    value: V,
    next: Memo<K, V>,
}

impl<K, V> Default for Memo<K, V> {
    fn default() -> Memo<K, V> {
        Memo(OnceLock::new())
    }
}

impl<K: PartialEq, V> Memo<K, V> {
    /// The first value wins. Errors of `make` are not cached.
    pub(super) fn get<E>(&self, key: K, make: impl FnOnce(&K) -> Result<V, E>) -> Result<&V, E> {
        let mut place = self;
        while let Some(entry) = place.0.get() {
            if entry.key == key {
                return Ok(&entry.value);
            }
            place = &entry.next;
        }
        let value = make(&key)?;
        let mut made = Some(Box::new(Entry { key, value, next: Memo::default() }));
        loop {
            match (place.0.get(), &made) {
                (Some(entry), Some(made)) if entry.key != made.key => place = &entry.next,
                (Some(entry), _) => return Ok(&entry.value),
                (None, _) => made = made.and_then(|made| place.0.set(made).err()),
            }
        }
    }
}

impl<K, V> Drop for Memo<K, V> {
    /// Dropping a long list recursively could overflow the stack.
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
        let memo = Memo::<usize, String>::default();
        let make = |key: &usize| Ok::<_, ()>(key.to_string());
        let first = memo.get(1, make).unwrap();
        for key in 2..100 {
            assert_eq!(*memo.get(key, make).unwrap(), key.to_string());
        }
        assert!(std::ptr::eq(first, memo.get(1, |_| Err(())).unwrap()));
        assert_eq!(memo.get(100, |_| Err("no")), Err("no"));
        assert_eq!(memo.get(100, make).unwrap(), "100", "a failure is not stored");
    }

    #[test]
    fn a_long_list_is_dropped() {
        let memo = Memo::<u32, ()>::default();
        let mut last = &memo;
        for key in 0..200_000 {
            let entry = Entry { key, value: (), next: Memo::default() };
            assert!(last.0.set(Box::new(entry)).is_ok());
            last = &last.0.get().unwrap().next;
        }
    }

    #[test]
    fn threads_get_one_answer() {
        let memo = Memo::<u32, u64>::default();
        let count = std::sync::atomic::AtomicU64::new(0);
        let make = |_: &u32| Ok::<_, ()>(count.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| (0..50).map(|key| *memo.get(key, make).unwrap()).collect::<Vec<_>>()))
                .collect();
            let answers: Vec<_> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
            assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
        });
    }
}
