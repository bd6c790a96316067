//! Random texts that are almost CUDA.

use proptest::prelude::*;

/// Separated by `¦`.
const PIECES: &str = "__global__ ¦void ¦k¦(¦)¦{¦}¦<¦>¦,¦;¦template ¦typename T¦int ¦const ¦*¦x¦\n#if A\n¦\n#else\n¦\n#endif\n¦\
    \n#define k x\n¦namespace a¦::¦:¦extern \"C\" ¦...¦[¦]¦=¦\"¦'¦/*¦*/¦//¦\n¦\\\n¦R\"(¦)\"¦requires ¦__launch_bounds__¦0¦é¦using ¦&¦->";

/// Generates concatenated pieces, which resemble kernels more often than random characters.
pub(crate) fn cuda_pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(PIECES.split('¦').collect::<Vec<_>>());
    prop::collection::vec(piece, 0..48).prop_map(|pieces| pieces.concat())
}
