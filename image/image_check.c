/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image_check.h"

#include "image/image_params.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Result for a kernel; a higher value replaces a lower one. */
enum state {
	UNSEEN,
	UNREADABLE,
	DIFFERS,
	EQUAL,
};

struct verdict {
	enum state state;
	uint32_t count;           /* DIFFERS: number of parameters in the image */
	uint32_t param;           /* first parameter that differs, if the numbers are equal */
	struct gp_param_info has; /* that parameter in the image */
};

struct check {
	const struct gp_image_info *info;
	struct verdict *verdicts;
	uint32_t *by_name; /* kernel indices, sorted by name */
	uint32_t left;     /* kernels that are not yet EQUAL */
	bool understood;
	struct gp_image_variables *variables;
	bool out_of_memory;
	struct gp_params_reader reader;
};

/* Order in which parts are read. */
enum pass {
	MACHINE_CODE, /* the closest machine code */
	TEXT,         /* the PTX that the device would compile */
	REST,
	PASSES,
};

static int
compare_names(const char *a, size_t a_size, const char *b, size_t b_size)
{
	int order = memcmp(a, b, a_size < b_size ? a_size : b_size);

	return order ? order : (a_size > b_size) - (a_size < b_size);
}

static int
kernel_compare_names(const void *a, const void *b, void *data)
{
	const struct gp_image_info *info = data;

	return strcmp(info->kernels[*(const uint32_t *)a].name,
		      info->kernels[*(const uint32_t *)b].name);
}

