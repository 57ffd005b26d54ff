/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls. A frame has registers of its own; its local variables, and the arguments and results of
 * its calls, follow those of its caller in each lane's local window.
 */
#include "softgpu/engine/run/run.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 4096
#define MAX_FRAME_BYTES (256ull << 20) /* per block; limits recursion */

uint8_t *
gs_frame_local(const struct gs_block *block, const struct gs_warp *warp,
	       const struct gs_frame *frame, int lane)
{
	return (uint8_t *)(uintptr_t)(warp->local + (uint64_t)lane * block->job->local_stride +
				      frame->local_base);
}

static struct gs_frame *
new_frame(struct gs_block *block, const struct gs_function *function)
{
	struct gs_frame **link = &block->free_frames;
	struct gs_frame *frame;

	while (*link && (*link)->function != function)
		link = &(*link)->next_free;
	frame = *link;
	if (frame) {
		*link = frame->next_free;
		return frame;
	}
	if (block->frame_bytes + function->frame_bytes > MAX_FRAME_BYTES)
		return NULL;
	frame = calloc(1, sizeof(*frame));
	if (!frame)
		return NULL;
	frame->regs = aligned_alloc(128, (function->frame_bytes + 127u) & ~127u);
	if (!frame->regs) {
		free(frame);
		return NULL;
	}
	memset(frame->regs, 0, function->frame_bytes);
	frame->function = function;
	block->frame_bytes += function->frame_bytes;
	frame->next = block->frames;
	block->frames = frame;
	return frame;
}

static void
copy_arguments(const struct gs_block *block, const struct gs_warp *warp,
	       const struct gs_frame *from, const struct gs_frame *to, const struct gs_code *call,
	       uint32_t mask)
{
	const struct gs_ptx *ptx = to->function->module->ptx;
	const struct gs_ptx_function *callee = to->function->ptx;
	const struct gs_operand *arguments = &call->insn->operands[2];
	uint32_t count =
		arguments->count < callee->param_count ? arguments->count : callee->param_count;

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		const uint8_t *src = gs_frame_local(block, warp, from, __builtin_ctz(rest));
		uint8_t *dst = gs_frame_local(block, warp, to, __builtin_ctz(rest));

		for (uint32_t k = 0; k < count; k++) {
			const struct gs_symbol *param = &ptx->symbols[callee->params[k]];
			const struct gs_symbol *argument =
				&ptx->symbols[arguments->elements[k].symbol];
			uint64_t size = param->size < argument->size ? param->size : argument->size;

			memcpy(dst + param->offset, src + argument->offset, size);
		}
	}
}

static void
copy_results(const struct gs_block *block, const struct gs_warp *warp, const struct gs_frame *from,
	     const struct gs_frame *to, uint32_t mask)
{
	const struct gs_ptx *ptx = from->function->module->ptx;
	const struct gs_ptx_function *callee = from->function->ptx;
	const struct gs_operand *results = &from->call->insn->operands[0];
	uint32_t count =
		results->count < callee->return_count ? results->count : callee->return_count;

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		const uint8_t *src = gs_frame_local(block, warp, from, __builtin_ctz(rest));
		uint8_t *dst = gs_frame_local(block, warp, to, __builtin_ctz(rest));

		for (uint32_t k = 0; k < count; k++) {
			const struct gs_symbol *result = &ptx->symbols[callee->returns[k]];
			const struct gs_symbol *variable =
				&ptx->symbols[results->elements[k].symbol];
			uint64_t size =
				result->size < variable->size ? result->size : variable->size;

			memcpy(dst + variable->offset, src + result->offset, size);
		}
	}
}

struct gs_frame *
gs_frame_enter(struct gs_block *block, struct gs_warp *warp, struct gs_frame *caller,
	       const struct gs_code *call, const struct gs_function *function, uint32_t mask)
{
	uint64_t local_base = caller->local_base + caller->function->local_bytes;
	struct gs_frame *frame;

	if (local_base + function->local_bytes > block->job->local_stride ||
	    caller->depth >= MAX_DEPTH) {
		gs_job_fail(block->job, GS_HARDWARE_STACK_ERROR,
			    "kernel %.160s: stack overflow in function %.160s at PTX line %d",
			    block->job->function->ptx->name, function->ptx->name,
			    (int)call->insn->line);
		return NULL;
	}
	frame = new_frame(block, function);
	if (!frame) {
		gs_job_fail(block->job, GS_OUT_OF_MEMORY, "out of memory in a call");
		return NULL;
	}
	frame->caller = caller;
	frame->depth = caller->depth + 1;
	frame->lanes = mask;
	frame->call = call;
	frame->return_at = (int32_t)(call + 1 - caller->function->code);
	frame->local_base = local_base;
	gs_fill_fixed(block, warp, frame, GS_FILL_ALL);
	block->code_at = call;
	copy_arguments(block, warp, caller, frame, call, mask);
	return frame;
}

void
gs_frame_return(struct gs_block *block, struct gs_warp *warp, struct gs_frame *frame, uint32_t mask)
{
	block->code_at = frame->call;
	copy_results(block, warp, frame, frame->caller, mask);
}

void
gs_frame_leave(struct gs_block *block, struct gs_frame *frame, uint32_t mask)
{
	frame->lanes &= ~mask;
	if (!frame->caller || frame->lanes)
		return;
	frame->next_free = block->free_frames;
	block->free_frames = frame;
}
