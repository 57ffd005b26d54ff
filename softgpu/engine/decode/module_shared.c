/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement of .shared variables. PTX declares them for the module, but each kernel has a window of
 * its own: variables used by a single kernel are placed after those used by several kernels.
 */
#include "softgpu/engine/decode/module.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOBODY (-1)
#define SEVERAL (-2)
/* Maximum static shared memory of a kernel: the limit of ptxas for every GPU. */
#define STATIC_MAX UINT64_C(49152)

struct placement {
	struct gs_module *module;
	uint8_t *is_reached; /* functions reached from the current entry */
	uint32_t *todo;
	uint32_t todo_count;
	int32_t *user;          /* per symbol: the entry that uses it */
	uint8_t *is_pointed_at; /* functions whose address is taken */
};

static void
reach(struct placement *placement, int32_t function)
{
	if (placement->is_reached[function])
		return;
	placement->is_reached[function] = 1;
	placement->todo[placement->todo_count++] = (uint32_t)function;
}

static void
note_symbol(struct placement *placement, int32_t symbol, int32_t entry)
{
	const struct gs_symbol *found = &placement->module->ptx->symbols[symbol];
	int32_t *user = &placement->user[symbol];

	if (found->space != GS_SPACE_SHARED || found->is_dynamic || found->is_extern)
		return;
	*user = *user == NOBODY || *user == entry ? entry : SEVERAL;
}

static void
visit_operand(struct placement *placement, const struct gs_operand *operand, int32_t entry)
{
	if (operand->kind == GS_OPERAND_FUNCTION)
		reach(placement, operand->symbol);
	else if ((operand->kind == GS_OPERAND_SYMBOL || operand->kind == GS_OPERAND_ADDRESS) &&
		 operand->symbol >= 0)
		note_symbol(placement, operand->symbol, entry);
}

static void
visit_function(struct placement *placement, uint32_t function, int32_t entry)
{
	const struct gs_ptx_function *ptx = &placement->module->ptx->functions[function];

	for (uint32_t i = 0; i < ptx->insn_count; i++) {
		const struct gs_insn *insn = &ptx->insns[i];
		bool is_indirect =
			insn->op == GS_OP_call && insn->operands[1].kind == GS_OPERAND_REG;

		for (unsigned int k = 0; k < insn->operand_count; k++) {
			visit_operand(placement, &insn->operands[k], entry);
			for (unsigned int e = 0; e < insn->operands[k].count; e++)
				visit_operand(placement, &insn->operands[k].elements[e], entry);
		}
		for (uint32_t f = 0; is_indirect && f < placement->module->ptx->function_count;
		     f++) {
			if (placement->is_pointed_at[f])
				reach(placement, (int32_t)f);
		}
	}
}

static void
visit_entry(struct placement *placement, uint32_t entry)
{
	memset(placement->is_reached, 0, placement->module->ptx->function_count);
	placement->todo_count = 0;
	reach(placement, (int32_t)entry);
	while (placement->todo_count)
		visit_function(placement, placement->todo[--placement->todo_count], (int32_t)entry);
}

/* From virtual function tables and function pointer variables. */
static void
find_pointed_at(struct placement *placement)
{
	const struct gs_ptx *ptx = placement->module->ptx;

	for (uint32_t i = 0; i < ptx->symbol_count; i++) {
		const struct gs_relocation *reloc = ptx->symbols[i].relocations;

		for (; reloc; reloc = reloc->next) {
			if (reloc->symbol < 0 && reloc->function >= 0)
				placement->is_pointed_at[reloc->function] = 1;
		}
	}
	for (uint32_t f = 0; f < ptx->function_count; f++) {
		for (uint32_t i = 0; i < ptx->functions[f].insn_count; i++) {
			const struct gs_insn *insn = &ptx->functions[f].insns[i];

			if (insn->op == GS_OP_mov && insn->operand_count > 1 &&
			    insn->operands[1].kind == GS_OPERAND_FUNCTION)
				placement->is_pointed_at[insn->operands[1].symbol] = 1;
		}
	}
}

