/* SPDX-License-Identifier: Apache-2.0 */
/* __managed__ variables, which have one address for the program and for kernels. */
#include "app.h"

__managed__ int counter = 5;
__managed__ double table[3000];
__managed__ char text[] = "from the image";
__device__ int ordinary = 3;

static __global__ void
step()
{
	counter += ordinary;
	for (int i = 0; i < 3000; i++)
		table[i] = table[i] * 2 + i;
	text[0] = 'F';
}

/* Before any call of CUDA: the runtime initializes itself. */
static int before = counter;

int
main()
{
	cudaPointerAttributes attributes;
	size_t size = 0;
	void *found = nullptr;

	printf("at first: %d, %g, %s\n", before, table[2999], text);
	counter = 10;
	table[7] = 0.5;
	step<<<1, 1>>>();
	CHECK(cudaDeviceSynchronize());
	printf("one step: %d, %g, %g, %s\n", counter, table[7], table[2999], text);
	for (int i = 0; i < 3000; i++)
		REQUIRE(table[i] == (i == 7 ? 8 : i));
	for (int i = 0; i < 4; i++) {
		counter *= 2;
		table[i] = 100;
		step<<<1, 1>>>();
		CHECK(cudaDeviceSynchronize());
	}
	printf("more steps: %d, %g, %g\n", counter, table[3], table[2999]);

	CHECK(cudaPointerGetAttributes(&attributes, &counter));
	REQUIRE(attributes.type == cudaMemoryTypeManaged);
	REQUIRE(attributes.hostPointer == &counter && attributes.devicePointer == &counter);
	CHECK(cudaGetSymbolAddress(&found, counter));
	REQUIRE(found == &counter);
	CHECK(cudaGetSymbolSize(&size, table));
	REQUIRE(size == sizeof(table));

	int value = 77;
	CHECK(cudaMemcpyToSymbol(counter, &value, sizeof(value)));
	REQUIRE(counter == 77 && table[3] == 203);
	counter = 78;
	CHECK(cudaMemcpyFromSymbol(&value, counter, sizeof(value)));
	REQUIRE(value == 78);
	CHECK(cudaMemset(table, 0, 16));
	REQUIRE(table[0] == 0 && table[1] == 0 && table[3] == 203);
	return app_ok("managedvars");
}
