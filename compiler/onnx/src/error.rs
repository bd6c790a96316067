/// Why a model cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// File cannot be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The bytes are not an ONNX model.
    #[error("not an ONNX model: at byte {at}, in {message}: {what}")]
    Format {
        /// Byte offset in the file.
        at: u64,
        /// Message being read: `NodeProto`.
        message: &'static str,
        /// Problem.
        what: String,
    },
    /// The file ends inside of a message.
    #[error("the file is truncated: at byte {at}, in {message}: {what}")]
    CutOff {
        /// Byte offset of the truncated part.
        at: u64,
        /// Message being read.
        message: &'static str,
        /// Missing part.
        what: String,
    },
    /// The bytes are valid but contain no graph.
    #[error("not an ONNX model: it contains no graph")]
    NoGraph,
    /// The model exceeds a limit on memory or stack use.
    #[error("the model exceeds a limit: at byte {at}, {what}")]
    Limit {
        /// Byte offset in the file.
        at: u64,
        /// Part that is too large.
        what: String,
    },
}
