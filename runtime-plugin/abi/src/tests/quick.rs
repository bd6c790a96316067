use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use super::{FAILURE, Mood, Record};
use crate::{
    CreatorBase, DataType, DimensionOperation, DynamicPluginTensorDesc, Error, ExprBuilder, Field,
    FieldNames, Identity, PluginBase, PluginFieldType, PluginTensorDesc, QuickCreator, QuickKernel,
    QuickLaunch, QuickPlugin, QuickPluginCreationRequest, Shape, TensorRTPhase,
};

pub(crate) struct QuickProbe {
    pub(crate) mood: Mood,
    pub(crate) record: Arc<Record>,
    pub(crate) tactic: AtomicI32,
    pub(crate) leave_outputs_unset: bool,
    pub(crate) types: Vec<DataType>,
    pub(crate) surplus: usize,
    pub(crate) scalar_count: i64,
    pub(crate) divisor: i64,
    pub(crate) name: CString,
    pub(crate) code: Vec<u8>,
}

impl QuickProbe {
    pub(crate) fn new(mood: Mood) -> Self {
        let record = Arc::new(Record::default());
        record.alive.store(1, Ordering::Relaxed);
        Self {
            mood,
            record,
            tactic: AtomicI32::new(0),
            leave_outputs_unset: false,
            types: vec![DataType::HALF, DataType::FLOAT],
            surplus: 0,
            scalar_count: 2,
            divisor: 256,
            name: c"scale".to_owned(),
            code: b".version 8.0\0".to_vec(),
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

impl Clone for QuickProbe {
    fn clone(&self) -> Self {
        self.panic_unless_well();
        self.record.alive.fetch_add(1, Ordering::Relaxed);
        Self {
            record: self.record.clone(),
            tactic: AtomicI32::new(self.tactic.load(Ordering::Relaxed)),
            types: self.types.clone(),
            name: self.name.clone(),
            code: self.code.clone(),
            ..*self
        }
    }
}

impl Drop for QuickProbe {
    fn drop(&mut self) {
        self.record.alive.fetch_sub(1, Ordering::Relaxed);
        self.record.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl PluginBase for QuickProbe {
    fn identity(&self) -> &Identity {
        self.panic_unless_well();
        const { &Identity::new(c"quick_probe", c"3", c"sample") }
    }
    fn output_count(&self) -> usize {
        self.panic_unless_well();
        2
    }
    fn output_shapes<'b>(
        &self,
        inputs: &[Shape<'b>],
        _shape_inputs: &[Shape<'b>],
        _builder: &ExprBuilder<'b>,
        outputs: &mut [Shape<'b>],
    ) -> Result<(), Error> {
        self.act()?;
        if !self.leave_outputs_unset {
            outputs.fill(inputs[0]);
        }
        Ok(())
    }
    fn configure(
        &self,
        inputs: &[DynamicPluginTensorDesc],
        outputs: &[DynamicPluginTensorDesc],
    ) -> Result<(), Error> {
        self.act()?;
        assert_eq!((inputs.len(), outputs.len()), (1, 2));
        Ok(())
    }
    fn aliased_input(&self, output: usize) -> Option<usize> {
        self.panic_unless_well();
        (output == 1).then_some(0)
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
    fn set_tactic(&self, tactic: i32) -> Result<(), Error> {
        self.act()?;
        self.tactic.store(tactic, Ordering::Relaxed);
        Ok(())
    }
    fn report(&self, error: &Error) {
        self.record.reports.lock().unwrap().push(error.clone());
        assert!(self.mood != Mood::Panicking, "asked to panic while reporting");
    }
}

impl QuickPlugin for QuickProbe {
    fn output_types(
        &self,
        inputs: &[DataType],
        input_ranks: &[i32],
        outputs: &mut [DataType],
    ) -> Result<(), Error> {
        self.act()?;
        if !self.leave_outputs_unset && input_ranks == [4] {
            outputs.fill(inputs[0]);
        }
        Ok(())
    }
    fn format_combinations(
        &self,
        in_out: &[DynamicPluginTensorDesc],
        input_count: usize,
    ) -> Result<Vec<Vec<PluginTensorDesc>>, Error> {
        self.act()?;
        assert_eq!(input_count, 1);
        let row = |data_type: &DataType| {
            let mut row: Vec<_> = in_out
                .iter()
                .map(|tensor| PluginTensorDesc { data_type: *data_type, ..tensor.desc })
                .collect();
            row.resize(row.len() + self.surplus, row[0]);
            row
        };
        Ok(self.types.iter().map(row).collect())
    }
    fn launch<'b>(
        &self,
        inputs: &[Shape<'b>],
        in_out: &[DynamicPluginTensorDesc],
        input_count: usize,
        builder: &ExprBuilder<'b>,
    ) -> Result<QuickLaunch<'b>, Error> {
        self.act()?;
        assert_eq!((in_out.len(), input_count), (3, 1));
        let constant = |value| builder.constant(value);
        let divisor = constant(self.divisor)?;
        let blocks = builder.operation(DimensionOperation::FLOOR_DIV, inputs[0].get(0)?, divisor)?;
        let scalars = (0..self.scalar_count).map(|index| constant(70 + index));
        Ok(QuickLaunch {
            grid: [blocks, constant(2)?, constant(3)?],
            block: [constant(4)?, constant(5)?, constant(6)?],
            shared_bytes: constant(i64::from(self.tactic.load(Ordering::Relaxed)))?,
            scalars: scalars.collect::<Result<_, _>>()?,
        })
    }
    fn kernel(
        &self,
        inputs: &[PluginTensorDesc],
        outputs: &[PluginTensorDesc],
    ) -> Result<QuickKernel<'_>, Error> {
        self.act()?;
        assert_eq!((inputs.len(), outputs.len()), (1, 2));
        Ok(QuickKernel { name: &self.name, code: &self.code })
    }
}

pub(crate) struct QuickProbeCreator {
    pub(crate) mood: Mood,
    pub(crate) names: FieldNames,
    pub(crate) seen: Arc<Mutex<Vec<String>>>,
    pub(crate) record: Arc<Record>,
}

impl QuickProbeCreator {
    pub(crate) fn new(mood: Mood) -> Self {
        let names = FieldNames::new([(c"factor", PluginFieldType::FLOAT32)]).unwrap();
        Self { mood, names, seen: Arc::default(), record: Arc::default() }
    }
}

impl CreatorBase for QuickProbeCreator {
    fn identity(&self) -> &Identity {
        assert!(self.mood != Mood::Panicking, "asked to panic");
        const { &Identity::new(c"quick_probe", c"3", c"sample") }
    }
    fn fields(&self) -> &FieldNames {
        &self.names
    }
    fn report(&self, error: &Error) {
        self.record.reports.lock().unwrap().push(error.clone());
    }
}

impl QuickCreator for QuickProbeCreator {
    type Plugin = QuickProbe;

    fn create(
        &self,
        name: &CStr,
        namespace: &CStr,
        fields: &[Field<'_>],
        phase: TensorRTPhase,
        request: QuickPluginCreationRequest,
    ) -> Result<QuickProbe, Error> {
        self.seen.lock().unwrap().push(format!("{name:?} {namespace:?} {fields:?} {phase:?} {request:?}"));
        match self.mood {
            Mood::Panicking => panic!("asked to panic"),
            Mood::Failing => Err(Error::new(FAILURE, "asked to fail")),
            Mood::Well if request == QuickPluginCreationRequest::STRICT_JIT => {
                Err(Error::invalid("only an ahead-of-time plugin is supported"))
            }
            Mood::Well => Ok(QuickProbe::new(Mood::Well)),
        }
    }
}
