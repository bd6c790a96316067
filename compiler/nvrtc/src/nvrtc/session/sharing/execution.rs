//! Compiles on workers: batches that take long in comparison with the start of an action.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::*;

/// A program to compile: code, or its kernels' signatures.
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
    pub fn count(&self) -> usize {
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
    /// Returns whether workers compile.
    #[must_use]
    pub fn can_execute(&self) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| sharing.cache.executes())
    }

    /// Groups the compiles without results here, the longest first. Machines without results have equal batches, which
    /// servers execute once.
    #[must_use]
    pub fn batches<'u>(&self, compiles: Vec<Compile<'u>>) -> Vec<Batch<'u>> {
        /// Starting an action took 110 to 500 ms in BuildBox.
        const LONG: u64 = 3000;
        let mut batches: Vec<Batch<'u>> = Vec::new();
        let mut open: HashMap<(Arc<Settings>, PathBuf, bool), usize> = HashMap::new();
        for compile in compiles {
            let Some(first) = compile.units.first() else { continue };
            if self.is_known(&compile) {
                continue;
            }
            let milliseconds = self.estimate(&compile);
            let trusts_toolkit = first.dependencies.trusts_toolkit;
            let group = (Arc::clone(&first.settings), first.unit.folder.clone(), trusts_toolkit);
            let index = *open.entry(group.clone()).or_insert(batches.len());
            match batches.get_mut(index) {
                Some(batch) => {
                    batch.milliseconds += milliseconds;
                    batch.compiles.push(compile);
                }
                None => batches.push(Batch { compiles: vec![compile], milliseconds }),
            }
            if batches.get(index).is_some_and(|batch| batch.milliseconds >= LONG) {
                open.remove(&group);
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

    /// Lets a worker execute a batch, or on failure each of its compiles: one may be the reason.
    pub fn execute(&self, batch: &Batch<'_>) {
        let mut waiting = batch.compiles.iter().collect::<Vec<_>>();
        while !waiting.is_empty() {
            let (is_executed, left) = self.execute_joined(&waiting);
            if !is_executed && waiting.len() - left.len() > 1 {
                waiting.iter().for_each(|compile| drop(self.execute_joined(&[compile])));
                return;
            }
            waiting = left;
        }
    }

    /// Executes the compiles that can be in one folder; returns whether a worker did, and the others.
    fn execute_joined<'c, 'u>(&self, compiles: &[&'c Compile<'u>]) -> (bool, Vec<&'c Compile<'u>>) {
        let (mut joined, mut members, mut left) = (None::<CompileAction>, Vec::new(), Vec::new());
        let Some(sharing) = &self.sharing else { return (false, left) };
        for &compile in compiles {
            let (units, key) = (&compile.units, self.compile_key(compile));
            lock(&sharing.executed).insert(key, None);
            match (self.action(&sharing.root, units, compile.purpose(), members.len()), &mut joined) {
                (Err(reason), _) => sharing.count_unshared(&key, reason),
                (Ok((action, _)), Some(joined)) if !joined.inputs_agree(&action) => left.push(compile),
                (Ok((action, folders)), joined) => {
                    match joined {
                        Some(joined) => joined.join(action),
                        None => *joined = Some(action),
                    }
                    members.push((compile, key, folders));
                }
            }
        }
        let Some(action) = joined else { return (true, left) };
        let Ok(entry) = sharing.cache.entry(action.executing(members.len())) else {
            members.iter().for_each(|(_, key, _)| sharing.count_unshared(key, UNREADABLE));
            return (true, left);
        };
        let Some(mut outputs) = entry.execute() else { return (false, left) };
        for (number, (compile, key, folders)) in members.into_iter().enumerate() {
            let own = shared::take_outputs(&mut outputs, number);
            // The compile here reports the errors.
            if shared::is_not_compiled(&own) {
                lock(&sharing.executed).insert(key, Some(shared::messages(&own)));
                continue;
            }
            if let Err(reason) = self.accept_executed(compile, key, own, &folders) {
                sharing.reject(entry.as_ref(), &key, &reason);
            }
        }
        (true, left)
    }

    /// Returns the code of a worker for a program that is in no batch.
    pub(in super::super) fn executed_code(
        &self,
        units: &[&PreparedUnit],
        target: Target,
        key: &Digest,
    ) -> Option<(CodeEntry, Code)> {
        self.execute_alone(Compile { units: units.to_vec(), target, is_signatures: false });
        self.take_accepted(key)
    }

    pub(in super::super) fn execute_alone(&self, compile: Compile<'_>) {
        let is_new = |sharing: &Sharing| !lock(&sharing.executed).contains_key(&self.compile_key(&compile));
        if self.can_execute() && self.sharing.as_ref().is_some_and(is_new) {
            self.execute(&Batch { compiles: vec![compile], milliseconds: 0 });
        }
    }

    fn accept_executed(
        &self,
        compile: &Compile<'_>,
        key: Digest,
        outputs: Outputs,
        folders: &[Folder],
    ) -> Result<(), Unusable> {
        let Compile { units, target, is_signatures } = compile;
        let (count, is_shared) = match is_signatures {
            true => {
                let keys = self.signature_keys(units, *target);
                (self.accept_signatures(units, &keys, &outputs, folders)?.len() as u64, true)
            }
            false => {
                let code = self.accept_code(units, *target, &key, outputs.clone(), folders)?;
                let is_shared = doubts(code.0.nvrtc).is_none();
                self.keep_accepted(&key, code);
                (1, is_shared)
            }
        };
        self.sharing.iter().for_each(|sharing| sharing.mark_fetched(key));
        self.count(|statistics| statistics.executed += count);
        if is_shared {
            let _stored = self.share(compile.kind(), units, compile.purpose(), |_| Ok(outputs));
        }
        Ok(())
    }
}
