//! Errors of reading and changing models.

/// Why a model cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The bytes are not an ONNX model.
    #[error("it is no ONNX model: at byte {at}, in {message}: {what}")]
    Format {
        /// Byte offset in the file.
        at: u64,
        /// The message being read: `NodeProto`.
        message: &'static str,
        /// The problem.
        what: String,
    },
    /// The file ends inside of a message.
    #[error("the file ends in the middle: at byte {at}, in {message}: {what}")]
    CutOff {
        /// Byte offset of the truncated part.
        at: u64,
        /// The message being read.
        message: &'static str,
        /// The missing part.
        what: String,
    },
    /// The bytes are valid but contain no graph.
    #[error("it is no ONNX model: it holds no graph")]
    NoGraph,
    /// The model exceeds a limit on memory or stack use.
    #[error("it is beyond what is read: at byte {at}, {what}")]
    Limit {
        /// Byte offset in the file.
        at: u64,
        /// What is too large.
        what: String,
    },
}
