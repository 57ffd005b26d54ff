/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/engine/decode/module.h"

#include "softgpu/engine/decode/decode.h"
#include "softgpu/engine/memory/vmem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
fail_memory(struct gs_error *error)
{
	error->code = GS_OUT_OF_MEMORY;
	snprintf(error->text, sizeof(error->text), "out of memory");
	return GS_OUT_OF_MEMORY;
}

static bool
is_variable(const struct gs_symbol *symbol)
{
	return (symbol->space == GS_SPACE_GLOBAL || symbol->space == GS_SPACE_CONST) &&
	       !symbol->is_extern && symbol->definition < 0;
}

/* Allocates all variables of the module in one block. */
static int
place_variables(struct gs_module *module)
{
	const struct gs_ptx *ptx = module->ptx;
	uint64_t size = 0, const_bytes = 0;

	for (uint32_t i = 0; i < ptx->symbol_count; i++) {
		const struct gs_symbol *symbol = &ptx->symbols[i];
		uint64_t align = symbol->align < 16 ? 16 : symbol->align;

		if (!is_variable(symbol))
			continue;
		size = (size + align - 1) / align * align;
		module->symbol_addresses[i] = size;
		size += symbol->size;
		if (size > GS_PTX_MAX_VARIABLE)
			return GS_OUT_OF_MEMORY;
		if (symbol->space == GS_SPACE_CONST)
			const_bytes += symbol->size;
	}
	module->const_bytes = const_bytes < INT32_MAX ? (uint32_t)const_bytes : INT32_MAX;
	if (!size)
		return GS_OK;
	module->variables = gs_vmem_alloc(size);
	if (!module->variables)
		return GS_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < ptx->symbol_count; i++) {
		if (is_variable(&ptx->symbols[i]))
			module->symbol_addresses[i] += (uint64_t)(uintptr_t)module->variables;
	}
	return GS_OK;
}

static int
get_address(const struct gs_module *module, const struct gs_relocation *reloc, uint64_t *address_p)
{
	if (reloc->symbol >= 0 && is_variable(&module->ptx->symbols[reloc->symbol])) {
		*address_p = module->symbol_addresses[reloc->symbol];
		return GS_OK;
	}
	if (reloc->function < 0)
		return GS_INVALID_PTX;
	*address_p = GS_FUNCTION_ADDRESS | (uint32_t)reloc->function;
	return GS_OK;
}

static int
initialize_variable(struct gs_module *module, uint32_t index, struct gs_error *error)
{
	const struct gs_symbol *symbol = &module->ptx->symbols[index];
	uint8_t *memory = (uint8_t *)(uintptr_t)module->symbol_addresses[index];

	if (symbol->init)
		memcpy(memory, symbol->init, symbol->size);
	for (const struct gs_relocation *reloc = symbol->relocations; reloc; reloc = reloc->next) {
		uint64_t address;

		if (get_address(module, reloc, &address) != GS_OK) {
			error->code = GS_INVALID_PTX;
			snprintf(error->text, sizeof(error->text),
				 "line %d: the address of '%.200s', which this module does not "
				 "define",
				 (int)reloc->line, reloc->name);
			return GS_INVALID_PTX;
		}
		address = (address + (uint64_t)reloc->addend) >> reloc->shift;
		memcpy(memory + reloc->at, &address, reloc->size);
	}
	return GS_OK;
}

static int
initialize_variables(struct gs_module *module, struct gs_error *error)
{
	for (uint32_t i = 0; i < module->ptx->symbol_count; i++) {
		int r = is_variable(&module->ptx->symbols[i])
				? initialize_variable(module, i, error)
				: GS_OK;

		if (r != GS_OK)
			return r;
	}
	return GS_OK;
}

static int
describe_params(struct gs_module *module, uint32_t index)
{
	const struct gs_ptx_function *ptx = &module->ptx->functions[index];
	struct gs_param *params =
		gs_pool_alloc(&module->pool, sizeof(*params) * (ptx->param_count + 1));

	if (!params)
		return GS_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < ptx->param_count; i++) {
		const struct gs_symbol *symbol = &module->ptx->symbols[ptx->params[i]];

		params[i].offset = (uint32_t)symbol->offset;
		params[i].size = (uint32_t)symbol->size;
	}
	module->params[index] = params;
	return GS_OK;
}

