/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of gpupoold.conf(5).  inih splits lines into keys and values.  It tells neither the
 * line's number nor of a section without keys, and cuts names of sections short, so the function
 * that hands it the lines looks after those.
 */
#include "server/config_key.h"
#include "server/config_value.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RULES_MAX 128
#define LINE_MAX 256

#define SECTIONS_WANTED "[daemon], [device N] or [tenant NAME]"

/* The lines in which a key stands: for all devices, and for single ones.  0: nowhere. */
struct key_lines {
	int all;
	int single[GPD_CONFIG_DEVICES];
};

struct parser {
	const char *text;
	const char *next; /* line in it */
	int line;
	const char *file;
	struct gpd_config *config;

	char *error;
	size_t error_size;
	int result;
	int error_line;
	char where[2 * LINE_MAX]; /* what the error text begins with */

	enum gpd_config_section section;
	char title[LINE_MAX]; /* "[tenant alice]" */
	struct gpd_config_device_rule *rule;
	struct gpd_config_tenant *tenant;
	struct key_lines lines[GPD_CONFIG_KEYS_MAX];
	const struct gpd_config_key *open_list; /* its last line ended with a comma */
	int open_list_line;

	int daemon_line;
	int rule_lines[RULES_MAX];
	int tenant_lines[GPD_CONFIG_TENANTS];
	struct key_lines time_share_lines[GPD_CONFIG_TENANTS];
};

