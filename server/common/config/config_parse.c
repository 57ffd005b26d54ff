/* SPDX-License-Identifier: Apache-2.0 */
/* Parser of gpupoold.conf(5). */
#include "base/edit_distance.h"
#include "server/common/config/config_key.h"
#include "server/common/config/config_lint.h"
#include "server/common/config/config_value.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limits of the file's format. */
#define LINE_BYTES 198
#define RULES_MAX 128
#define LINE_SIZE 256 /* size of a buffer for one line */
#define SECTIONS_WANTED "[daemon], [device N] or [tenant NAME]"

struct gpd_config_parser {
	int line;
	const char *file;
	struct gpd_config *config;

	char *error;
	size_t error_size;
	int result;
	gpd_config_report_func *report; /* NULL: parsing stops at the first error */
	void *report_arg;
	char where[2 * LINE_SIZE]; /* prefix of the error text */

	enum gpd_config_section section;
	char title[LINE_SIZE]; /* "[tenant alice]" */
	void *target;          /* the struct that receives the open section's values */
	struct gpd_config_device_rule *rule;
	struct gpd_config_tenant *tenant;
	/* Skip lines up to the next section: the header of this one is invalid. */
	bool skips_section;
	struct gpd_config_lines lines[GPD_CONFIG_KEYS_MAX];
	const struct gpd_config_key *open_list; /* list whose last line ended with a comma */
	int open_list_line;

	int daemon_line;
};