/* Returns the position in by_name of the first kernel with this name. */
static uint32_t
kernel_find_first(const struct check *check, const char *name, size_t size)
{
	uint32_t low = 0, high = check->info->kernel_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const char *other = check->info->kernels[check->by_name[middle]].name;

		if (compare_names(other, strlen(other), name, size) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The driver decides the offset of a parameter: code for some GPUs places aligned parameters at
 * higher offsets than the image's own tables. */
static struct verdict
kernel_check_params(const struct gp_kernel_info *told, const struct gp_kernel_params *kernel_found)
{
	struct verdict verdict = { .state = DIFFERS, .count = kernel_found->count };

	if (!kernel_found->readable)
		return (struct verdict){ .state = UNREADABLE };
	if (told->param_count != kernel_found->count)
		return verdict;
	for (; verdict.param < kernel_found->count; verdict.param++) {
		verdict.has = kernel_found->params[verdict.param];
		if (told->params[verdict.param].size != verdict.has.size)
			return verdict;
	}
	verdict.state = EQUAL;
	return verdict;
}

static void
kernel_found(void *data, const struct gp_kernel_params *kernel)
{
	struct check *check = data;
	uint32_t place = kernel_find_first(check, kernel->name, kernel->name_size);

	/* A list may contain a name twice. */
	for (; place < check->info->kernel_count; place++) {
		uint32_t number = check->by_name[place];
		const struct gp_kernel_info *told = &check->info->kernels[number];
		struct verdict verdict;

		if (compare_names(told->name, strlen(told->name), kernel->name,
				  kernel->name_size) != 0)
			return;
		verdict = kernel_check_params(told, kernel);
		if (verdict.state <= check->verdicts[number].state)
			continue;
		check->verdicts[number] = verdict;
		check->left -= verdict.state == EQUAL;
	}
}

static void
variable_found(void *data, const struct gp_variable_size *variable)
{
	struct check *check = data;

	if (gp_image_variables_add(check->variables, variable->name, variable->name_size,
				   variable->readable, variable->managed, variable->size))
		check->out_of_memory = true;
}

static void
check_set_incomplete(struct check *check)
{
	check->understood = false;
	gp_image_variables_add_unknown(check->variables);
}

static int
entry_read(struct check *check, const struct gp_fatbin_entry *entry)
{
	bool understood;
	int r = gp_params_read_entry(&check->reader, entry, &understood);

	if (r == 0 && !understood)
		check_set_incomplete(check);
	return r;
}

static enum pass
entry_get_pass(const struct gp_fatbin_entry *entry, const struct gp_fatbin_entry *code,
	       const struct gp_fatbin_entry *text)
{
	if (entry->kind == GP_FATBIN_ELF && code->start && entry->sm == code->sm)
		return MACHINE_CODE;
	if (entry->kind == GP_FATBIN_PTX && text->start && entry->sm == text->sm)
		return TEXT;
	return REST;
}

/* Variables are read from the code that the device would use; kernels may have been found in other
 * code. */
static bool
pass_has_variables(enum pass pass, const struct gp_fatbin_entry *code)
{
	return pass == MACHINE_CODE || (pass == TEXT && !code->start);
}

static int
fatbin_read(struct check *check, struct gp_image_blob blob, const struct gp_image_target *target,
	    enum pass pass)
{
	struct gp_fatbin_entry entry, code = { 0 }, text = { 0 };
	struct gp_fatbin_walk walk;
	int r;

	if (!gp_fatbin_best_code(blob, target, &code))
		code.start = NULL;
	if (gp_fatbin_best_ptx(blob, target, &text))
		text.start = NULL;
	if (!code.start && !text.start)
		gp_image_variables_add_unknown(check->variables);
	r = gp_fatbin_walk(&walk, blob.data, blob.size);
	while (!r && (check->left > 0 || pass_has_variables(pass, &code)) &&
	       !(r = gp_fatbin_next(&walk, &entry))) {
		if (entry_get_pass(&entry, &code, &text) == pass)
			r = entry_read(check, &entry);
	}
	if (r == -ENOMEM)
		return r;
	if (r && r != GP_IMAGE_E_END)
		check_set_incomplete(check);
	return 0;
}

static int
image_read(struct check *check, const struct gp_image *image, const struct gp_image_target *target)
{
	enum gp_image_kind kind = gp_image_type(image);
	int r = 0;

	if (kind == GP_IMAGE_ELF || kind == GP_IMAGE_PTX) {
		struct gp_image_blob blob = gp_image_blob(image, 0);

		if (!gp_params_read_code(&check->reader,
					 kind == GP_IMAGE_ELF ? GP_FATBIN_ELF : GP_FATBIN_PTX,
					 blob.data, blob.size))
			check_set_incomplete(check);
		return 0;
	}
	for (enum pass pass = 0; pass < PASSES; pass++) {
		for (unsigned int i = 0; r == 0 && i < gp_image_count(image); i++)
			r = fatbin_read(check, gp_image_blob(image, i), target, pass);
	}
	return r;
}

static void
difference_format(char text[GP_IMAGE_DIFFERENCE_SIZE], const struct gp_kernel_info *told,
		  const struct verdict *verdict)
{
	/* A long name must not displace the description of the difference. */
	const int name_max = GP_IMAGE_DIFFERENCE_SIZE - 200;

	if (told->param_count != verdict->count)
		(void)snprintf(
			text, GP_IMAGE_DIFFERENCE_SIZE,
			"kernel %.*s has %u parameters in the image, and %u as the daemon reports",
			name_max, told->name, verdict->count, told->param_count);
	else
		(void)snprintf(text, GP_IMAGE_DIFFERENCE_SIZE,
			       "parameter %u of kernel %.*s has %u bytes in the image, and %u as "
			       "the daemon reports",
			       verdict->param, name_max, told->name, verdict->has.size,
			       told->params[verdict->param].size);
}

static int
verdicts_apply(const struct check *check, struct gp_image_info *info,
	       char difference[GP_IMAGE_DIFFERENCE_SIZE])
{
	for (uint32_t i = 0; i < info->kernel_count; i++) {
		const struct verdict *verdict = &check->verdicts[i];

		if (verdict->state == DIFFERS) {
			difference_format(difference, &info->kernels[i], verdict);
			return GP_IMAGE_E_DIFFERS;
		}
		info->kernels[i].absent = verdict->state == UNSEEN && check->understood;
	}
	return 0;
}

static int
image_check_run(struct check *check, const struct gp_image *image,
		const struct gp_image_target *target, struct gp_image_info *info,
		char difference[GP_IMAGE_DIFFERENCE_SIZE])
{
	int r;

	for (uint32_t i = 0; i < info->kernel_count; i++)
		check->by_name[i] = i;
	qsort_r(check->by_name, info->kernel_count, sizeof(*check->by_name), kernel_compare_names,
		info);
	r = image_read(check, image, target);
	if (r == 0 && check->out_of_memory)
		r = -ENOMEM;
	info->prints = check->reader.prints;
	if (r == 0)
		r = verdicts_apply(check, info, difference);
	return r;
}

int
gp_image_check(const struct gp_image *image, const struct gp_image_target *target,
	       struct gp_image_info *info, struct gp_image_variables **variables,
	       char difference[GP_IMAGE_DIFFERENCE_SIZE])
{
	struct check *check = malloc(sizeof(*check));
	int r = -ENOMEM;

	if (!check)
		return r;
	check->info = info;
	check->left = info->kernel_count;
	check->understood = true;
	check->out_of_memory = false;
	check->reader.found = kernel_found;
	check->reader.found_variable = variable_found;
	check->reader.data = check;
	check->reader.prints = false;
	check->verdicts = calloc((size_t)info->kernel_count + 1, sizeof(*check->verdicts));
	check->by_name = calloc((size_t)info->kernel_count + 1, sizeof(*check->by_name));
	check->variables = gp_image_variables_create();
	if (check->verdicts && check->by_name && check->variables)
		r = image_check_run(check, image, target, info, difference);
	if (r == 0) {
		gp_image_variables_finish(check->variables);
		*variables = check->variables;
	} else {
		gp_image_variables_destroy(check->variables);
	}
	free(check->by_name);
	free(check->verdicts);
	free(check);
	return r;
}
