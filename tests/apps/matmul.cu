/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix product with tiles in shared memory. The sizes of the matrices are not multiples of the
 * tile's. */
#include "app.h"

const int tile = 16;

static __global__ void
multiply(const float *a, const float *b, float *c, int rows, int inner, int columns)
{
	__shared__ float as[tile][tile];
	__shared__ float bs[tile][tile];
	int row = blockIdx.y * tile + threadIdx.y;
	int column = blockIdx.x * tile + threadIdx.x;
	float sum = 0;

	for (int start = 0; start < inner; start += tile) {
		int ka = start + threadIdx.x;
		int kb = start + threadIdx.y;
		as[threadIdx.y][threadIdx.x] =
			row < rows && ka < inner ? a[row * inner + ka] : 0.0f;
		bs[threadIdx.y][threadIdx.x] =
			kb < inner && column < columns ? b[kb * columns + column] : 0.0f;
		__syncthreads();
		for (int k = 0; k < tile; k++)
			sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
		__syncthreads();
	}
	if (row < rows && column < columns)
		c[row * columns + column] = sum;
}

int
main()
{
	const int rows = 100, inner = 77, columns = 130;
	std::vector<float> a(rows * inner), b(inner * columns);

	/* Small integers, so that every sum is exact in any order. */
	for (size_t i = 0; i < a.size(); i++)
		a[i] = (float)((int)(i * 7 % 19) - 9);
	for (size_t i = 0; i < b.size(); i++)
		b[i] = (float)((int)(i * 5 % 23) - 11);
	float *da = app_upload(a);
	float *db = app_upload(b);
	float *dc = app_malloc<float>(rows * columns);
	dim3 grid((columns + tile - 1) / tile, (rows + tile - 1) / tile);
	multiply<<<grid, dim3(tile, tile)>>>(da, db, dc, rows, inner, columns);
	CHECK(cudaGetLastError());
	std::vector<float> c = app_download(dc, rows * columns);

	for (int row = 0; row < rows; row++) {
		for (int column = 0; column < columns; column++) {
			float sum = 0;
			for (int k = 0; k < inner; k++)
				sum += a[row * inner + k] * b[k * columns + column];
			REQUIRE(c[row * columns + column] == sum);
		}
	}
	CHECK(cudaFree(da));
	CHECK(cudaFree(db));
	CHECK(cudaFree(dc));
	return app_ok("matmul");
}
