//! A plugin and a creator that record calls and fail on demand.

mod quick;

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::{
    Creator, CreatorBase, DataType, DynamicPluginTensorDesc, Error, ExprBuilder, Field, FieldNames, FieldSet,
    FieldValue, Identity, Plugin, PluginBase, PluginFieldType, PluginTensorDesc, Shape, TensorRTPhase,
};

pub(crate) use quick::{QuickProbe, QuickProbeCreator};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Well,
    Failing,
    Panicking,
}

#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) alive: AtomicUsize,
    pub(crate) dropped: AtomicUsize,
    pub(crate) reports: Mutex<Vec<Error>>,
    pub(crate) enqueued: Mutex<Vec<usize>>,
}

impl Record {
    pub(crate) fn last_report(&self) -> Error {
        self.reports.lock().unwrap().last().unwrap().clone()
    }

    pub(crate) fn report_count(&self) -> usize {
        self.reports.lock().unwrap().len()
    }
}

pub(crate) struct Probe {
    pub(crate) mood: Mood,
    pub(crate) record: Arc<Record>,
    pub(crate) tactic: AtomicI32,
    pub(crate) aliased: bool,
    pub(crate) fails_to_attach: bool,
    pub(crate) leave_outputs_unset: bool,
    pub(crate) panic_in_drop: bool,
    pub(crate) pads: Vec<i32>,
    pub(crate) fields: Arc<FieldSet>,
}

pub(crate) fn i32_field(name: &CStr, values: &[i32]) -> FieldValue {
    let bytes = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    FieldValue::new(name, PluginFieldType::INT32, bytes).unwrap()
}

pub(crate) const FAILURE: i32 = 41;

impl Probe {
    pub(crate) fn new(mood: Mood) -> Self {
        Self::with_pads(mood, &[1, -2, 3])
    }

    pub(crate) fn with_pads(mood: Mood, pads: &[i32]) -> Self {
        let record = Arc::new(Record::default());
        record.alive.store(1, Ordering::Relaxed);
        let fields = vec![
            i32_field(c"pads", pads),
            FieldValue::new(c"code", PluginFieldType::INT8, b"ELF\0\x01".to_vec()).unwrap(),
            FieldValue::new(c"op", PluginFieldType::CHAR, b"circ_pad\0".to_vec()).unwrap(),
            FieldValue::new(c"none", PluginFieldType::FLOAT32, Vec::new()).unwrap(),
        ];
        Self {
            mood,
            record,
            tactic: AtomicI32::new(0),
            aliased: true,
            fails_to_attach: false,
            leave_outputs_unset: false,
            panic_in_drop: false,
            pads: pads.to_vec(),
            fields: Arc::new(FieldSet::new(fields).unwrap()),
        }
    }

    fn act(&self) -> Result<(), Error> {
        match self.mood {
            Mood::Well => Ok(()),
            Mood::Failing => Err(Error::new(FAILURE, "asked to fail")),
            Mood::Panicking => panic!("asked to panic"),
        }
    }

    fn panic_unless_well(&self) {
        assert!(self.mood == Mood::Well, "asked to panic");
    }
}

