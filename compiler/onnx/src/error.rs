//! What is wrong with a file.

/// Why a model cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The bytes are no ONNX model.
    #[error("it is no ONNX model: at byte {at}, in {message}: {what}")]
    Format {
        /// Where, from the beginning of the file.
        at: u64,
        /// The message of the format that is being read: `NodeProto`.
        message: &'static str,
        /// What is there.
        what: String,
    },
    /// The file ends before what it says it holds.
    #[error("the file ends in the middle: at byte {at}, in {message}: {what}")]
    CutOff {
        /// Where what is cut off begins, from the beginning of the file.
        at: u64,
        /// The message of the format that is being read.
        message: &'static str,
        /// What is missing.
        what: String,
    },
    /// Nothing in the bytes is wrong, and there is no network in them.
    #[error("it is no ONNX model: it holds no graph")]
    NoGraph,
    /// A model that nobody needs and that would take too much memory or stack.
    #[error("it is beyond what is read: at byte {at}, {what}")]
    Limit {
        /// Where, from the beginning of the file.
        at: u64,
        /// What is too large.
        what: String,
    },
}