/* Always false. */
GP_PRINTF(3, 4)
static bool
complain(struct parser *p, int line, const char *format, ...)
{
	va_list arguments;
	char what[LINE_MAX * 2];

	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	snprintf(p->error, p->error_size, "%s:%d: %s%s%s", p->file, line, p->where,
		 p->where[0] ? ": " : "", what);
	for (char *c = p->error; p->error_size && *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	p->result = GP_E_INVALID;
	p->error_line = line;
	return false;
}

static bool
complain_value(struct parser *p, const char *text, const char *wrong)
{
	(void)complain(p, p->line, "\"%s\" %s", text, wrong);
	if (wrong == gpd_config_no_memory)
		p->result = -ENOMEM;
	return false;
}

/* Without the blanks around it. */
static char *
trim(char *text)
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

/* A comment at its end does not count. */
static void
cut_comment(char *text)
{
	for (char *c = text; *c; c++)
		if ((*c == ';' || *c == '#') && (c == text || isspace((unsigned char)c[-1])))
			*c = 0;
}

/* Cut short if need be. */
static void
copy_line(const struct parser *p, int line, char *copy, size_t size)
{
	const char *text = p->text;
	char room[LINE_MAX];

	while (--line > 0 && (text = strchr(text, '\n')))
		text++;
	snprintf(room, sizeof(room), "%.*s", text ? (int)strcspn(text, "\n") : 0, text ? text : "");
	cut_comment(room);
	snprintf(copy, size, "%s", trim(room));
}

/* An error in a line that was read before. */
GP_PRINTF(3, 4)
static bool
complain_back(struct parser *p, int line, const char *format, ...)
{
	char what[LINE_MAX], text[LINE_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	copy_line(p, line, text, sizeof(text));
	snprintf(p->where, sizeof(p->where), "%s %s", p->title, text);
	return complain(p, line, "%s", what);
}

static int
key_index(enum gpd_config_section section, const char *name, size_t length)
{
	int count;
	const struct gpd_config_key *keys = gpd_config_keys(section, &count);

	for (int i = 0; i < count; i++)
		if (strlen(keys[i].name) == length && memcmp(keys[i].name, name, length) == 0)
			return i;
	return -1;
}

/* The tenant's line for this key that holds for the device. */
static int
line_of(const struct parser *p, const char *name, int device)
{
	const struct key_lines *lines = &p->lines[key_index(GPD_CONFIG_TENANT, name, strlen(name))];

	return lines->single[device] ? lines->single[device] : lines->all;
}

/* Whether both are numbers or both shares, and the first is more. */
static bool
is_more(const struct gpd_config_amount *one, const struct gpd_config_amount *other)
{
	if (!one->share != !other->share)
		return false;
	return one->share ? one->share > other->share : one->number > other->number;
}

static bool
check_quota(struct parser *p, int device)
{
	const struct gpd_config_quota *quota = &p->tenant->devices[device];
	bool sm_all = quota->sm.number == 0;

	/* UINT64_MAX for all is more than any other, but asks for nothing. */
	if (quota->session_memory.number != UINT64_MAX &&
	    is_more(&quota->session_memory, &quota->memory))
		return complain_back(p, line_of(p, "session-memory", device),
				     "one session may have more than the whole tenant (line %d)",
				     line_of(p, "memory", device));
	if ((quota->session_sm.share || !sm_all) && is_more(&quota->session_sm, &quota->sm))
		return complain_back(p, line_of(p, "session-sm", device),
				     "one session may have more than the whole tenant (line %d)",
				     line_of(p, "sm", device));
	if (quota->time_share > quota->limit)
		return complain_back(p, line_of(p, "time-share", device),
				     "more than the limit (line %d)", line_of(p, "limit", device));
	return true;
}

static bool
close_tenant(struct parser *p)
{
	int devices_line = line_of(p, "devices", 0);

	for (int device = 0; device < GPD_CONFIG_DEVICES; device++) {
		if (devices_line == 0)
			p->tenant->devices[device].allowed = 1;
		for (int k = 0; k < GPD_CONFIG_KEYS_MAX; k++)
			if (p->lines[k].single[device] && !p->tenant->devices[device].allowed)
				return complain_back(p, p->lines[k].single[device],
						     "device %d is none of the tenant's (line %d)",
						     device, devices_line);
		if (!check_quota(p, device))
			return false;
	}
	p->time_share_lines[p->tenant - p->config->tenants] =
		p->lines[key_index(GPD_CONFIG_TENANT, "time-share", strlen("time-share"))];
	return true;
}

static bool
close_section(struct parser *p)
{
	if (p->open_list)
		return complain_back(p, p->open_list_line,
				     "ends with a comma, but the list does not go on");
	if (p->section == GPD_CONFIG_TENANT && !close_tenant(p))
		return false;
	p->section = GPD_CONFIG_NO_SECTION;
	memset(p->lines, 0, sizeof(p->lines));
	return true;
}

static struct gpd_config_tenant *
add_tenant(struct parser *p, const char *name)
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
	tenant->bandwidth = UINT64_MAX;
	tenant->sessions_max = UINT32_MAX;
	tenant->isolation = UINT32_MAX;
	for (int i = 0; i < GPD_CONFIG_DEVICES; i++) {
		tenant->devices[i].memory.number = UINT64_MAX;
		tenant->devices[i].session_memory.number = UINT64_MAX;
		tenant->devices[i].weight = 100;
		tenant->devices[i].limit = 100;
	}
	return tenant;
}

static bool
begin_at(struct parser *p, int *line)
{
	if (*line)
		return complain(p, p->line, "is there already, in line %d", *line);
	*line = p->line;
	return true;
}

static bool
open_tenant(struct parser *p, const char *text)
{
	char name[GPD_CONFIG_NAME_MAX];
	const char *wrong = gpd_value_name(text, name);
	int found;

	if (wrong)
		return complain_value(p, text, wrong);
	found = gpd_config_tenant_find(p->config, name);
	if (found < 0) {
		found = p->config->tenant_count;
		if (found == GPD_CONFIG_TENANTS)
			return complain(p, p->line, "more than %d tenants, \"default\" included",
					GPD_CONFIG_TENANTS);
		if (!add_tenant(p, name))
			return false;
	}
	p->section = GPD_CONFIG_TENANT;
	p->tenant = &p->config->tenants[found];
	return begin_at(p, &p->tenant_lines[found]);
}

static bool
open_device(struct parser *p, const char *text)
{
	struct gpd_config_device_rule rule = { .ordinal = -1 }, *rules = p->config->device_rules;
	int count = p->config->device_rule_count, found;
	uint64_t ordinal;

	if (gpd_value_number(text, 0, GPD_CONFIG_DEVICES - 1, &ordinal)) {
		rule.ordinal = (int)ordinal;
	} else if (isdigit((unsigned char)*text)) {
		return complain_value(p, text, "is no device from 0 to 31");
	} else if (strcmp(text, "*") != 0) {
		const char *wrong = gpd_value_uuid(text, rule.uuid);

		if (wrong)
			return complain_value(p, text, wrong);
	}
	for (found = 0; found < count; found++)
		if (rules[found].ordinal == rule.ordinal &&
		    strcmp(rules[found].uuid, rule.uuid) == 0)
			break;
	if (found == RULES_MAX)
		return complain(p, p->line, "more than %d sections of devices", RULES_MAX);
	if (found == count) {
		rules = realloc(rules, (size_t)(count + 1) * sizeof(*rules));
		if (!rules)
			return complain_value(p, text, gpd_config_no_memory);
		rules[count] = rule;
		p->config->device_rules = rules;
		p->config->device_rule_count++;
	}
	p->section = GPD_CONFIG_DEVICE;
	p->rule = &rules[found];
	return begin_at(p, &p->rule_lines[found]);
}

static bool
open_section(struct parser *p, const char *line)
{
	char text[LINE_MAX], *end, *word, *rest;

	if (!close_section(p))
		return false;
	snprintf(text, sizeof(text), "%s", line + 1);
	end = strchr(text, ']');
	snprintf(p->title, sizeof(p->title), "%s", line);
	if (end)
		p->title[end - text + 2] = 0;
	snprintf(p->where, sizeof(p->where), "%s", p->title);
	if (!end)
		return complain(p, p->line, "no ] at its end");
	*end = 0;
	rest = trim(end + 1);
	if (*rest && *rest != ';' && *rest != '#')
		return complain(p, p->line, "\"%s\" behind it belongs in a line of its own", rest);
	word = trim(text);
	rest = word + strcspn(word, " \t");
	if (*rest)
		*rest++ = 0;
	rest = trim(rest);
	if (strcmp(word, "tenant") == 0)
		return open_tenant(p, rest);
	if (strcmp(word, "device") == 0)
		return open_device(p, rest);
	if (strcmp(word, "daemon") != 0 || *rest)
		return complain(p, p->line, "there is no such section (" SECTIONS_WANTED ")");
	p->section = GPD_CONFIG_DAEMON;
	return begin_at(p, &p->daemon_line);
}

/* For inih: hands out the next line, without blanks around it unless a list goes on in it. */
static char *
read_line(char *room, int size, void *user)
{
	struct parser *p = user;
	size_t length;
	const char *text;

	if (p->result || !*p->next)
		return NULL;
	p->line++;
	p->where[0] = 0;
	text = p->next;
	length = strcspn(text, "\n");
	p->next += length + (text[length] == '\n');
	for (; length > 0 && isspace((unsigned char)*text); length--)
		text++;
	while (length > 0 && isspace((unsigned char)text[length - 1]))
		length--;
	/* A blank before it and the zero behind. */
	if (length + 2 > (size_t)size || length + 2 > LINE_MAX) {
		(void)complain(p, p->line,
			       "longer than %d bytes (a list may go on in the next "
			       "line after a comma)",
			       size - 2);
		return NULL;
	}
	snprintf(room, (size_t)size, "%s%.*s", p->open_list && *text != '[' ? " " : "", (int)length,
		 text);
	return room[0] == '[' && !open_section(p, room) ? NULL : room;
}

static bool
take_list(struct parser *p, const struct gpd_config_key *key, char *text)
{
	char *at = text, *comma;

	p->open_list = NULL;
	do {
		const char *wrong;
		char *element = at;

		comma = strchr(at, ',');
		if (comma)
			*comma = 0;
		element = trim(element);
		wrong = key->read(key, element, p->tenant);
		if (wrong)
			return complain_value(p, element, wrong);
		at = comma ? comma + 1 : NULL;
	} while (comma && *trim(at));
	if (comma) {
		p->open_list = key;
		p->open_list_line = p->line;
	}
	return true;
}

static void *
section_struct(const struct parser *p)
{
	switch (p->section) {
	case GPD_CONFIG_DAEMON:
		return p->config;
	case GPD_CONFIG_DEVICE:
		return &p->rule->device;
	case GPD_CONFIG_TENANT:
		return p->tenant;
	case GPD_CONFIG_NO_SECTION:
		break;
	}
	return NULL;
}

/* device: -1 for all, that is those for which the key is not given by itself. */
static bool
take_value(struct parser *p, int index, const struct gpd_config_key *key, int device,
	   const char *text)
{
	const struct key_lines *lines = &p->lines[index];
	const char *wrong = NULL;

	if (key->shape == GPD_CONFIG_PER_DEVICE) {
		for (int i = 0; i < GPD_CONFIG_DEVICES && !wrong; i++)
			if (device < 0 ? !lines->single[i] : device == i)
				wrong = key->read(key, text,
						  (char *)&p->tenant->devices[i] + key->offset);
	} else {
		wrong = key->read(key, text, (char *)section_struct(p) + key->offset);
		if (p->section == GPD_CONFIG_DEVICE)
			p->rule->given |= 1u << index;
	}
	return wrong ? complain_value(p, text, wrong) : true;
}

static bool
complain_key(struct parser *p)
{
	char list[LINE_MAX] = "";
	int count;
	const struct gpd_config_key *keys = gpd_config_keys(p->section, &count);

	for (int i = 0; i < count; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? ", " : "",
			 keys[i].name);
	return complain(p, p->line, "there is no such key here (%s)", list);
}

static bool
take_key(struct parser *p, const char *name, char *value)
{
	const char *dot = strchr(name, '.');
	int count, index;
	const struct gpd_config_key *keys = gpd_config_keys(p->section, &count), *key;
	uint64_t device = 0;
	int *line;

	if (p->section == GPD_CONFIG_NO_SECTION)
		return complain(p, p->line,
				"stands before the first section (" SECTIONS_WANTED ")");
	index = key_index(p->section, name, dot ? (size_t)(dot - name) : strlen(name));
	if (index < 0)
		return complain_key(p);
	key = &keys[index];
	line = &p->lines[index].all;
	if (dot) {
		if (key->shape != GPD_CONFIG_PER_DEVICE)
			return complain(p, p->line, "%s cannot differ from device to device",
					key->name);
		if (!gpd_value_number(dot + 1, 0, GPD_CONFIG_DEVICES - 1, &device))
			return complain_value(p, dot + 1, "is no device from 0 to 31");
		line = &p->lines[index].single[device];
	}
	if (!begin_at(p, line))
		return false;
	if (p->section == GPD_CONFIG_TENANT && strcmp(key->name, "users") == 0 &&
	    p->tenant == &p->config->tenants[GPD_CONFIG_TENANT_DEFAULT])
		return complain(p, p->line, "\"default\" takes the users whom no other tenant has");
	if (key->shape == GPD_CONFIG_LIST)
		return take_list(p, key, value);
	return take_value(p, index, key, dot ? (int)device : -1, value);
}

/* For inih: a key and its value, or the next part of a list. */
static int
take_entry(void *user, const char *section, const char *name, const char *value)
{
	struct parser *p = user;
	char text[LINE_MAX];

	if (p->result)
		return 0;
	snprintf(text, sizeof(text), "%s", value ? value : "");
	cut_comment(text);
	snprintf(p->where, sizeof(p->where), "%s%s%s = %s", p->title, p->title[0] ? " " : "", name,
		 trim(text));
	if (p->open_list)
		return take_list(p, p->open_list, trim(text));
	return take_key(p, name, trim(text));
}

static bool
may_be_fixed(const struct gpd_config *config, int device)
{
	for (int i = 0; i < config->device_rule_count; i++)
		if (config->device_rules[i].uuid[0] &&
		    config->device_rules[i].device.policy == GPD_CONFIG_POLICY_FIXED)
			return true;
	return gpd_config_device(config, device, NULL).policy == GPD_CONFIG_POLICY_FIXED;
}

static bool
check_time_shares(struct parser *p)
{
	for (int device = 0; device < GPD_CONFIG_DEVICES; device++) {
		uint32_t sum = 0;

		if (!may_be_fixed(p->config, device))
			continue;
		for (int i = 0; i < p->config->tenant_count; i++) {
			const struct gpd_config_tenant *tenant = &p->config->tenants[i];
			const struct key_lines *lines = &p->time_share_lines[i];

			if (!tenant->devices[device].allowed)
				continue;
			sum += tenant->devices[device].time_share;
			if (sum <= 100)
				continue;
			snprintf(p->title, sizeof(p->title), "[tenant %s]", tenant->name);
			return complain_back(
				p, lines->single[device] ? lines->single[device] : lines->all,
				"with it the time-shares of device %d, whose policy "
				"is fixed, are %u%%, more than 100%%",
				device, sum);
		}
	}
	return true;
}

static void
parse(struct parser *p)
{
	int r = ini_parse_stream(read_line, p, take_entry, p);

	if (r < 0 && !p->result) {
		snprintf(p->error, p->error_size, "%s: no memory", p->file);
		p->result = -ENOMEM;
	} else if (r > 0 && (!p->result || r < p->error_line)) {
		char line[LINE_MAX];

		copy_line(p, r, line, sizeof(line));
		p->where[0] = 0;
		(void)complain(p, r, "\"%s\" is neither KEY = VALUE nor [SECTION]", line);
	}
	if (p->result || !close_section(p))
		return;
	if (p->tenant_lines[GPD_CONFIG_TENANT_DEFAULT] == 0)
		for (int i = 0; i < GPD_CONFIG_DEVICES; i++)
			p->config->tenants[GPD_CONFIG_TENANT_DEFAULT].devices[i].allowed = 1;
	if (!check_time_shares(p))
		return;
	for (int i = 0; i < p->config->tenant_count; i++)
		if (p->config->tenants[i].isolation == UINT32_MAX)
			p->config->tenants[i].isolation = p->config->isolation;
}

int
gpd_config_parse(const char *text, const char *name, struct gpd_config **config_p, char *error,
		 size_t error_size)
{
	struct parser *p = calloc(1, sizeof(*p));
	int r = -ENOMEM;

	if (p)
		p->config = calloc(1, sizeof(*p->config));
	if (!p || !p->config) {
		snprintf(error, error_size, "%s: no memory", name);
		free(p);
		return r;
	}
	p->text = p->next = text;
	if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
		p->next += 3;
	p->file = name;
	p->error = error;
	p->error_size = error_size;
	if (add_tenant(p, "default"))
		parse(p);
	r = p->result;
	if (r)
		gpd_config_free(p->config);
	else
		*config_p = p->config;
	free(p);
	return r;
}
