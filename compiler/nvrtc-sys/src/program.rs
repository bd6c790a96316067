//! One compile: create, add names, compile, read the results, destroy.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;
use std::ptr;

use serde::{Deserialize, Serialize};

use crate::api::{COMPILATION, INVALID_OPTION, Nvrtc, ProgramHandle, ResultCode, SUCCESS};
use crate::error::CompileError;

/// What to compile.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Program {
    /// The text.
    pub source: String,
    /// What NVRTC calls it in messages. Its folder is searched for quoted includes unless `--no-source-include` is given.
    pub name: String,
    /// Headers in memory: the name as in `#include`, and the text. They take precedence over every include folder.
    pub headers: Vec<(String, String)>,
    /// Options for NVRTC. The name of a folder may be any bytes but NUL.
    pub options: Vec<OsString>,
    /// C++ names of kernels whose symbols are wanted; a template named here is instantiated.
    pub name_expressions: Vec<String>,
}

/// The result of a compile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Warnings and remarks.
    pub log: String,
    /// The symbols, one for each name expression.
    pub lowered_names: Vec<String>,
    /// Machine code; empty where the target was virtual (`compute_80`).
    pub cubin: Vec<u8>,
    /// PTX text, without the NUL that NVRTC ends it with.
    pub ptx: Vec<u8>,
}

impl Nvrtc {
    /// Compiles one program.
    ///
    /// # Errors
    /// With NVRTC's log where it rejects the program or an option, and where a text holds a NUL byte.
    pub fn compile(&self, program: &Program) -> Result<Output, CompileError> {
        let names = strings(program.name_expressions.iter(), "name of a kernel")?;
        let options = strings(program.options.iter().map(|option| option.as_bytes()), "list of options")?;
        let handle = Handle::create(self, program)?;
        for name in &names {
            // SAFETY: the handle is live and the name a C string that outlives the handle.
            let code = unsafe { (self.add_name_expression)(handle.raw, name.as_ptr()) };
            handle.check("nvrtcAddNameExpression", code)?;
        }
        let pointers = pointers(&options);
        // SAFETY: the handle is live; the array holds as many C strings as its count says, all alive during the call.
        let code = unsafe { (self.compile_program)(handle.raw, count(options.len())?, pointers.as_ptr()) };
        handle.check("nvrtcCompileProgram", code)?;
        let lowered_names = names.iter().map(|name| handle.lowered_name(name)).collect::<Result<_, _>>()?;
        let cubin = handle.read("nvrtcGetCUBIN", self.cubin_size, self.cubin)?;
        let mut ptx = handle.read("nvrtcGetPTX", self.ptx_size, self.ptx)?;
        while ptx.last() == Some(&0) {
            ptx.pop();
        }
        Ok(Output { log: handle.log(), lowered_names, cubin, ptx })
    }
}

/// A program of NVRTC's, destroyed on drop.
struct Handle<'a> {
    api: &'a Nvrtc,
    raw: ProgramHandle,
}