static uint64_t
place_symbols(struct placement *placement, int32_t user, uint64_t from)
{
	struct gs_module *module = placement->module;
	uint64_t end = from;

	for (uint32_t i = 0; i < module->ptx->symbol_count; i++) {
		const struct gs_symbol *symbol = &module->ptx->symbols[i];

		if (symbol->space != GS_SPACE_SHARED || placement->user[i] != user)
			continue;
		end = (end + symbol->align - 1) / symbol->align * symbol->align;
		module->symbol_addresses[i] = end;
		end += symbol->size;
	}
	return end;
}

static bool
reaches_several(struct placement *placement, uint32_t entry)
{
	struct gs_module *module = placement->module;
	bool found = false;

	/* Visiting again does not change the users. */
	visit_entry(placement, entry);
	for (uint32_t f = 0; f < module->ptx->function_count && !found; f++) {
		const struct gs_ptx_function *ptx = &module->ptx->functions[f];

		for (uint32_t i = 0; placement->is_reached[f] && i < ptx->insn_count && !found;
		     i++) {
			for (unsigned int k = 0; k < ptx->insns[i].operand_count; k++) {
				int32_t symbol = ptx->insns[i].operands[k].symbol;
				uint8_t kind = ptx->insns[i].operands[k].kind;

				found |=
					(kind == GS_OPERAND_SYMBOL || kind == GS_OPERAND_ADDRESS) &&
					symbol >= 0 && placement->user[symbol] == SEVERAL;
			}
		}
	}
	return found;
}

static int
set_size(struct gs_function *function, uint64_t size, struct gs_error *error)
{
	if (size > STATIC_MAX) {
		error->code = GS_INVALID_PTX;
		snprintf(error->text, sizeof(error->text),
			 "kernel %.64s: %" PRIu64
			 " bytes of static shared memory; the maximum is %" PRIu64,
			 function->ptx->name, size, STATIC_MAX);
		return GS_INVALID_PTX;
	}
	function->shared_bytes = (uint32_t)size;
	return GS_OK;
}

static int
place_all(struct placement *placement, struct gs_error *error)
{
	struct gs_module *module = placement->module;
	uint32_t count = module->ptx->function_count;
	uint64_t common;
	int r = GS_OK;

	find_pointed_at(placement);
	for (uint32_t f = 0; f < count; f++) {
		if (module->ptx->functions[f].is_entry)
			visit_entry(placement, f);
	}
	common = place_symbols(placement, SEVERAL, 0);
	for (uint32_t f = 0; r == GS_OK && f < count; f++) {
		uint64_t end;

		if (!module->ptx->functions[f].is_entry)
			continue;
		end = place_symbols(placement, (int32_t)f,
				    common && reaches_several(placement, f) ? common : 0);
		r = set_size(&module->functions[f], end, error);
	}
	return r;
}

int
gs_module_place_shared(struct gs_module *module, struct gs_error *error)
{
	struct placement placement = { .module = module };
	uint32_t functions = module->ptx->function_count;
	uint32_t symbols = module->ptx->symbol_count;
	bool has_shared = false;
	int r = GS_OUT_OF_MEMORY;

	for (uint32_t i = 0; i < symbols; i++)
		has_shared |= module->ptx->symbols[i].space == GS_SPACE_SHARED;
	if (!has_shared)
		return GS_OK;
	placement.is_reached = calloc(functions + 1, 1);
	placement.is_pointed_at = calloc(functions + 1, 1);
	placement.todo = calloc(functions + 1, sizeof(*placement.todo));
	placement.user = calloc(symbols + 1, sizeof(*placement.user));
	if (placement.is_reached && placement.is_pointed_at && placement.todo && placement.user) {
		for (uint32_t i = 0; i < symbols; i++)
			placement.user[i] = NOBODY;
		r = place_all(&placement, error);
	}
	free(placement.is_reached);
	free(placement.is_pointed_at);
	free(placement.todo);
	free(placement.user);
	return r;
}