/* A call through a pointer may still reach the function, and then ends the kernel. */
static int
make_trap(struct gs_module *module, struct gs_function *function, const char *why)
{
	static const struct gs_insn trap = {
		.op = GS_OP_trap, .pred = -1, .spelling = "trap", .spelling_len = 4
	};
	struct gs_code *code = gs_pool_alloc(&module->pool, sizeof(*code));
	char *reason = gs_pool_strndup(&module->pool, why, strlen(why));

	if (!code || !reason)
		return GS_OUT_OF_MEMORY;
	*code = (struct gs_code){ .kind = GS_KIND_TRAP, .pred = -1, .insn = &trap };
	function->unsupported = reason;
	function->code = code;
	function->code_count = 1;
	function->fixed = NULL;
	function->fixed_count = function->warp_fixed_count = function->block_fixed_count = 0;
	return GS_OK;
}

/* For a function that calls a function which the device cannot run. */
static int
make_trap_for_call(struct gs_module *module, struct gs_function *function,
		   const struct gs_function *called)
{
	char why[512];

	snprintf(why, sizeof(why), "it calls %.200s: %.280s", called->ptx->name,
		 called->unsupported);
	return make_trap(module, function, why);
}

static int
decode_function(struct gs_module *module, struct gs_function *function, struct gs_error *error)
{
	int r = GS_OK;

	if (function->ptx->unsupported)
		return make_trap(module, function, function->ptx->unsupported);
	if (function->ptx->has_body)
		r = gs_decode_function(module, function, error);
	return r == GS_NOT_SUPPORTED ? make_trap(module, function, error->text) : r;
}

/* Searches the functions named directly; -1: none of them is unsupported. */
static int32_t
find_unsupported(const struct gs_module *module, const struct gs_ptx_function *ptx)
{
	for (uint32_t i = 0; i < ptx->insn_count; i++) {
		const struct gs_insn *insn = &ptx->insns[i];

		for (unsigned int k = 0; k < insn->operand_count; k++) {
			const struct gs_operand *operand = &insn->operands[k];

			if (operand->kind == GS_OPERAND_FUNCTION &&
			    module->functions[operand->symbol].unsupported)
				return operand->symbol;
		}
	}
	return -1;
}

/* Callers of unsupported functions are unsupported as well. */
static int
spread_unsupported(struct gs_module *module, struct gs_error *error)
{
	bool changed = false;

	for (uint32_t i = 0; i < module->ptx->function_count && !changed; i++)
		changed = module->functions[i].unsupported != NULL;
	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < module->ptx->function_count; i++) {
			struct gs_function *function = &module->functions[i];
			int32_t found;

			if (function->unsupported || !function->ptx->has_body)
				continue;
			found = find_unsupported(module, function->ptx);
			if (found < 0)
				continue;
			changed = true;
			if (make_trap_for_call(module, function, &module->functions[found]))
				return fail_memory(error);
		}
	}
	return GS_OK;
}

static int
decode_functions(struct gs_module *module, struct gs_error *error)
{
	for (uint32_t i = 0; i < module->ptx->function_count; i++) {
		struct gs_function *function = &module->functions[i];
		int r;

		if (describe_params(module, i) != GS_OK)
			return fail_memory(error);
		r = decode_function(module, function, error);
		if (r == GS_OUT_OF_MEMORY)
			return fail_memory(error);
		if (r != GS_OK)
			return r;
		if (function->ptx->is_entry && function->ptx->has_body)
			module->entries[module->entry_count++] = function;
	}
	*error = (struct gs_error){ 0 };
	return spread_unsupported(module, error);
}

static int
allocate_tables(struct gs_module *module)
{
	uint32_t functions = module->ptx->function_count + 1;
	uint32_t symbols = module->ptx->symbol_count + 1;

	module->symbol_addresses = gs_pool_alloc(&module->pool, sizeof(uint64_t) * symbols);
	module->globals = gs_pool_alloc(&module->pool, sizeof(int32_t) * symbols);
	module->functions = gs_pool_alloc(&module->pool, sizeof(*module->functions) * functions);
	module->entries = gs_pool_alloc(&module->pool, sizeof(*module->entries) * functions);
	module->params = gs_pool_alloc(&module->pool, sizeof(*module->params) * functions);
	if (!module->symbol_addresses || !module->globals || !module->functions ||
	    !module->entries || !module->params)
		return GS_OUT_OF_MEMORY;
	for (uint32_t i = 0; i + 1 < functions; i++) {
		module->functions[i].module = module;
		module->functions[i].ptx = &module->ptx->functions[i];
		module->functions[i].index = i;
	}
	for (uint32_t i = 0; i + 1 < symbols; i++) {
		const struct gs_symbol *symbol = &module->ptx->symbols[i];

		if (is_variable(symbol) && !symbol->is_function_local)
			module->globals[module->global_count++] = (int32_t)i;
	}
	return GS_OK;
}