/* Completes and reports the error text. Returns whether parsing continues. */
static bool
parser_report_error(struct gpd_config_parser *p)
{
	for (char *c = p->error; p->error_size && *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	p->result = GP_E_INVALID;
	if (p->report)
		p->report(p->report_arg, p->error);
	return p->report != NULL;
}

static bool parser_error(struct gpd_config_parser *p, int line, const char *format, ...)
	GP_PRINTF(3, 4);

/* Reports an error in this line, with the prefix `where`. Returns whether parsing continues. */
static bool
parser_error(struct gpd_config_parser *p, int line, const char *format, ...)
{
	va_list arguments;
	char what[LINE_SIZE * 2];

	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	snprintf(p->error, p->error_size, "%s:%d: %s%s%s", p->file, line, p->where,
		 p->where[0] ? ": " : "", what);
	return parser_report_error(p);
}

/* Reports an error found by lint; without a report function only the first error counts. */
static void
parser_add_lint_error(void *parser, const char *text)
{
	struct gpd_config_parser *p = parser;

	if (p->result && !p->report)
		return;
	snprintf(p->error, p->error_size, "%s", text);
	(void)parser_report_error(p);
}

/* Trims blanks at both ends, in place. */
static char *
text_trim(char *text)
{
	size_t length;

	while (isspace((unsigned char)*text))
		text++;
	length = strlen(text);
	while (length > 0 && isspace((unsigned char)text[length - 1]))
		length--;
	text[length] = 0;
	return text;
}

static void
comment_cut(char *text)
{
	for (char *c = text; *c; c++)
		if ((*c == ';' || *c == '#') && (c == text || isspace((unsigned char)c[-1])))
			*c = 0;
}

static bool
parser_value_error(struct gpd_config_parser *p, const char *text, const char *wrong)
{
	bool continues = parser_error(p, p->line, "\"%s\" %s", text, wrong);

	if (wrong != gpd_config_no_memory)
		return continues;
	p->result = -ENOMEM;
	return false;
}

/* Reports keys for single devices that the tenant may not use. */
static bool
check_devices(struct gpd_config_parser *p)
{
	int count;
	const struct gpd_config_key *keys = gpd_config_keys(GPD_CONFIG_SECTION_TENANT, &count);

	for (int device = 0; device < GPD_LEDGER_DEVICES; device++) {
		for (int k = 0; k < count; k++) {
			int line = p->lines[k].single[device];

			if (!line || p->tenant->devices[device].allowed)
				continue;
			snprintf(p->where, sizeof(p->where), "%s %s.%d", p->title, keys[k].name,
				 device);
			if (!parser_error(p, line, "device %d is not in the tenant's device list",
					  device))
				return false;
		}
	}
	return true;
}

/* Keeps the keys' lines for warnings about values (config_lint.h). */
static bool
tenant_save_lines(struct gpd_config_parser *p)
{
	/* Set if the tenant had an earlier section, which has been reported as an error. */
	free(p->tenant->lines);
	p->tenant->lines = malloc(sizeof(p->lines));
	if (!p->tenant->lines) {
		p->result = -ENOMEM;
		snprintf(p->error, p->error_size, "%s: no memory", p->file);
		return false;
	}
	memcpy(p->tenant->lines, p->lines, sizeof(p->lines));
	return true;
}

static bool
section_close(struct gpd_config_parser *p)
{
	if (p->open_list) {
		snprintf(p->where, sizeof(p->where), "%s %s", p->title, p->open_list->name);
		if (!parser_error(p, p->open_list_line, "list ends with a comma"))
			return false;
		p->open_list = NULL;
	}
	if (p->section == GPD_CONFIG_SECTION_TENANT && (!check_devices(p) || !tenant_save_lines(p)))
		return false;
	p->section = GPD_CONFIG_SECTION_NONE;
	memset(p->lines, 0, sizeof(p->lines));
	return true;
}

static struct gpd_config_tenant *
add_tenant(struct gpd_config_parser *p, const char *name)
{
	struct gpd_config *config = p->config;
	size_t count = (size_t)config->tenant_count;
	struct gpd_config_tenant *tenants, *tenant;

	tenants = realloc(config->tenants, (count + 1) * sizeof(*tenants));
	if (!tenants) {
		p->result = -ENOMEM;
		snprintf(p->error, p->error_size, "%s: no memory", p->file);
		return NULL;
	}
	config->tenants = tenants;
	config->tenant_count++;
	tenant = &tenants[count];
	memset(tenant, 0, sizeof(*tenant));
	snprintf(tenant->name, sizeof(tenant->name), "%s", name);
	tenant->bandwidth = GPD_NO_LIMIT;
	tenant->sessions_max = UINT32_MAX;
	tenant->isolation = UINT32_MAX;
	for (int i = 0; i < GPD_LEDGER_DEVICES; i++) {
		tenant->devices[i].memory.number = GPD_NO_LIMIT;
		tenant->devices[i].session_memory.number = GPD_NO_LIMIT;
		tenant->devices[i].weight = 100;
		tenant->devices[i].limit = 100;
		tenant->devices[i].allowed = 1;
	}
	return tenant;
}

static bool
parser_claim_line(struct gpd_config_parser *p, int *line)
{
	if (*line)
		return parser_error(p, p->line, "duplicate of line %d", *line);
	*line = p->line;
	return true;
}

static bool
section_open_tenant(struct gpd_config_parser *p, const char *text)
{
	char name[GPD_TENANT_NAME_MAX];
	const char *wrong = gpd_value_parse_name(text, name);
	int found;

	if (wrong)
		return parser_value_error(p, text, wrong);
	found = gpd_config_tenant_find(p->config, name);
	if (found < 0) {
		found = p->config->tenant_count;
		if (found == GPD_CONFIG_TENANTS)
			return parser_error(p, p->line,
					    "more than %d tenants, \"default\" included",
					    GPD_CONFIG_TENANTS);
		if (!add_tenant(p, name))
			return false;
	}
	p->skips_section = false;
	p->section = GPD_CONFIG_SECTION_TENANT;
	p->target = p->tenant = &p->config->tenants[found];
	return parser_claim_line(p, &p->tenant->line);
}

static bool
section_open_device(struct gpd_config_parser *p, const char *text)
{
	struct gpd_config_device_rule rule = { .ordinal = -1 }, *rules = p->config->device_rules;
	int count = p->config->device_rule_count, found;
	uint64_t ordinal;

	if (gpd_value_parse_number(text, 0, GPD_LEDGER_DEVICES - 1, &ordinal)) {
		rule.ordinal = (int)ordinal;
	} else if (isdigit((unsigned char)*text)) {
		return parser_value_error(p, text, "is not a device from 0 to 31");
	} else if (strcmp(text, "*") != 0) {
		const char *wrong = gpd_value_parse_uuid(text, rule.uuid);

		if (wrong)
			return parser_value_error(p, text, wrong);
	}
	for (found = 0; found < count; found++)
		if (rules[found].ordinal == rule.ordinal &&
		    strcmp(rules[found].uuid, rule.uuid) == 0)
			break;
	if (found == RULES_MAX)
		return parser_error(p, p->line, "more than %d sections of devices", RULES_MAX);
	if (found == count) {
		rules = realloc(rules, (size_t)(count + 1) * sizeof(*rules));
		if (!rules)
			return parser_value_error(p, text, gpd_config_no_memory);
		rules[count] = rule;
		p->config->device_rules = rules;
		p->config->device_rule_count++;
	}
	p->skips_section = false;
	p->section = GPD_CONFIG_SECTION_DEVICE;
	p->rule = &rules[found];
	p->target = &p->rule->device;
	return parser_claim_line(p, &p->rule->line);
}

static bool
section_open(struct gpd_config_parser *p, char *line)
{
	char *end = strchr(line, ']'), *word, *rest;

	if (!section_close(p))
		return false;
	p->skips_section = true;
	snprintf(p->title, sizeof(p->title), "%.*s", end ? (int)(end + 1 - line) : LINE_BYTES,
		 line);
	snprintf(p->where, sizeof(p->where), "%s", p->title);
	if (!end)
		return parser_error(p, p->line, "missing ]");
	*end = 0;
	rest = text_trim(end + 1);
	if (*rest && *rest != ';' && *rest != '#')
		return parser_error(p, p->line,
				    "\"%s\" after the section title: put it on its own line", rest);
	word = text_trim(line + 1);
	rest = word + strcspn(word, " \t");
	if (*rest)
		*rest++ = 0;
	rest = text_trim(rest);
	if (strcmp(word, "tenant") == 0)
		return section_open_tenant(p, rest);
	if (strcmp(word, "device") == 0)
		return section_open_device(p, rest);
	if (strcmp(word, "daemon") != 0 || *rest)
		return parser_error(p, p->line, "unknown section (" SECTIONS_WANTED ")");
	p->skips_section = false;
	p->section = GPD_CONFIG_SECTION_DAEMON;
	p->target = p->config;
	return parser_claim_line(p, &p->daemon_line);
}

static bool
list_parse(struct gpd_config_parser *p, const struct gpd_config_key *key, char *text)
{
	p->open_list = NULL;
	do {
		const char *element = text_trim(strsep(&text, ","));
		const char *wrong = key->read(key, element, p->tenant);

		if (wrong && !parser_value_error(p, element, wrong))
			return false;
	} while (text && *text_trim(text));
	if (text) {
		p->open_list = key;
		p->open_list_line = p->line;
	}
	return true;
}

static bool
list_start(struct gpd_config_parser *p, const struct gpd_config_key *key, char *text)
{
	if (strcmp(key->name, "users") == 0 && p->tenant == &p->config->tenants[GPD_TENANT_DEFAULT])
		return parser_error(p, p->line,
				    "not allowed for tenant \"default\", which gets all users "
				    "without a tenant");
	/* The list replaces the default, which is all devices. */
	if (strcmp(key->name, "devices") == 0)
		for (int i = 0; i < GPD_LEDGER_DEVICES; i++)
			p->tenant->devices[i].allowed = 0;
	return list_parse(p, key, text);
}

/* device: -1 for all devices without a setting of their own. */
static bool
value_parse(struct gpd_config_parser *p, int index, const struct gpd_config_key *key, int device,
	    const char *text)
{
	const struct gpd_config_lines *lines = &p->lines[index];
	const char *wrong = NULL;

	if (key->shape == GPD_CONFIG_PER_DEVICE) {
		for (int i = 0; i < GPD_LEDGER_DEVICES && !wrong; i++)
			if (device < 0 ? !lines->single[i] : device == i)
				wrong = key->read(key, text,
						  (char *)&p->tenant->devices[i] + key->offset);
	} else {
		wrong = key->read(key, text, (char *)p->target + key->offset);
		if (p->section == GPD_CONFIG_SECTION_DEVICE)
			p->rule->set_keys |= 1u << index;
	}
	return wrong ? parser_value_error(p, text, wrong) : true;
}

static bool
parser_key_error(struct gpd_config_parser *p, const char *name)
{
	struct gp_suggestion similar = { .word = name };
	char list[GPD_CONFIG_ERROR_MAX] = "";
	int count;
	const struct gpd_config_key *keys = gpd_config_keys(p->section, &count);

	for (int i = 0; i < count; i++) {
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? ", " : "",
			 keys[i].name);
		gp_suggestion_consider(&similar, keys[i].name);
	}
	if (similar.best)
		return parser_error(p, p->line, "unknown key; did you mean %s? (%s)", similar.best,
				    list);
	return parser_error(p, p->line, "unknown key (%s)", list);
}

