// What scalars.toml launches.

namespace tiles {

__global__ void scalars(const __nv_bfloat16* x, int* y, int rows, int columns, signed char signed_8, short signed_16,
                        int signed_32, long long signed_64, unsigned char unsigned_8, unsigned short unsigned_16,
                        unsigned unsigned_32, unsigned long long unsigned_64, float single, double number, bool flag,
                        cubinder::array<signed char, 2> signed_8s, cubinder::array<unsigned short, 3> unsigned_16s,
                        cubinder::array<unsigned long long, 2> unsigned_64s, cubinder::array<double, 2> doubles,
                        cubinder::array<bool, 2> flags)
{
    extern __shared__ float tile[];
    const int column = blockIdx.x * manifest::TILE + threadIdx.x;
    const int lane = threadIdx.y + blockDim.y * threadIdx.z;
    tile[threadIdx.x] = manifest::CLAMPS ? manifest::SLOPE : manifest::SLOPE * threadIdx.x;
    __syncthreads();
    const long long integers = signed_8 + signed_16 + signed_32 + signed_64 + signed_8s[0] + signed_8s[1] + manifest::BIAS;
    const unsigned long long unsigneds = unsigned_8 + unsigned_16 + unsigned_32 + unsigned_64 + unsigned_16s[0] +
                                         unsigned_16s[2] + unsigned_64s[0] + unsigned_64s[1] + manifest::LARGE;
    const double floats = single + number + doubles[0] + doubles[1] + flag + flags[0] + flags[1] + tile[threadIdx.x];
    for (int row = blockIdx.y * manifest::TILE + lane; row < min(rows, (static_cast<int>(blockIdx.y) + 1) * manifest::TILE); row += 8)
        if (column < columns)
            y[static_cast<long long>(row) * columns + column] =
                static_cast<int>(integers + unsigneds + floats + static_cast<float>(x[row]));
}

} // namespace tiles
