/* SPDX-License-Identifier: Apache-2.0 */
/* printf, malloc, free and assert in kernels. */
#include "softgpu/engine/memory/heap.h"
#include "softgpu/engine/run/run.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_TEXT 4096
#define MAX_FIELD 1024
#define MAX_PARAMS 4096 /* maximum bytes of parameters that a kernel updates at a time */
#define MAX_ARGUMENTS (MAX_TEXT * 16) /* bytes: two per format character, 8 bytes each */

struct output {
	char text[MAX_TEXT];
	size_t len;
};

struct arguments {
	const uint8_t *next; /* packed like a struct of 4- and 8-byte members; NULL: none */
	uint64_t at;
	int count;
};

static bool
is_device_address(uint64_t address)
{
	return address >= GS_VA_BASE && address < GS_VA_END;
}

/* A fault in this function ends the launch like a fault in the kernel. */
static void
copy_string(char *dst, size_t size, uint64_t address)
{
	size_t len = 0;

	if (!is_device_address(address)) {
		snprintf(dst, size, "%s", address ? "(bad pointer)" : "(null)");
		return;
	}
	while (len + 1 < size && is_device_address(address + len)) {
		char c = *(const volatile char *)(uintptr_t)(address + len);

		if (!c)
			break;
		dst[len++] = c;
	}
	dst[len] = '\0';
}

static uint64_t
pop_argument(struct arguments *arguments, unsigned int size)
{
	uint64_t value = 0;

	arguments->at = (arguments->at + size - 1) & ~(uint64_t)(size - 1);
	if (arguments->next)
		memcpy(&value, arguments->next + arguments->at, size);
	arguments->at += size;
	arguments->count++;
	return value;
}

static void __attribute__((format(printf, 2, 3)))
append(struct output *output, const char *format, ...)
{
	size_t room = sizeof(output->text) - output->len;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(output->text + output->len, room, format, args);
	va_end(args);
	if (n > 0)
		output->len += (size_t)n < room ? (size_t)n : room - 1;
}

/* A conversion specification, with width and precision as numbers or -1. */
struct conversion {
	char flags[8];
	int width;
	int precision;
	int longs;
	char letter;
};

static int
parse_number(const char **format, struct arguments *arguments)
{
	int value = 0;

	if (**format == '*') {
		(*format)++;
		value = (int)pop_argument(arguments, 4);
	}
	while (**format >= '0' && **format <= '9') {
		if (value < MAX_FIELD)
			value = value * 10 + (**format - '0');
		(*format)++;
	}
	return value > MAX_FIELD ? MAX_FIELD : value < -MAX_FIELD ? -MAX_FIELD : value;
}

/* After '%'. */
static void
parse_conversion(const char **format, struct conversion *conversion, struct arguments *arguments)
{
	size_t n = 0;

	*conversion = (struct conversion){ .width = 0, .precision = -1 };
	while (**format && strchr("-+ #0", **format)) {
		if (n + 1 < sizeof(conversion->flags) - 1)
			conversion->flags[n++] = **format;
		(*format)++;
	}
	conversion->width = parse_number(format, arguments);
	if (**format == '.') {
		(*format)++;
		conversion->precision = parse_number(format, arguments);
	}
	while (**format && strchr("hlLqjzt", **format)) {
		if (strchr("lqjzt", **format))
			conversion->longs++;
		(*format)++;
	}
	conversion->letter = **format;
	if (**format)
		(*format)++;
}

#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void
print_conversion(struct output *output, const struct conversion *conversion,
		 struct arguments *arguments)
{
	char string[MAX_FIELD];
	char spec[24];
	double real;
	uint64_t bits;

	switch (conversion->letter) {
	case 's':
		copy_string(string, sizeof(string), pop_argument(arguments, 8));
		snprintf(spec, sizeof(spec), "%%%s*.*s", conversion->flags);
		append(output, spec, conversion->width, conversion->precision, string);
		return;
	case 'a':
	case 'A':
	case 'e':
	case 'E':
	case 'f':
	case 'F':
	case 'g':
	case 'G':
		bits = pop_argument(arguments, 8);
		memcpy(&real, &bits, sizeof(real));
		snprintf(spec, sizeof(spec), "%%%s*.*%c", conversion->flags, conversion->letter);
		append(output, spec, conversion->width, conversion->precision, real);
		return;
	case 'c':
		append(output, "%*c", conversion->width, (int)pop_argument(arguments, 4));
		return;
	case 'p':
		bits = pop_argument(arguments, 8);
		append(output, "0x%" PRIx64, bits);
		return;
	case 'd':
	case 'i':
		bits = pop_argument(arguments, conversion->longs ? 8 : 4);
		snprintf(spec, sizeof(spec), "%%%s*.*lld", conversion->flags);
		append(output, spec, conversion->width, conversion->precision,
		       conversion->longs ? (long long)bits : (long long)(int32_t)bits);
		return;
	case 'o':
	case 'u':
	case 'x':
	case 'X':
		bits = pop_argument(arguments, conversion->longs ? 8 : 4);
		snprintf(spec, sizeof(spec), "%%%s*.*ll%c", conversion->flags, conversion->letter);
		append(output, spec, conversion->width, conversion->precision,
		       (unsigned long long)bits);
		return;
	default:
		append(output, "%%%c", conversion->letter ? conversion->letter : ' ');
		return;
	}
}