static void
config_add_old_name(struct gpd_config *config, const struct gpd_config_key *key, int line)
{
	if (config->old_name_count < GPD_CONFIG_OLD_NAMES)
		config->old_names[config->old_name_count++] = (struct gpd_config_old_name){
			.line = line, .old_name = key->old_name, .name = key->name
		};
}

static bool
key_parse(struct gpd_config_parser *p, const char *name, char *value)
{
	const char *dot = strchr(name, '.');
	int count, index;
	const struct gpd_config_key *keys = gpd_config_keys(p->section, &count), *key;
	uint64_t device = 0;
	int *line;

	if (p->section == GPD_CONFIG_SECTION_NONE) {
		p->skips_section = true;
		return parser_error(p, p->line, "before the first section (" SECTIONS_WANTED ")");
	}
	index = gpd_config_key_index(p->section, name, dot ? (size_t)(dot - name) : strlen(name));
	if (index < 0)
		return parser_key_error(p, name);
	key = &keys[index];
	if (strncmp(key->name, name, strlen(key->name)) != 0)
		config_add_old_name(p->config, key, p->line);
	line = &p->lines[index].all;
	if (dot) {
		if (key->shape != GPD_CONFIG_PER_DEVICE)
			return parser_error(p, p->line, "%s cannot differ from device to device",
					    key->name);
		if (!gpd_value_parse_number(dot + 1, 0, GPD_LEDGER_DEVICES - 1, &device))
			return parser_value_error(p, dot + 1, "is not a device from 0 to 31");
		line = &p->lines[index].single[device];
	}
	if (!parser_claim_line(p, line))
		return false;
	if (key->shape == GPD_CONFIG_LIST)
		return list_start(p, key, value);
	return value_parse(p, index, key, dot ? (int)device : -1, value);
}

