/* SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"

#include "fault.h"
#include "lane.h"
#include "launch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct gs_lanes gs_chosen_lanes;

#if defined(__x86_64__)
static bool
cpu_has(enum gs_isa isa)
{
	__builtin_cpu_init();
	if (isa == GS_ISA_AVX2)
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
		       __builtin_cpu_supports("bmi2");
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512cd");
}

static bool
cpu_has_vbmi2(void)
{
	return __builtin_cpu_supports("avx512vbmi2");
}

static void
fill(enum gs_isa isa)
{
	if (isa == GS_ISA_AVX512)
		gs_lanes_fill_avx512(&gs_chosen_lanes);
	else if (isa == GS_ISA_AVX2)
		gs_lanes_fill_avx2(&gs_chosen_lanes);
	else
		gs_lanes_fill_baseline(&gs_chosen_lanes);
}
#else
static bool
cpu_has(enum gs_isa isa)
{
	return false;
}

static bool
cpu_has_vbmi2(void)
{
	return false;
}

static void
fill(enum gs_isa isa)
{
	gs_lanes_fill_baseline(&gs_chosen_lanes);
}
#endif

/* The first CPUs with AVX-512 slow down for it; those that know VBMI2 do not. */
static enum gs_isa
best_isa(void)
{
	if (cpu_has(GS_ISA_AVX512) && cpu_has_vbmi2())
		return GS_ISA_AVX512;
	return cpu_has(GS_ISA_AVX2) ? GS_ISA_AVX2 : GS_ISA_BASELINE;
}

int
gs_lanes_choose(enum gs_isa isa)
{
	if (isa == GS_ISA_AUTO)
		isa = best_isa();
	if (isa != GS_ISA_BASELINE && !cpu_has(isa))
		return GS_INVALID_VALUE;
	fill(isa);
	return GS_OK;
}

const char *
gs_engine_isa(void)
{
	return gs_chosen_lanes.isa ? gs_chosen_lanes.isa : "none";
}

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
		count = (int)sysconf(_SC_NPROCESSORS_ONLN);
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