static void
format_text(struct output *output, const char *format, struct arguments *arguments)
{
	struct conversion conversion;

	while (*format) {
		size_t plain = strcspn(format, "%");

		if (plain) {
			append(output, "%.*s", (int)plain, format);
			format += plain;
			continue;
		}
		format++;
		if (*format == '%') {
			append(output, "%%");
			format++;
			continue;
		}
		parse_conversion(&format, &conversion, arguments);
		print_conversion(output, &conversion, arguments);
	}
}

/* The text is in host memory by now, so nothing under the lock can fault. */
static void
print(struct gs_job *job, const struct output *output, bool is_error)
{
	const struct gs_launch *launch = job->launch;
	gs_print_func *func = is_error ? launch->print_error : launch->print;

	pthread_mutex_lock(&job->lock);
	if (func)
		func(launch->print_arg, output->text, output->len);
	else
		fwrite(output->text, 1, output->len, is_error ? stderr : stdout);
	pthread_mutex_unlock(&job->lock);
}

static int32_t
call_printf(struct gs_job *job, uint64_t format_address, uint64_t arguments_address)
{
	struct arguments arguments = { 0 };
	struct output output = { .len = 0 };
	char format[MAX_TEXT];

	if (!format_address)
		return -1;
	copy_string(format, sizeof(format), format_address);
	if (is_device_address(arguments_address) &&
	    is_device_address(arguments_address + MAX_ARGUMENTS))
		arguments.next = (const uint8_t *)(uintptr_t)arguments_address;
	format_text(&output, format, &arguments);
	print(job, &output, false);
	return arguments.count;
}

struct call_site {
	struct gs_block *block;
	struct gs_warp *warp;
	const struct gs_frame *frame;
	const struct gs_code *call;
};

static uint64_t
get_argument(const struct call_site *site, int lane, unsigned int k, unsigned int size)
{
	const struct gs_operand *list = &site->call->insn->operands[2];
	const uint8_t *local = gs_frame_local(site->block, site->warp, site->frame, lane);
	uint64_t value = 0;

	if (k < list->count) {
		const struct gs_symbol *symbol =
			&site->frame->function->module->ptx->symbols[list->elements[k].symbol];

		memcpy(&value, local + symbol->offset, symbol->size < size ? symbol->size : size);
	}
	return value;
}

static void
set_result(const struct call_site *site, int lane, uint64_t value, unsigned int size)
{
	const struct gs_operand *list = &site->call->insn->operands[0];
	uint8_t *local = gs_frame_local(site->block, site->warp, site->frame, lane);

	if (list->count) {
		const struct gs_symbol *symbol =
			&site->frame->function->module->ptx->symbols[list->elements[0].symbol];

		memcpy(local + symbol->offset, &value, symbol->size < size ? symbol->size : size);
	}
}

static void
call_assert(const struct call_site *site, int lane)
{
	const struct gs_launch *launch = site->block->job->launch;
	uint32_t thread = site->warp->index * GS_WARP + (uint32_t)lane;
	const uint32_t *index = site->block->index;
	struct output output = { .len = 0 };
	char message[512];
	char file[512];
	char function[512];

	copy_string(message, sizeof(message), get_argument(site, lane, 0, 8));
	copy_string(file, sizeof(file), get_argument(site, lane, 1, 8));
	copy_string(function, sizeof(function), get_argument(site, lane, 3, 8));
	append(&output, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
	       file, (uint32_t)get_argument(site, lane, 2, 4), function, index[0], index[1],
	       index[2], thread % launch->block[0], thread / launch->block[0] % launch->block[1],
	       thread / launch->block[0] / launch->block[1], message);
	print(site->block->job, &output, true);
}

/* cudaErrorInvalidValue: unknown graph, or it cannot be launched from here. */
static int
call_graph_launch(const struct gs_launch *launch, uint64_t exec, uint64_t stream)
{
	return launch->graphs ? launch->graphs->launch(launch->graphs, exec, stream) : 1;
}

/* Copies an argument that is a struct. */
static void
argument_bytes(const struct call_site *site, int lane, unsigned int k, void *bytes, size_t size)
{
	const struct gs_operand *list = &site->call->insn->operands[2];
	const uint8_t *local = gs_frame_local(site->block, site->warp, site->frame, lane);

	memset(bytes, 0, size);
	if (k < list->count) {
		const struct gs_symbol *symbol =
			&site->frame->function->module->ptx->symbols[list->elements[k].symbol];

		memcpy(bytes, local + symbol->offset, symbol->size < size ? symbol->size : size);
	}
}

