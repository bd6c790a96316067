//! Compiles on workers: batches that take long in comparison with the start of an action.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::*;

/// A program to compile: its code, or the signatures of its kernels.
#[derive(Debug, Clone)]
pub struct Compile<'u> {
    /// Units that differ only in kernels.
    pub units: Vec<&'u PreparedUnit>,
    /// The target of the code, or one of the signatures' architecture.
    pub target: Target,
    /// Whether the result is signatures.
    pub is_signatures: bool,
}

/// Compiles that a worker executes together.
#[derive(Debug)]
pub struct Batch<'u> {
    compiles: Vec<Compile<'u>>,
    milliseconds: u64,
}

impl Batch<'_> {
    /// Returns the number of compiles.
    #[must_use]
    pub fn len(&self) -> usize {
        self.compiles.len()
    }
}

impl Compile<'_> {
    pub(super) fn purpose(&self) -> Purpose {
        if self.is_signatures { Purpose::Signature(self.target.arch) } else { Purpose::Code(self.target) }
    }

    pub(super) fn kind(&self) -> &'static str {
        if self.is_signatures { "signature" } else { "code" }
    }
}

impl Session {
    /// Returns whether workers compile, and the local cache keeps their results.
    #[must_use]
    pub fn can_execute(&self) -> bool {
        self.can_fetch() && self.sharing.as_ref().is_some_and(|sharing| sharing.cache.executes())
    }

    /// Groups the compiles without results in the local cache, the longest first. Depends on these compiles alone: machines
    /// share results of equal batches.
    #[must_use]
    pub fn batches<'u>(&self, compiles: Vec<Compile<'u>>) -> Vec<Batch<'u>> {
        /// Starting an action took 110 to 500 ms in BuildBox.
        const LONG: u64 = 3000;
        let mut batches: Vec<Batch<'u>> = Vec::new();
        let mut open: HashMap<(Arc<Settings>, PathBuf), usize> = HashMap::new();
        for compile in compiles {
            let Some(first) = compile.units.first() else { continue };
            if self.is_known(&compile) {
                continue;
            }
            let milliseconds = self.estimate(&compile);
            let place = (Arc::clone(&first.settings), first.unit.folder.clone());
            let index = *open.entry(place.clone()).or_insert(batches.len());
            match batches.get_mut(index) {
                Some(batch) => {
                    batch.milliseconds += milliseconds;
                    batch.compiles.push(compile);
                }
                None => batches.push(Batch { compiles: vec![compile], milliseconds }),
            }
            if batches.get(index).is_some_and(|batch| batch.milliseconds >= LONG) {
                open.remove(&place);
            }
        }
        batches.sort_by_key(|batch| Reverse(batch.milliseconds));
        batches
    }

    /// Estimates the time of a compile in milliseconds: NVRTC 13.0 starts in 40, reads 3 MB of text per second, and
    /// compiles short kernels in 5 each.
    fn estimate(&self, compile: &Compile<'_>) -> u64 {
        const TEXT: usize = 3000;
        let first = compile.units.first();
        let text = first.map_or(0, |unit| {
            let headers = unit.dependencies.found().map(|(file, _)| self.files.length(file));
            unit.unit.text.len() + headers.sum::<usize>()
        });
        40 + (text / TEXT) as u64 + 5 * compile.units.len() as u64
    }

    /// Lets a worker execute a batch, and stores the results in the local cache, and in the shared one if it accepts them.
    pub fn execute(&self, batch: &Batch<'_>) {
        let Some(sharing) = &self.sharing else { return };
        let mut joined: Option<CompileAction> = None;
        let mut members = Vec::new();
        for compile in &batch.compiles {
            let Compile { units, .. } = compile;
            let (action, folders) = match self.action(&sharing.root, units, compile.purpose(), members.len())
            {
                Ok(found) => found,
                Err(reason) => {
                    sharing.count_unshared(&self.compile_key(compile), reason);
                    continue;
                }
            };
            let is_joined = match &mut joined {
                None => true,
                Some(joined) => joined.join(&action, members.len() + 1),
            };
            // Otherwise, it is compiled here.
            if is_joined {
                joined.get_or_insert(action);
                members.push((compile, folders));
            }
        }
        // An input that cannot be sent was reported.
        let Some(entry) = joined.and_then(|action| sharing.cache.entry(action).ok()) else { return };
        let Some(mut outputs) = entry.execute() else { return };
        for (number, (compile, folders)) in members.into_iter().enumerate() {
            let own = shared::take_outputs(&mut outputs, number);
            // A compile here has the messages.
            if shared::is_not_compiled(&own) {
                continue;
            }
            if let Err(reason) = self.accept_executed(compile, own, &folders) {
                sharing.reject(entry.as_ref(), &reason);
            }
        }
    }

    fn accept_executed(
        &self,
        compile: &Compile<'_>,
        outputs: Outputs,
        folders: &[Folder],
    ) -> Result<(), Unusable> {
        let Compile { units, target, is_signatures } = compile;
        let key = self.compile_key(compile);
        let count = match is_signatures {
            true => {
                let keys = self.signature_keys(units, *target);
                self.accept_signatures(units, &keys, &outputs, folders)?.len() as u64
            }
            false => {
                self.keep_accepted(&key, self.accept_code(units, *target, &key, outputs.clone(), folders)?);
                1
            }
        };
        self.sharing.iter().for_each(|sharing| sharing.mark_fetched(key));
        self.count(|statistics| statistics.executed += count);
        let _pushed = self.share(compile.kind(), units, compile.purpose(), |_| Ok(outputs));
        Ok(())
    }
}
