#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;
use std::ptr;

use serde::{Deserialize, Serialize};

use crate::api::{COMPILATION, INVALID_OPTION, Nvrtc, ProgramHandle, ResultCode, SUCCESS};
use crate::error::CompileError;

/// Input of a compile.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Program {
    /// Source text.
    pub source: String,
    /// Name in messages; quoted includes search its folder, unless `--no-source-include` is set.
    pub name: String,
    /// Names and texts of headers in memory, which precede include folders.
    pub headers: Vec<(String, String)>,
    /// NVRTC's options, any bytes but NUL.
    pub options: Vec<OsString>,
    /// C++ names of the wanted kernels; templates are instantiated.
    pub name_expressions: Vec<String>,
}

/// Result of a compile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Warnings and remarks.
    pub log: String,
    /// Symbol of each name expression.
    pub lowered_names: Vec<String>,
    /// Machine code; empty for virtual targets (`compute_80`).
    pub cubin: Vec<u8>,
    /// PTX without its final NUL.
    pub ptx: Vec<u8>,
}

impl Nvrtc {
    /// Compiles a program; fails with NVRTC's log, or for a string with a NUL byte.
    pub fn compile(&self, program: &Program) -> Result<Output, CompileError> {
        let names = strings(program.name_expressions.iter(), "name of a kernel")?;
        let options = strings(program.options.iter().map(|option| option.as_bytes()), "list of options")?;
        let handle = Handle::create(self, program)?;
        for name in &names {
            // SAFETY: the handle is live; the C string outlives it.
            let code = unsafe { (self.add_name_expression)(handle.raw, name.as_ptr()) };
            handle.check("nvrtcAddNameExpression", code)?;
        }
        let pointers = pointers(&options);
        // SAFETY: the handle is live; the array has as many live C strings as its count.
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

/// Destroyed on drop.
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
        // SAFETY: all pointers refer to live C strings, and each array has as many as its count; NVRTC copies them.
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
        // SAFETY: the handle is live and has this expression; `lowered` is writable.
        let code = unsafe { (self.api.get_lowered_name)(self.raw, expression.as_ptr(), &raw mut lowered) };
        self.check("nvrtcGetLoweredName", code)?;
        if lowered.is_null() {
            return Err(self.failed("nvrtcGetLoweredName", code, "no name was returned".to_owned()));
        }
        // SAFETY: `lowered` is not null, and NVRTC keeps the NUL-terminated text as long as the program.
        Ok(unsafe { CStr::from_ptr(lowered) }.to_string_lossy().into_owned())
    }

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
        // SAFETY: the handle is live and `size` writable.
        let code = unsafe { size_of(self.raw, &raw mut size) };
        if code != SUCCESS || size == 0 {
            return code;
        }
        bytes.resize(size, 0);
        // SAFETY: the handle is live; the buffer has the reported size.
        unsafe { copy_out(self.raw, bytes.as_mut_ptr().cast()) }
    }

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
            // SAFETY: the handle is live and destroyed only here. Errors need no handling.
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
        reason: "the number of items exceeds a C int".to_owned(),
        log: String::new(),
    })
}
