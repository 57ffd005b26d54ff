/* SPDX-License-Identifier: Apache-2.0 */
/* Adds two vectors whose length is not a multiple of the block size. */
#include "app.h"

static __global__ void
add(const float *a, const float *b, float *sum, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		sum[i] = a[i] + b[i];
}

int
main()
{
	const int count = 50000;
	std::vector<float> a(count), b(count);

	for (int i = 0; i < count; i++) {
		a[i] = i * 0.5f;
		b[i] = 3.0f * i - 7.0f;
	}
	float *da = app_upload(a);
	float *db = app_upload(b);
	float *dsum = app_malloc<float>(count);
	add<<<(count + 255) / 256, 256>>>(da, db, dsum, count);
	CHECK(cudaGetLastError());
	std::vector<float> sum = app_download(dsum, count);
	for (int i = 0; i < count; i++)
		REQUIRE(sum[i] == a[i] + b[i]);

	CHECK(cudaFree(da));
	CHECK(cudaFree(db));
	CHECK(cudaFree(dsum));
	return app_ok("vectoradd");
}
