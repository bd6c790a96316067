//! A plugin library with one quick creator, `quick_scale_plugin`, known to the oracle (`check_quick.cpp`). Its kernels
//! never run. `ORACLE_FAULT`: a planted fault.

use std::ffi::{CStr, CString};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use trt_abi::{
    CreatorBase, CreatorList, DataType, DimensionOperation, DynamicPluginTensorDesc, Error, Expr,
    ExprBuilder, Field, FieldNames, Identity, PluginBase, PluginFieldType, PluginTensorDesc, QuickCreator,
    QuickKernel, QuickLaunch, QuickPlugin, QuickPluginCreationRequest, Shape, TensorFormat, TensorRTPhase,
};

const TYPES: [(DataType, &CStr); 2] = [(DataType::HALF, c"scale_f16"), (DataType::FLOAT, c"scale_f32")];

/// Best first.
const TACTICS: [i32; 2] = [2, 1];

fn fault(name: &str) -> bool {
    std::env::var_os("ORACLE_FAULT").is_some_and(|fault| fault == name)
}

fn code() -> Arc<[String]> {
    let of_type = |(_, name): &(DataType, &CStr)| {
        [1, 2].map(|tactic| format!("// {} {tactic}\n.version 8.0\n", name.to_string_lossy()))
    };
    TYPES.iter().flat_map(of_type).collect()
}

struct Scale {
    block: i32,
    tactic: Arc<AtomicI32>,
    timing_cache_id: CString,
    metadata: CString,
    code: Arc<[String]>,
    copies: Arc<[String]>,
    kernels: AtomicI32,
}

impl Scale {
    fn new(block: i32) -> Self {
        let text = |text: String| CString::new(text).unwrap_or_default();
        Self {
            block,
            tactic: Arc::default(),
            timing_cache_id: text(format!("block {block}")),
            metadata: text(format!("quick_scale_plugin, blocks of {block}")),
            code: code(),
            copies: code(),
            kernels: AtomicI32::new(0),
        }
    }

    fn tactic(&self) -> i32 {
        if fault("tactic ignored") { 1 } else { self.tactic.load(Ordering::Relaxed).max(1) }
    }

    fn launch_over<'b>(
        &self,
        input: &Shape<'b>,
        builder: &ExprBuilder<'b>,
    ) -> Result<QuickLaunch<'b>, Error> {
        use DimensionOperation as Op;
        let number = |value: i32| builder.constant(i64::from(value));
        let (rows, columns) = (input.get(0)?, input.get(1)?);
        let count = builder.operation(Op::PROD, rows, columns)?;
        let (division, tactic) =
            (if fault("grid rounded down") { Op::FLOOR_DIV } else { Op::CEIL_DIV }, self.tactic());
        if fault("threads race") {
            // Briefly sets another tactic.
            let before = self.tactic.swap(2, Ordering::Relaxed);
            std::thread::yield_now();
            self.tactic.store(before, Ordering::Relaxed);
        }
        let blocks = builder.operation(division, count, number(self.block * tactic)?)?;
        let mut grid: [Expr<'b>; 3] = [blocks, rows, number(2)?];
        if fault("grid turned") {
            grid.reverse();
        }
        let mut scalars = vec![count, rows, number(tactic)?];
        if fault("scalars turned") {
            scalars.reverse();
        }
        if fault("scalar missing") {
            scalars.truncate(2);
        }
        Ok(QuickLaunch {
            grid,
            block: [number(self.block)?, number(3)?, number(4)?],
            shared_bytes: builder.operation(
                Op::PROD,
                columns,
                number(if fault("shared memory") { 8 } else { 16 })?,
            )?,
            scalars,
        })
    }
}

impl Clone for Scale {
    fn clone(&self) -> Self {
        let own = || Arc::new(AtomicI32::new(self.tactic.load(Ordering::Relaxed)));
        Self {
            block: self.block,
            tactic: if fault("clone shares state") { self.tactic.clone() } else { own() },
            timing_cache_id: self.timing_cache_id.clone(),
            metadata: self.metadata.clone(),
            code: self.code.clone(),
            copies: self.copies.clone(),
            kernels: AtomicI32::new(0),
        }
    }
}

impl PluginBase for Scale {
    fn identity(&self) -> &Identity {
        if fault("core name") {
            return const { &Identity::new(c"scale", c"1", c"sample") };
        }
        const { &Identity::new(c"quick_scale_plugin", c"1", c"sample") }
    }
    fn output_count(&self) -> usize {
        if fault("three outputs") { 3 } else { 2 }
    }
    fn output_shapes<'b>(
        &self,
        inputs: &[Shape<'b>],
        _shape_inputs: &[Shape<'b>],
        builder: &ExprBuilder<'b>,
        outputs: &mut [Shape<'b>],
    ) -> Result<(), Error> {
        let (rows, columns) = (inputs[0].get(0)?, inputs[0].get(1)?);
        let factor = if fault("output shape") { 3 } else { 2 };
        let doubled = builder.operation(DimensionOperation::PROD, rows, builder.constant(factor)?)?;
        outputs[0].set(&[doubled, columns])?;
        outputs[1].set(&[rows, columns])
    }
    fn configure(
        &self,
        inputs: &[DynamicPluginTensorDesc],
        outputs: &[DynamicPluginTensorDesc],
    ) -> Result<(), Error> {
        if (inputs.len(), outputs.len()) == (1, 2) && !fault("refuses to be configured") {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{} inputs and {} outputs, expected 1 and 2",
            inputs.len(),
            outputs.len()
        )))
    }
    fn aliased_input(&self, output: usize) -> Option<usize> {
        (output == 1 && !fault("alias missing")).then_some(0)
    }
    fn tactics(&self) -> Result<Vec<i32>, Error> {
        Ok(if fault("duplicate tactics") { vec![1, 1] } else { TACTICS.to_vec() })
    }
    fn timing_cache_id(&self) -> Option<&CStr> {
        if fault("timing cache id") { Some(c"block") } else { Some(&self.timing_cache_id) }
    }
    fn metadata(&self) -> Option<&CStr> {
        if fault("no metadata") { None } else { Some(&self.metadata) }
    }
    fn set_tactic(&self, tactic: i32) -> Result<(), Error> {
        if tactic != 0 && !TACTICS.contains(&tactic) && !fault("any tactic") {
            return Err(Error::invalid(format!("tactic {tactic} does not exist")));
        }
        self.tactic.store(tactic, Ordering::Relaxed);
        Ok(())
    }
    fn report(&self, error: &Error) {
        if !fault("no log") {
            trt_abi::logger::error_of(&self.identity().name, error);
        }
    }
}

