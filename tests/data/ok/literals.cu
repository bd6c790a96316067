template <typename I>
__global__ void literals(const unsigned char* x, signed char* y, I big)
{
    y[threadIdx.x] = static_cast<signed char>(x[threadIdx.x] + big);
}