/* Copies the kernel's bytes before a lock is acquired, because reading them may fault. */
static int
change_node(const struct gs_launch *launch, uint64_t node, struct gs_node_change *change)
{
	uint8_t bytes[MAX_PARAMS];

	if (!launch->graphs)
		return 1;
	if (change->kind == GS_CHANGE_PARAM) {
		if (change->size > sizeof(bytes) ||
		    !is_device_address((uint64_t)(uintptr_t)change->bytes))
			return 1;
		memcpy(bytes, change->bytes, change->size);
		change->bytes = bytes;
	}
	return launch->graphs->change(launch->graphs, node, change);
}

/* cudaGraphKernelNodeUpdate */
struct node_update {
	uint64_t node;
	uint32_t field; /* 0: none, 1: grid, 2: parameter, 3: enabled */
	union {
		uint32_t grid[3];
		struct {
			uint64_t bytes, offset, size;
		} param;
		uint32_t enabled;
	};
};

static int
apply_update(const struct gs_launch *launch, const struct node_update *update)
{
	struct gs_node_change change = { 0 };

	switch (update->field) {
	case 1:
		change.kind = GS_CHANGE_GRID;
		memcpy(change.grid, update->grid, sizeof(change.grid));
		break;
	case 2:
		change.kind = GS_CHANGE_PARAM;
		change.bytes = (const void *)(uintptr_t)update->param.bytes; /* NOLINT */
		change.offset = update->param.offset;
		change.size = update->param.size;
		break;
	case 3:
		change.kind = GS_CHANGE_ENABLED;
		change.enabled = update->enabled != 0;
		break;
	default:
		return 1;
	}
	return change_node(launch, update->node, &change);
}

static int
apply_updates(const struct gs_launch *launch, uint64_t address, uint64_t count)
{
	struct node_update update;
	int r = 0;

	for (uint64_t i = 0; i < count && !r; i++, address += sizeof(update)) {
		if (!is_device_address(address) || !is_device_address(address + sizeof(update)))
			return 1;
		memcpy(&update, (const void *)(uintptr_t)address, sizeof(update)); /* NOLINT */
		r = apply_update(launch, &update);
	}
	return r;
}

/* cudaGraphKernelNode...(): returns a cudaError_t. */
static int
call_node_function(const struct call_site *site, int lane, const char *name, uint64_t first)
{
	const struct gs_launch *launch = site->block->job->launch;
	struct node_update update = { .node = first };

	if (strcmp(name, "cudaGraphKernelNodeUpdatesApply") == 0)
		return apply_updates(launch, first, get_argument(site, lane, 1, 8));
	if (strcmp(name, "cudaGraphKernelNodeSetParam") == 0) {
		update.field = 2;
		update.param.offset = get_argument(site, lane, 1, 8);
		update.param.bytes = get_argument(site, lane, 2, 8);
		update.param.size = get_argument(site, lane, 3, 8);
	} else if (strcmp(name, "cudaGraphKernelNodeSetEnabled") == 0) {
		update.field = 3;
		update.enabled = get_argument(site, lane, 1, 1) != 0;
	} else {
		update.field = 1;
		argument_bytes(site, lane, 1, update.grid, sizeof(update.grid));
	}
	return apply_update(launch, &update);
}

bool
gs_call_builtin(struct gs_block *block, struct gs_warp *warp, struct gs_frame *frame,
		const struct gs_code *call, uint64_t target, uint32_t mask)
{
	const struct call_site site = { block, warp, frame, call };
	const char *name = frame->function->module->ptx->functions[target].name;
	struct gs_job *job = block->job;

	block->code_at = call;
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		int lane = __builtin_ctz(rest);
		uint64_t first = get_argument(&site, lane, 0, 8);

		if (strcmp(name, "vprintf") == 0) {
			set_result(
				&site, lane,
				(uint64_t)call_printf(job, first, get_argument(&site, lane, 1, 8)),
				4);
		} else if (strcmp(name, "malloc") == 0) {
			set_result(&site, lane, gs_heap_alloc(job->launch->heap, first), 8);
		} else if (strcmp(name, "free") == 0) {
			if (first && !gs_heap_free(job->launch->heap, first)) {
				gs_block_fault(block, first, "heap");
				return false;
			}
		} else if (strcmp(name, "cudaGraphSetConditional") == 0) {
			if (!gs_condition_set(first, (uint32_t)get_argument(&site, lane, 1, 4))) {
				gs_block_fault(block, first, "condition");
				return false;
			}
		} else if (strcmp(name, "cudaGraphLaunch") == 0) {
			set_result(&site, lane,
				   (uint64_t)call_graph_launch(job->launch, first,
							       get_argument(&site, lane, 1, 8)),
				   4);
		} else if (strncmp(name, "cudaGraphKernelNode", strlen("cudaGraphKernelNode")) ==
			   0) {
			set_result(&site, lane,
				   (uint64_t)call_node_function(&site, lane, name, first), 4);
		} else if (strcmp(name, "__assertfail") == 0) {
			call_assert(&site, lane);
		} else {
			gs_job_fail(job, GS_INVALID_PC, "call of %.200s, which has no body", name);
			return false;
		}
	}
	if (strcmp(name, "__assertfail") == 0) {
		gs_job_fail(job, GS_ASSERT, "kernel %.160s: assertion failed",
			    job->function->ptx->name);
		return false;
	}
	return true;
}