impl QuickPlugin for Scale {
    fn output_types(
        &self,
        inputs: &[DataType],
        input_ranks: &[i32],
        outputs: &mut [DataType],
    ) -> Result<(), Error> {
        if input_ranks != [2] && !fault("ranks unread") {
            return Err(Error::invalid(format!("the input has rank {input_ranks:?}, expected [2]")));
        }
        outputs.fill(if fault("output type") { DataType::FLOAT } else { inputs[0] });
        Ok(())
    }
    fn format_combinations(
        &self,
        in_out: &[DynamicPluginTensorDesc],
        _input_count: usize,
    ) -> Result<Vec<Vec<PluginTensorDesc>>, Error> {
        let format = if fault("format") { TensorFormat::HWC } else { TensorFormat::LINEAR };
        let row = |(data_type, _): &(DataType, &CStr)| {
            let data_type = if fault("mixed types") { TYPES[0].0 } else { *data_type };
            in_out.iter().map(|tensor| PluginTensorDesc { data_type, format, ..tensor.desc }).collect()
        };
        Ok(TYPES.iter().map(row).collect())
    }
    fn launch<'b>(
        &self,
        inputs: &[Shape<'b>],
        _in_out: &[DynamicPluginTensorDesc],
        _input_count: usize,
        builder: &ExprBuilder<'b>,
    ) -> Result<QuickLaunch<'b>, Error> {
        let launch = self.launch_over(&inputs[0], builder);
        if launch.is_err() && fault("null dimension") {
            let rows = inputs[0].get(0)?;
            return Ok(QuickLaunch {
                grid: [rows; 3],
                block: [rows; 3],
                shared_bytes: rows,
                scalars: vec![],
            });
        }
        launch
    }
    fn kernel(
        &self,
        inputs: &[PluginTensorDesc],
        _outputs: &[PluginTensorDesc],
    ) -> Result<QuickKernel<'_>, Error> {
        let wanted = inputs[0].data_type;
        let index = TYPES.iter().position(|(data_type, _)| *data_type == wanted);
        let index = index.or(fault("any type").then_some(0));
        let index = index.ok_or_else(|| Error::invalid(format!("no kernel of type {wanted:?}")))?;
        let name = TYPES[if fault("kernel name") { 0 } else { index }].1;
        let moves = fault("code moves") && self.kernels.fetch_add(1, Ordering::Relaxed) % 2 == 0;
        let code = if moves { &self.copies } else { &self.code };
        let of_tactic = if self.tactic() == 2 { 1 } else { 0 };
        Ok(QuickKernel { name, code: code[2 * index + of_tactic].as_bytes() })
    }
}

struct ScaleCreator {
    fields: FieldNames,
}

impl CreatorBase for ScaleCreator {
    fn identity(&self) -> &Identity {
        const { &Identity::new(c"quick_scale_plugin", c"1", c"sample") }
    }
    fn fields(&self) -> &FieldNames {
        &self.fields
    }
    fn report(&self, error: &Error) {
        if !fault("refuses without a word") {
            trt_abi::logger::error_of(&self.identity().name, error);
        }
    }
}

impl QuickCreator for ScaleCreator {
    type Plugin = Scale;

    fn create(
        &self,
        _name: &CStr,
        _namespace: &CStr,
        fields: &[Field<'_>],
        _phase: TensorRTPhase,
        request: QuickPluginCreationRequest,
    ) -> Result<Scale, Error> {
        if (request == QuickPluginCreationRequest::STRICT_JIT || request.name().is_none())
            && !fault("any request")
        {
            return Err(Error::invalid(format!(
                "{request:?} is requested, but this is an ahead-of-time plugin"
            )));
        }
        let block = fields.iter().find(|field| field.name() == c"block");
        match block.map(Field::i32s).transpose()?.as_deref() {
            Some([block]) if *block > 0 => Ok(Scale::new(*block)),
            _ if fault("any block") => Ok(Scale::new(1)),
            _ => Err(Error::invalid("`block` must be one positive number")),
        }
    }
}

fn creators() -> Result<CreatorList, Error> {
    let mut list = CreatorList::new();
    list.push_quick(ScaleCreator { fields: FieldNames::new([(c"block", PluginFieldType::INT32)])? });
    Ok(list)
}

trt_abi::plugin_library!(creators);
