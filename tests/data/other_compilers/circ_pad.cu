// y is x with its last four dimensions extended by wrapping around: n are the extents of x, m those of y, b what is added before.
template <typename T>
__device__ void pad(const T* x, T* y, int count, int n0, int n1, int n2, int n3, int m1, int m2, int m3, int b0, int b1, int b2, int b3)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    const int s3 = (i % m3 + n3 - b3 % n3) % n3;
    const int s2 = (i / m3 % m2 + n2 - b2 % n2) % n2;
    const int s1 = (i / (m3 * m2) % m1 + n1 - b1 % n1) % n1;
    const int s0 = (i / (m3 * m2 * m1) + n0 - b0 % n0) % n0;
    y[i] = x[((s0 * n1 + s1) * n2 + s2) * n3 + s3];
}

extern "C" __global__ void circ_pad_4(const float* x, float* y, int count, int n0, int n1, int n2, int n3, int m1, int m2, int m3,
                                      int b0, int b1, int b2, int b3)
{
    pad(x, y, count, n0, n1, n2, n3, m1, m2, m3, b0, b1, b2, b3);
}

extern "C" __global__ void circ_pad_2(const unsigned short* x, unsigned short* y, int count, int n0, int n1, int n2, int n3, int m1,
                                      int m2, int m3, int b0, int b1, int b2, int b3)
{
    pad(x, y, count, n0, n1, n2, n3, m1, m2, m3, b0, b1, b2, b3);
}