static void
set_where(struct gpd_config_parser *p, const char *name, const char *value)
{
	snprintf(p->where, sizeof(p->where), "%s%s%s = %s", p->title, p->title[0] ? " " : "", name,
		 value);
}

static bool
line_parse(struct gpd_config_parser *p, const char *text, size_t length)
{
	char buffer[LINE_SIZE], *line, *value;

	p->line++;
	p->where[0] = 0;
	if (length > LINE_BYTES)
		return parser_error(
			p, p->line,
			"longer than %d bytes (a list may continue on the next line after a comma)",
			LINE_BYTES);
	snprintf(buffer, sizeof(buffer), "%.*s", (int)length, text);
	comment_cut(buffer);
	line = text_trim(buffer);
	if (!*line)
		return true;
	if (*line == '[')
		return section_open(p, line);
	if (p->skips_section)
		return true;
	if (p->open_list) {
		set_where(p, p->open_list->name, line);
		return list_parse(p, p->open_list, line);
	}
	value = strpbrk(line, "=:");
	if (!value)
		return parser_error(p, p->line, "\"%s\" is neither KEY = VALUE nor [SECTION]",
				    line);
	*value++ = 0;
	line = text_trim(line);
	value = text_trim(value);
	set_where(p, line, value);
	return key_parse(p, line, value);
}

static void
text_parse(struct gpd_config_parser *p, const char *text)
{
	if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
		text += 3;
	while (*text) {
		size_t length = strcspn(text, "\n");

		if (!line_parse(p, text, length))
			return;
		text += length + (text[length] == '\n');
	}
	if (!section_close(p))
		return;
	gpd_lint_errors(&(struct gpd_lint){
		.config = p->config, .report = parser_add_lint_error, .arg = p });
	for (int i = 0; i < p->config->tenant_count; i++) {
		struct gpd_config_tenant *tenant = &p->config->tenants[i];

		tenant->isolation_set = tenant->isolation != UINT32_MAX;
		if (!tenant->isolation_set)
			tenant->isolation = p->config->isolation;
	}
}

int
gpd_config_parse(const char *text, const char *name, struct gpd_config **config_p, char *error,
		 size_t error_size)
{
	return gpd_config_parse_all(text, name, NULL, NULL, config_p, error, error_size);
}

int
gpd_config_parse_all(const char *text, const char *name, gpd_config_report_func *report, void *arg,
		     struct gpd_config **config_p, char *error, size_t error_size)
{
	struct gpd_config_parser *p = calloc(1, sizeof(*p));
	int r = -ENOMEM;

	if (p)
		p->config = calloc(1, sizeof(*p->config));
	if (!p || !p->config || (*name && !(p->config->file = strdup(name)))) {
		snprintf(error, error_size, "%s: no memory", name);
		gpd_config_free(p ? p->config : NULL);
		free(p);
		return r;
	}
	p->config->sessions_max = 256;
	p->config->isolation = GPD_CONFIG_ISOLATION_TENANT;
	p->config->ready_workers = GPD_READY_WORKERS_DEFAULT;
	p->config->worker_idle_timeout = 60;
	p->config->quarantine = 600;
	p->config->lanes_max = 8;
	p->config->software_device = GPD_CONFIG_SOFTWARE_UNSET;
	p->config->host_memory.share = GPD_CONFIG_SHARE_MAX / 4;
	p->config->code_memory.share = GPD_CONFIG_SHARE_MAX / 2;
	p->config->pinned_memory.share = GPD_CONFIG_SHARE_MAX / 2;
	p->file = name;
	p->report = report;
	p->report_arg = arg;
	p->error = error;
	p->error_size = error_size;
	if (add_tenant(p, "default"))
		text_parse(p, text);
	r = p->result;
	if (r)
		gpd_config_free(p->config);
	else
		*config_p = p->config;
	free(p);
	return r;
}
