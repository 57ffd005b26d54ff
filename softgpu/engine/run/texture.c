/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface instructions of warps, lane by lane. */
#include "softgpu/engine/lanes/sample.h"
#include "softgpu/engine/memory/texture_table.h"
#include "softgpu/engine/run/run.h"

#include <string.h>

static uint32_t
word_at(const uint8_t *regs, uint32_t slot, int lane)
{
	return ((const uint32_t *)(const void *)(regs + slot))[lane];
}

static float
float_at(const uint8_t *regs, uint32_t slot, int lane)
{
	return ((const float *)(const void *)(regs + slot))[lane];
}

static bool
fail(struct gs_block *block, const struct gs_code *code, int result, const char *why)
{
	gs_job_fail(block->job, result, "kernel %.160s: %s at PTX line %d (%.*s)",
		    block->job->function->ptx->name, why, (int)code->insn->line,
		    (int)(code->insn->spelling_len > 60 ? 60 : code->insn->spelling_len),
		    code->insn->spelling);
	return false;
}

/* Returns the lane's texture or surface; NULL: the job has failed. */
static const struct gs_texture *
find(struct gs_block *block, const struct gs_code *code, const uint8_t *regs, int lane)
{
	bool wants_surface = code->kind == GS_KIND_SURFACE;
	uint64_t number = ((const uint64_t *)(const void *)(regs + code->a))[lane];
	const struct gs_texture *texture = gs_texture_find(number);

	if (texture && texture->is_surface == wants_surface)
		return texture;
	(void)fail(block, code, GS_ILLEGAL_ADDRESS,
		   wants_surface ? "there is no such surface" : "there is no such texture");
	return NULL;
}

static bool
has_layer(const struct gs_code *code)
{
	return code->sub == GS_GEOMETRY_1D_LAYERED || code->sub == GS_GEOMETRY_2D_LAYERED ||
	       code->sub == GS_GEOMETRY_CUBE_LAYERED;
}

static float
gradient_level(const struct gs_code *code, const struct gs_texture *texture, const uint8_t *regs,
	       int lane)
{
	unsigned int axes = (unsigned int)code->target - has_layer(code);
	const uint32_t *slots = code->slots + code->target + code->count;
	float steps[2][3] = { { 0 } };

	for (unsigned int i = 0; i < 2; i++) {
		for (unsigned int k = 0; k < axes; k++)
			steps[i][k] = float_at(regs, *slots++, lane);
	}
	return gs_sample_level(texture, (enum gs_geometry)code->sub, (const float(*)[3])steps);
}

static void
sample_lane(const struct gs_code *code, const struct gs_texture *texture, const uint8_t *regs,
	    int lane, uint32_t out[4])
{
	struct gs_place place = { .geometry = (enum gs_geometry)code->sub };
	unsigned int layer = has_layer(code);
	int32_t texel[3] = { 0 };

	if (layer)
		place.layer = word_at(regs, code->slots[0], lane);
	for (unsigned int k = layer; k < (unsigned int)code->target; k++) {
		texel[k - layer] = (int32_t)word_at(regs, code->slots[k], lane);
		place.at[k - layer] = float_at(regs, code->slots[k], lane);
	}
	if (code->is_signed)
		place.lod = gradient_level(code, texture, regs, lane);
	else if (code->negated)
		place.lod = code->flag ? (float)(int32_t)word_at(regs, code->c, lane)
				       : float_at(regs, code->c, lane);
	if (code->flag)
		gs_sample_texel(texture, place.geometry, texel, place.layer, out);
	else if (code->imm >= 0)
		gs_sample_gather(texture, &place, (unsigned int)code->imm, out);
	else
		gs_sample(texture, &place, out);
}

bool
gs_texture_load(struct gs_block *block, const struct gs_code *code, uint8_t *regs, uint32_t mask)
{
	block->code_at = code;
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		int lane = __builtin_ctz(rest);
		const struct gs_texture *texture = find(block, code, regs, lane);
		uint32_t out[4];

		if (!texture)
			return false;
		sample_lane(code, texture, regs, lane, out);
		for (unsigned int k = 0; k < code->count; k++)
			((uint32_t *)(void *)(regs + code->slots[code->target + (int)k]))[lane] =
				out[k];
	}
	return true;
}

/* Checks a coordinate of a surface: it is inside, clamped to the inside, or outside. */
static bool
bound(const struct gs_code *code, int64_t *at, int64_t count)
{
	if (*at >= 0 && *at < count)
		return true;
	if (code->is_signed && count > 0)
		*at = *at < 0 ? 0 : count - 1;
	return code->is_signed && count > 0;
}

/* Returns the address in the surface; NULL: outside. x is in bytes. */
static uint8_t *
surface_memory(const struct gs_code *code, const struct gs_texture *surface, const uint8_t *regs,
	       int lane)
{
	const struct gs_texture_level *level = &surface->levels[0];
	int64_t bytes = (int64_t)code->width * code->count;
	int64_t row = (int64_t)level->width * surface->channels * surface->channel_bytes;
	int64_t at[3] = { 0 };
	unsigned int layer = has_layer(code);

	for (unsigned int k = layer; k < (unsigned int)code->target; k++)
		at[k - layer] = (int32_t)word_at(regs, code->slots[k], lane);
	if (layer)
		at[2] = (int32_t)word_at(regs, code->slots[0], lane);
	/* In units of the accessed size. */
	if (at[0] % bytes)
		return NULL;
	at[0] /= bytes;
	if (!bound(code, &at[0], row / bytes) || !bound(code, &at[1], level->height) ||
	    !bound(code, &at[2], level->depth))
		return NULL;
	return level->memory + (uint64_t)at[2] * level->slice + (uint64_t)at[1] * level->pitch +
	       (uint64_t)(at[0] * bytes);
}

static void
move_lane(const struct gs_code *code, uint8_t *memory, uint8_t *regs, int lane)
{
	for (unsigned int k = 0; k < code->count; k++) {
		uint8_t *slot = regs + code->slots[code->target + (int)k];
		uint8_t *lane_at = slot + (unsigned int)lane * code->dst_width;
		uint64_t value = 0;

		/* The lower bytes of a lane come first. */
		if (code->flag) {
			memcpy(memory + k * code->width, lane_at, code->width);
			continue;
		}
		if (memory)
			memcpy(&value, memory + k * code->width, code->width);
		memcpy(lane_at, &value, code->dst_width);
	}
}

bool
gs_surface_access(struct gs_block *block, const struct gs_code *code, uint8_t *regs, uint32_t mask)
{
	block->code_at = code;
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		int lane = __builtin_ctz(rest);
		const struct gs_texture *surface = find(block, code, regs, lane);
		uint8_t *memory;

		if (!surface)
			return false;
		memory = surface_memory(code, surface, regs, lane);
		if (!memory && !code->negated)
			return fail(block, code, GS_LAUNCH_FAILED, "outside the surface");
		if (memory || !code->flag)
			move_lane(code, memory, regs, lane);
	}
	return true;
}