impl Clone for Probe {
    fn clone(&self) -> Self {
        self.panic_unless_well();
        self.record.alive.fetch_add(1, Ordering::Relaxed);
        Self {
            mood: self.mood,
            record: self.record.clone(),
            tactic: AtomicI32::new(self.tactic.load(Ordering::Relaxed)),
            pads: self.pads.clone(),
            fields: self.fields.clone(),
            ..*self
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.record.alive.fetch_sub(1, Ordering::Relaxed);
        self.record.dropped.fetch_add(1, Ordering::Relaxed);
        assert!(!self.panic_in_drop, "asked to panic in drop");
    }
}

impl PluginBase for Probe {
    fn identity(&self) -> &Identity {
        self.panic_unless_well();
        const { &Identity::new(c"Kernel", c"7", c"cubinder") }
    }
    fn output_count(&self) -> usize {
        self.panic_unless_well();
        2
    }
    fn output_shapes<'b>(
        &self,
        inputs: &[Shape<'b>],
        _shape_inputs: &[Shape<'b>],
        builder: &ExprBuilder<'b>,
        outputs: &mut [Shape<'b>],
    ) -> Result<(), Error> {
        self.act()?;
        if self.leave_outputs_unset {
            return Ok(());
        }
        let extent = inputs[0].get(0)?;
        let doubled = builder.operation(crate::DimensionOperation::PROD, extent, builder.constant(2)?)?;
        outputs.iter_mut().try_for_each(|output| output.set(&[doubled]))
    }
    fn configure(
        &self,
        _inputs: &[DynamicPluginTensorDesc],
        _outputs: &[DynamicPluginTensorDesc],
    ) -> Result<(), Error> {
        self.act()
    }
    fn tactics(&self) -> Result<Vec<i32>, Error> {
        self.act()?;
        Ok(vec![5, 3])
    }
    fn timing_cache_id(&self) -> Option<&CStr> {
        self.panic_unless_well();
        Some(c"id")
    }
    fn metadata(&self) -> Option<&CStr> {
        self.panic_unless_well();
        None
    }
    fn aliased_input(&self, output: usize) -> Option<usize> {
        self.panic_unless_well();
        (self.aliased && output == 1).then_some(0)
    }
    fn set_tactic(&self, tactic: i32) -> Result<(), Error> {
        self.act()?;
        self.tactic.store(tactic, Ordering::Relaxed);
        Ok(())
    }
    fn report(&self, error: &Error) {
        self.record.reports.lock().unwrap().push(error.clone());
        // The hook's panics must not escape either.
        assert!(self.mood != Mood::Panicking, "asked to panic while reporting");
    }
}

impl Plugin for Probe {
    fn output_types(&self, inputs: &[DataType], outputs: &mut [DataType]) -> Result<(), Error> {
        self.act()?;
        if !self.leave_outputs_unset {
            outputs.fill(inputs[0]);
        }
        Ok(())
    }
    fn supports(&self, position: usize, in_out: &[DynamicPluginTensorDesc], input_count: usize) -> bool {
        self.panic_unless_well();
        position < in_out.len() && input_count == 1
    }
    fn workspace_bytes(
        &self,
        inputs: &[DynamicPluginTensorDesc],
        outputs: &[DynamicPluginTensorDesc],
    ) -> Result<usize, Error> {
        self.act()?;
        Ok(100 * inputs.len() + outputs.len())
    }
    fn format_combination_limit(&self) -> i32 {
        self.panic_unless_well();
        9
    }
    fn on_shape_change(
        &self,
        _inputs: &[PluginTensorDesc],
        _outputs: &[PluginTensorDesc],
    ) -> Result<(), Error> {
        self.act()
    }
    unsafe fn enqueue(
        &self,
        input_descs: &[PluginTensorDesc],
        output_descs: &[PluginTensorDesc],
        inputs: &[*const c_void],
        outputs: &[*mut c_void],
        workspace: *mut c_void,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        self.act()?;
        *self.record.enqueued.lock().unwrap() = vec![
            input_descs.len(),
            output_descs.len(),
            inputs.len(),
            outputs.len(),
            inputs[0].addr(),
            outputs[1].addr(),
            workspace.addr(),
            stream.addr(),
        ];
        Ok(())
    }
    fn attach_to_context(&self) -> Result<Self, Error> {
        self.act()?;
        if self.fails_to_attach {
            return Err(Error::new(FAILURE, "asked to fail"));
        }
        Ok(self.clone())
    }
    fn fields_to_serialize(&self) -> Result<&FieldSet, Error> {
        self.act()?;
        Ok(&self.fields)
    }
}

pub(crate) struct ProbeCreator {
    pub(crate) mood: Mood,
    pub(crate) names: FieldNames,
    pub(crate) seen: Arc<Mutex<Vec<String>>>,
    pub(crate) record: Arc<Record>,
}

impl ProbeCreator {
    pub(crate) fn new(mood: Mood) -> Self {
        let names = [(c"pads", PluginFieldType::INT32), (c"aot", PluginFieldType::INT32)];
        let names = FieldNames::new(names).unwrap();
        Self { mood, names, seen: Arc::default(), record: Arc::default() }
    }
}

impl CreatorBase for ProbeCreator {
    fn identity(&self) -> &Identity {
        assert!(self.mood != Mood::Panicking, "asked to panic");
        const { &Identity::new(c"circ_pad", c"1", c"sample") }
    }
    fn fields(&self) -> &FieldNames {
        &self.names
    }
    fn report(&self, error: &Error) {
        self.record.reports.lock().unwrap().push(error.clone());
    }
}

impl Creator for ProbeCreator {
    type Plugin = Probe;

    fn create(&self, name: &CStr, fields: &[Field<'_>], phase: TensorRTPhase) -> Result<Probe, Error> {
        self.seen.lock().unwrap().push(format!("{name:?} {phase:?} {fields:?}"));
        match self.mood {
            Mood::Well => {}
            Mood::Failing => return Err(Error::new(FAILURE, "asked to fail")),
            Mood::Panicking => panic!("asked to panic"),
        }
        let pads = fields.iter().find(|field| field.name() == c"pads").map_or(Ok(Vec::new()), Field::i32s)?;
        Ok(Probe::with_pads(Mood::Well, &pads))
    }
}

/// For tests that change the process's finders.
pub(crate) static PROCESS_FINDERS: std::sync::Mutex<()> = std::sync::Mutex::new(());
