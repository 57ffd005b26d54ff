/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links several texts to a module, as the device linker does with relocatable objects: symbols that
 * are not .visible, .weak or .extern are local to their text.
 */
#include "softgpu/engine/parse/parser.h"

#include <string.h>

static void
keep_name(struct gs_parser *parser, struct gs_names *names, const char *name, int32_t value)
{
	if (gs_names_set(names, &parser->ptx->pool, name, strlen(name), value) != 0)
		gs_parser_fail_memory(parser);
}

void
gs_link_next_text(struct gs_parser *parser)
{
	const struct gs_ptx *ptx = parser->ptx;

	if (!ptx->version)
		return;
	parser->is_linked = true;
	parser->symbol_names = (struct gs_names){ 0 };
	parser->function_names = (struct gs_names){ 0 };
	for (uint32_t i = 0; i < ptx->symbol_count; i++) {
		const struct gs_symbol *symbol = &ptx->symbols[i];

		if (symbol->is_linkable && symbol->definition < 0 && !symbol->is_function_local)
			keep_name(parser, &parser->symbol_names, symbol->name, (int32_t)i);
	}
	for (uint32_t i = 0; i < ptx->function_count; i++) {
		if (ptx->functions[i].is_linkable)
			keep_name(parser, &parser->function_names, ptx->functions[i].name,
				  (int32_t)i);
	}
}

static int32_t
final_symbol(const struct gs_ptx *ptx, int32_t symbol)
{
	while (symbol >= 0 && ptx->symbols[symbol].definition >= 0)
		symbol = ptx->symbols[symbol].definition;
	return symbol;
}

static void
link_operand(const struct gs_ptx *ptx, struct gs_operand *operand)
{
	if (operand->kind == GS_OPERAND_SYMBOL || operand->kind == GS_OPERAND_ADDRESS)
		operand->symbol = final_symbol(ptx, operand->symbol);
	for (unsigned int i = 0; i < operand->count; i++)
		link_operand(ptx, (struct gs_operand *)(uintptr_t)&operand->elements[i]);
}

static void
link_function(const struct gs_ptx *ptx, const struct gs_ptx_function *function)
{
	for (uint32_t i = 0; i < function->insn_count; i++) {
		const struct gs_insn *insn = &function->insns[i];

		for (unsigned int k = 0; k < insn->operand_count; k++)
			link_operand(ptx, (struct gs_operand *)(uintptr_t)&insn->operands[k]);
	}
}

/* Looks up names again that are declared after the initializer that uses them. */
static void
link_relocations(struct gs_parser *parser, struct gs_symbol *symbol)
{
	for (struct gs_relocation *reloc = symbol->relocations; reloc; reloc = reloc->next) {
		size_t len = strlen(reloc->name);

		if (reloc->symbol < 0 && reloc->function < 0) {
			reloc->symbol = gs_names_find(&parser->symbol_names, reloc->name, len);
			reloc->function = gs_names_find(&parser->function_names, reloc->name, len);
		}
		reloc->symbol = final_symbol(parser->ptx, reloc->symbol);
	}
}

void
gs_link_finish(struct gs_parser *parser)
{
	struct gs_ptx *ptx = parser->ptx;
	bool has_links = parser->is_linked;

	for (uint32_t i = 0; i < ptx->symbol_count; i++) {
		link_relocations(parser, &ptx->symbols[i]);
		has_links |= ptx->symbols[i].definition >= 0;
	}
	for (uint32_t i = 0; i < ptx->function_count && has_links; i++)
		link_function(ptx, &ptx->functions[i]);
}
