/* SPDX-License-Identifier: Apache-2.0 */
/* Failure of jobs. */
#include "softgpu/engine/run/run.h"

#include <stdarg.h>
#include <stdio.h>

void
gs_job_fail(struct gs_job *job, int result, const char *format, ...)
{
	va_list args;

	pthread_mutex_lock(&job->lock);
	if (!gs_job_is_over(job)) {
		va_start(args, format);
		vsnprintf(job->message, sizeof(job->message), format, args);
		va_end(args);
		atomic_store(&job->result, result);
	}
	pthread_mutex_unlock(&job->lock);
}

void
gs_block_fault(struct gs_block *block, uint64_t address, const char *what)
{
	const struct gs_code *code = block->code_at;
	const struct gs_insn *insn = code ? code->insn : NULL;

	gs_job_fail(
		block->job, GS_ILLEGAL_ADDRESS,
		"kernel %.160s: illegal %s address 0x%llx at PTX line %d (%.*s), block (%u,%u,%u)",
		block->job->function->ptx->name, what, (unsigned long long)address,
		insn ? (int)insn->line : 0,
		insn ? (int)(insn->spelling_len > 60 ? 60 : insn->spelling_len) : 0,
		insn ? insn->spelling : "", block->index[0], block->index[1], block->index[2]);
}
