/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/engine/engine.h"

#include "base/machine.h"
#include "softgpu/engine/fault.h"
#include "softgpu/engine/lanes/lane.h"
#include "softgpu/engine/run/launch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void
options_from_environment(struct gs_engine_options *options)
{
	const char *count = getenv("GS_WORKERS");
	const char *isa = getenv("GS_ISA");

	if (count)
		options->workers = atoi(count);
	if (isa && strcmp(isa, "baseline") == 0)
		options->isa = GS_ISA_BASELINE;
	else if (isa && strcmp(isa, "avx2") == 0)
		options->isa = GS_ISA_AVX2;
	else if (isa && strcmp(isa, "avx512") == 0)
		options->isa = GS_ISA_AVX512;
}

static int
start(const struct gs_engine_options *options)
{
	int count = options->workers;
	int r = gs_lanes_choose(options->isa);

	if (r != GS_OK)
		return r;
	if (count <= 0)
		count = (int)gp_machine_processors("");
	gs_fault_catch();
	return gs_workers_start(count < 1 ? 1 : count > 256 ? 256 : count);
}

int
gs_engine_init(const struct gs_engine_options *options)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool started;
	struct gs_engine_options used = { 0 };
	int r = GS_OK;

	if (options)
		used = *options;
	else
		options_from_environment(&used);
	pthread_mutex_lock(&lock);
	if (!started) {
		r = start(&used);
		started = r == GS_OK;
	}
	pthread_mutex_unlock(&lock);
	return r;
}
