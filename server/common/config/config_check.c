/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/config/config_parser.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool
gpd_config_complain(struct gpd_config_parser *p, int line, const char *format, ...)
{
	va_list arguments;
	char what[GPD_CONFIG_LINE * 2];

	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	snprintf(p->error, p->error_size, "%s:%d: %s%s%s", p->file, line, p->where,
		 p->where[0] ? ": " : "", what);
	for (char *c = p->error; p->error_size && *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	p->result = GP_E_INVALID;
	return false;
}

char *
gpd_config_trim(char *text)
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

void
gpd_config_cut_comment(char *text)
{
	for (char *c = text; *c; c++)
		if ((*c == ';' || *c == '#') && (c == text || isspace((unsigned char)c[-1])))
			*c = 0;
}

bool
gpd_config_complain_back(struct gpd_config_parser *p, int line, const char *format, ...)
{
	char what[GPD_CONFIG_LINE], quoted[GPD_CONFIG_LINE];
	const char *text = p->text;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	for (int i = 1; i < line; i++)
		text = strchr(text, '\n') + 1;
	snprintf(quoted, sizeof(quoted), "%.*s", (int)strcspn(text, "\n"), text);
	gpd_config_cut_comment(quoted);
	snprintf(p->where, sizeof(p->where), "%s %s", p->title, gpd_config_trim(quoted));
	return gpd_config_complain(p, line, "%s", what);
}

int
gpd_config_key_index(enum gpd_config_section section, const char *name, size_t length)
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
line_of(const struct gpd_config_parser *p, const char *name, int device)
{
	const struct gpd_config_lines *lines =
		&p->lines[gpd_config_key_index(GPD_CONFIG_SECTION_TENANT, name, strlen(name))];

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
check_quota(struct gpd_config_parser *p, int device)
{
	const struct gpd_config_quota *quota = &p->tenant->devices[device];
	bool sm_all = quota->sm.number == 0;

	/* GPD_NO_LIMIT for all is more than any other, but asks for nothing. */
	if (quota->session_memory.number != GPD_NO_LIMIT &&
	    is_more(&quota->session_memory, &quota->memory))
		return gpd_config_complain_back(
			p, line_of(p, "session-memory", device),
			"one session may have more than the whole tenant (line %d)",
			line_of(p, "memory", device));
	if ((quota->session_sm.share || !sm_all) && is_more(&quota->session_sm, &quota->sm))
		return gpd_config_complain_back(
			p, line_of(p, "session-sm", device),
			"one session may have more than the whole tenant (line %d)",
			line_of(p, "sm", device));
	if (quota->time_share > quota->limit)
		return gpd_config_complain_back(p, line_of(p, "time-share", device),
						"more than the limit (line %d)",
						line_of(p, "limit", device));
	return true;
}

/* A client of this certificate would be the first tenant's of the file, whoever that is. */
static bool
check_certificates(struct gpd_config_parser *p)
{
	const struct gpd_config *config = p->config;
	int line = line_of(p, "certificate", 0);

	p->certificate_lines[p->tenant - config->tenants] = line;
	for (int i = 0; i < config->tenant_count; i++) {
		const struct gpd_config_tenant *other = &config->tenants[i];

		if (other == p->tenant)
			continue;
		for (int k = 0; k < p->tenant->certificate_count; k++)
			for (int m = 0; m < other->certificate_count; m++)
				if (strcmp(p->tenant->certificates[k], other->certificates[m]) == 0)
					return gpd_config_complain_back(
						p, line,
						"the certificate \"%s\" is that of tenant %s "
						"already (line %d)",
						other->certificates[m], other->name,
						p->certificate_lines[i]);
	}
	return true;
}

bool
gpd_config_check_tenant(struct gpd_config_parser *p)
{
	int devices_line = line_of(p, "devices", 0);

	if (!check_certificates(p))
		return false;
	for (int device = 0; device < GPD_LEDGER_DEVICES; device++) {
		if (devices_line == 0)
			p->tenant->devices[device].allowed = 1;
		for (int k = 0; k < GPD_CONFIG_KEYS_MAX; k++)
			if (p->lines[k].single[device] && !p->tenant->devices[device].allowed)
				return gpd_config_complain_back(
					p, p->lines[k].single[device],
					"device %d is none of the tenant's (line %d)", device,
					devices_line);
		if (!check_quota(p, device))
			return false;
	}
	p->time_share_lines[p->tenant - p->config->tenants] = p->lines[gpd_config_key_index(
		GPD_CONFIG_SECTION_TENANT, "time-share", strlen("time-share"))];
	return true;
}

static bool
may_be_fixed(const struct gpd_config *config, int device)
{
	for (int i = 0; i < config->device_rule_count; i++)
		if (config->device_rules[i].uuid[0] &&
		    config->device_rules[i].device.policy == GPD_POLICY_FIXED)
			return true;
	return gpd_config_device(config, device, NULL).policy == GPD_POLICY_FIXED;
}

bool
gpd_config_check_time_shares(struct gpd_config_parser *p)
{
	for (int device = 0; device < GPD_LEDGER_DEVICES; device++) {
		uint32_t sum = 0;

		if (!may_be_fixed(p->config, device))
			continue;
		for (int i = 0; i < p->config->tenant_count; i++) {
			const struct gpd_config_tenant *tenant = &p->config->tenants[i];
			const struct gpd_config_lines *lines = &p->time_share_lines[i];

			if (!tenant->devices[device].allowed)
				continue;
			sum += tenant->devices[device].time_share;
			if (sum <= 100)
				continue;
			snprintf(p->title, sizeof(p->title), "[tenant %s]", tenant->name);
			return gpd_config_complain_back(
				p, lines->single[device] ? lines->single[device] : lines->all,
				"with it the time-shares of device %d, whose policy "
				"is fixed, are %u%%, more than 100%%",
				device, sum);
		}
	}
	return true;
}