impl<'a> Handle<'a> {
    fn create(api: &'a Nvrtc, program: &Program) -> Result<Handle<'a>, CompileError> {
        let source = string(&program.source, "source")?;
        let name = string(&program.name, "name of the source")?;
        let texts = strings(program.headers.iter().map(|(_, text)| text), "text of a header")?;
        let include_names = strings(program.headers.iter().map(|(name, _)| name), "name of a header")?;
        let mut handle = Handle { api, raw: ptr::null_mut() };
        // SAFETY: every pointer is to a live C string or to an array of as many as the count says; NVRTC copies them.
        let code = unsafe {
            (api.create_program)(
                &raw mut handle.raw,
                source.as_ptr(),
                name.as_ptr(),
                count(texts.len())?,
                pointers(&texts).as_ptr(),
                pointers(&include_names).as_ptr(),
            )
        };
        handle.check("nvrtcCreateProgram", code)?;
        Ok(handle)
    }

    fn check(&self, call: &'static str, code: ResultCode) -> Result<(), CompileError> {
        match code {
            SUCCESS => Ok(()),
            COMPILATION => Err(CompileError::Rejected(self.log())),
            INVALID_OPTION => Err(CompileError::Option(self.log())),
            code => Err(self.failed(call, code, self.api.describe(code))),
        }
    }

    fn failed(&self, call: &'static str, code: ResultCode, reason: String) -> CompileError {
        CompileError::Failed { call: call.into(), code, reason, log: self.log() }
    }

    fn lowered_name(&self, expression: &CStr) -> Result<String, CompileError> {
        let mut lowered: *const c_char = ptr::null();
        // SAFETY: the handle is live, the expression is one that was added to it, `lowered` is a live pointer to write.
        let code = unsafe { (self.api.get_lowered_name)(self.raw, expression.as_ptr(), &raw mut lowered) };
        self.check("nvrtcGetLoweredName", code)?;
        if lowered.is_null() {
            return Err(self.failed("nvrtcGetLoweredName", code, "no name was given back".to_owned()));
        }
        // SAFETY: not null; NVRTC owns the text, which ends in NUL and lives as long as the program.
        Ok(unsafe { CStr::from_ptr(lowered) }.to_string_lossy().into_owned())
    }

    /// Asks for a size, then for as many bytes.
    fn read(
        &self,
        call: &'static str,
        size_of: unsafe extern "C" fn(ProgramHandle, *mut usize) -> ResultCode,
        copy_out: unsafe extern "C" fn(ProgramHandle, *mut c_char) -> ResultCode,
    ) -> Result<Vec<u8>, CompileError> {
        let mut bytes = Vec::new();
        self.check(call, self.read_raw(size_of, copy_out, &mut bytes))?;
        Ok(bytes)
    }

    fn read_raw(
        &self,
        size_of: unsafe extern "C" fn(ProgramHandle, *mut usize) -> ResultCode,
        copy_out: unsafe extern "C" fn(ProgramHandle, *mut c_char) -> ResultCode,
        bytes: &mut Vec<u8>,
    ) -> ResultCode {
        let mut size = 0;
        // SAFETY: the handle is live and `size` a live integer to write.
        let code = unsafe { size_of(self.raw, &raw mut size) };
        if code != SUCCESS || size == 0 {
            return code;
        }
        bytes.resize(size, 0);
        // SAFETY: the handle is live and the buffer holds as many bytes as NVRTC has just said it will write.
        unsafe { copy_out(self.raw, bytes.as_mut_ptr().cast()) }
    }

    /// NVRTC's messages so far; empty where it has none to give.
    fn log(&self) -> String {
        if self.raw.is_null() {
            return String::new();
        }
        let mut bytes = Vec::new();
        if self.read_raw(self.api.log_size, self.api.log, &mut bytes) != SUCCESS {
            return String::new();
        }
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: the handle came from `nvrtcCreateProgram` and is destroyed once. A failure leaves nothing to do.
            unsafe { (self.api.destroy_program)(&raw mut self.raw) };
        }
    }
}

fn string(text: impl AsRef<[u8]>, what: &'static str) -> Result<CString, CompileError> {
    CString::new(text.as_ref()).map_err(|_| CompileError::Nul(what.into()))
}

fn strings(
    texts: impl Iterator<Item: AsRef<[u8]>>,
    what: &'static str,
) -> Result<Vec<CString>, CompileError> {
    texts.map(|text| string(text, what)).collect()
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).collect()
}

fn count(length: usize) -> Result<c_int, CompileError> {
    c_int::try_from(length).map_err(|_| CompileError::Failed {
        call: "nvrtcCompileProgram".into(),
        code: SUCCESS,
        reason: "more items than a C int can count".to_owned(),
        log: String::new(),
    })
}
