/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of the instruction set for the lane loops. */
#include "softgpu/engine/engine.h"
#include "softgpu/engine/lanes/lane.h"

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

/* The first CPUs with AVX-512 reduce their clock for it; CPUs with VBMI2 do not. */
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
