/* SPDX-License-Identifier: Apache-2.0 */
/* Device variables, written and read by name. */
#include "app.h"

static __constant__ float factors[8];
static __device__ float table[100] = { 1.5f, 2.5f };
static __device__ int counter;
__device__ double exported = 6.25;

static __global__ void
use(float *out)
{
	int i = threadIdx.x;

	out[i] = table[i] * factors[i % 8];
	atomicAdd(&counter, 1);
	if (i == 0)
		exported = exported * 2;
}

int
main()
{
	float host_factors[8], host_table[100], *device_table;
	double host_exported;
	int count = 5;
	size_t size;

	CHECK(cudaMemcpyFromSymbol(host_table, table, sizeof(host_table)));
	REQUIRE(host_table[0] == 1.5f && host_table[1] == 2.5f && host_table[2] == 0.0f);
	for (int i = 0; i < 8; i++)
		host_factors[i] = (float)(i + 1);
	for (int i = 0; i < 100; i++)
		host_table[i] = i * 0.25f;
	CHECK(cudaMemcpyToSymbol(factors, host_factors, sizeof(host_factors)));
	CHECK(cudaMemcpyToSymbol(table, host_table + 50, 50 * sizeof(float), 50 * sizeof(float)));
	CHECK(cudaMemcpyToSymbolAsync(counter, &count, sizeof(count), 0, cudaMemcpyHostToDevice));
	CHECK(cudaGetSymbolAddress((void **)&device_table, table));
	CHECK(cudaGetSymbolSize(&size, table));
	REQUIRE(size == sizeof(host_table));
	CHECK(cudaGetSymbolSize(&size, factors));
	REQUIRE(size == sizeof(host_factors));
	/* The other half, by address. */
	CHECK(cudaMemcpy(device_table, host_table, 50 * sizeof(float), cudaMemcpyHostToDevice));

	float *out = app_malloc<float>(100);
	use<<<1, 100>>>(out);
	CHECK(cudaGetLastError());
	std::vector<float> result = app_download(out, 100);
	for (int i = 0; i < 100; i++)
		REQUIRE(result[i] == host_table[i] * host_factors[i % 8]);
	CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof(count)));
	REQUIRE(count == 105);
	CHECK(cudaMemcpyFromSymbol(&host_exported, exported, sizeof(host_exported)));
	REQUIRE(host_exported == 12.5);

	EXPECT(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(&count, &count, sizeof(count)));
	EXPECT(cudaErrorInvalidValue,
	       cudaMemcpyFromSymbol(host_table, counter, sizeof(host_table)));
	CHECK(cudaFree(out));
	return app_ok("symbols");
}
