/* SPDX-License-Identifier: Apache-2.0 */
/* gs_bench FILE.ptx KERNEL BODIES: interactions per second of an n-body kernel, one worker. */
#include "softgpu/engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define BLOCK 256u

struct params {
	float *next;
	const float *bodies;
	uint32_t count;
};

static double
seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static char *
read_file(const char *path, size_t *size_p)
{
	FILE *file = fopen(path, "rb");
	char *text = malloc(16u << 20);

	if (!file || !text) {
		perror(path);
		exit(1);
	}
	*size_p = fread(text, 1, 16u << 20, file);
	fclose(file);
	return text;
}

static float *
device_memory(size_t size)
{
	void *memory = mmap((void *)(uintptr_t)GS_VA_BASE, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (memory == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return memory;
}

int
main(int argc, char **argv)
{
	const struct gs_engine_options options = { .workers = 1 };
	uint32_t count = argc > 3 ? (uint32_t)atoi(argv[3]) : 4096;
	struct gs_launch launch = { .params_size = sizeof(struct params) };
	struct gs_module *module;
	struct gs_error error;
	struct params params;
	double best = 1e9;
	char *text;
	size_t size;
	float *memory;

	if (argc < 3 || gs_engine_init(getenv("GS_ISA") ? NULL : &options) != GS_OK)
		return 2;
	text = read_file(argv[1], &size);
	if (gs_module_load(text, size, &module, &error) != GS_OK) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	memory = device_memory((size_t)count * 32);
	for (uint32_t i = 0; i < count * 4; i++)
		memory[i] = (float)((i * 2654435761u) >> 8) / 16777216.0f;
	params = (struct params){ memory + (size_t)count * 4, memory, count };
	launch.function = gs_module_function(module, argv[2]);
	launch.params = &params;
	launch.grid[0] = count / BLOCK;
	launch.block[0] = BLOCK;
	launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1;
	for (int i = 0; launch.function && i < 20; i++) {
		double start = seconds();

		if (gs_launch(&launch, &error) != GS_OK) {
			fprintf(stderr, "%s\n", error.text);
			return 1;
		}
		if (seconds() - start < best)
			best = seconds() - start;
	}
	printf("%s: %u bodies, %.0f million interactions/s\n", gs_engine_isa(), count,
	       (double)count * count / best / 1e6);
	gs_module_unload(module);
	free(text);
	return 0;
}