static int
build_module(struct gs_module *module, struct gs_error *error)
{
	int r;

	if (allocate_tables(module) != GS_OK || place_variables(module) != GS_OK)
		return fail_memory(error);
	r = gs_module_place_shared(module, error);
	if (r == GS_OUT_OF_MEMORY)
		return fail_memory(error);
	if (r == GS_OK)
		r = decode_functions(module, error);
	return r == GS_OK ? initialize_variables(module, error) : r;
}

int
gs_module_load(const char *ptx, size_t size, struct gs_module **module_p, struct gs_error *error)
{
	struct gs_module *module = calloc(1, sizeof(*module));
	int r;

	*error = (struct gs_error){ 0 };
	if (!module)
		return fail_memory(error);
	r = gs_ptx_parse(ptx, size, &module->ptx, error);
	if (r == GS_OK)
		r = build_module(module, error);
	if (r != GS_OK) {
		gs_module_unload(module);
		return r;
	}
	*module_p = module;
	return GS_OK;
}

void
gs_module_unload(struct gs_module *module)
{
	if (!module)
		return;
	gs_vmem_free(module->variables);
	gs_pool_fini(&module->pool);
	gs_ptx_destroy(module->ptx);
	free(module);
}

const struct gs_function *
gs_module_function(const struct gs_module *module, const char *name)
{
	for (uint32_t i = 0; i < module->entry_count; i++) {
		if (strcmp(module->entries[i]->ptx->name, name) == 0)
			return module->entries[i];
	}
	return NULL;
}

size_t
gs_module_function_count(const struct gs_module *module)
{
	return module->entry_count;
}

const struct gs_function *
gs_module_function_at(const struct gs_module *module, size_t index)
{
	return index < module->entry_count ? module->entries[index] : NULL;
}

static int
find_variable(const struct gs_module *module, const char *name, enum gs_reference reference,
	      uint64_t *address_p, uint64_t *size_p)
{
	for (uint32_t i = 0; i < module->global_count; i++) {
		const struct gs_symbol *symbol = &module->ptx->symbols[module->globals[i]];

		if (symbol->reference != reference || strcmp(symbol->name, name) != 0)
			continue;
		*address_p = module->symbol_addresses[module->globals[i]];
		*size_p = symbol->size;
		return GS_OK;
	}
	return GS_NOT_FOUND;
}

int
gs_module_global(const struct gs_module *module, const char *name, uint64_t *address_p,
		 uint64_t *size_p)
{
	return find_variable(module, name, GS_REFERENCE_NONE, address_p, size_p);
}

int
gs_module_reference(const struct gs_module *module, const char *name, bool is_surface,
		    uint64_t *address_p)
{
	uint64_t size;

	return find_variable(module, name, is_surface ? GS_REFERENCE_SURFACE : GS_REFERENCE_TEXTURE,
			     address_p, &size);
}

size_t
gs_module_global_count(const struct gs_module *module)
{
	return module->global_count;
}

void
gs_module_global_at(const struct gs_module *module, size_t index, struct gs_global *global_p)
{
	const struct gs_symbol *symbol = &module->ptx->symbols[module->globals[index]];

	*global_p = (struct gs_global){ .name = symbol->name,
					.address = module->symbol_addresses[module->globals[index]],
					.size = symbol->size,
					.is_const = symbol->space == GS_SPACE_CONST };
}

void
gs_function_info(const struct gs_function *function, struct gs_function_info *info_p)
{
	const struct gs_ptx_function *ptx = function->ptx;
	const struct gs_module *module = function->module;
	uint32_t registers = function->live_regs + 6;

	*info_p = (struct gs_function_info){
		.name = ptx->name,
		.module = module,
		.params = module->params[function->index],
		.param_count = ptx->param_count,
		.param_bytes = (uint32_t)ptx->param_bytes,
		.shared_bytes = function->shared_bytes,
		.const_bytes = module->const_bytes,
		.local_bytes = (uint32_t)function->local_bytes,
		.registers = registers < 8     ? 8
			     : registers > 255 ? 255
					       : registers,
		.max_threads = ptx->max_threads,
		.ptx_version = module->ptx->version,
		.target = module->ptx->target,
		.uses_printf = function->uses_printf,
		.uses_heap = function->uses_heap,
		.uses_grid_sync = function->uses_grid_sync,
		.unsupported = function->unsupported,
	};
	memcpy(info_p->required_block, ptx->required_block, sizeof(info_p->required_block));
}
