// A kernel with template parameters, for names that nothing declares.
namespace ops {

template <typename T, int VEC>
__global__ void copy(const T* x, T* y, long long count)
{
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < count * VEC; i += gridDim.x * 256LL)
        y[i] = x[i];
}

}  // namespace ops
