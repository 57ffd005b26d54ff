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
	if (p->report)
		p->report(p->report_arg, p->error);
	return p->report != NULL;
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

/* What is wrong is of the section of this tenant, whose line it is. */
static int
at_tenant(struct gpd_config_parser *p, int tenant)
{
	snprintf(p->where, sizeof(p->where), "[tenant %s]", p->config->tenants[tenant].name);
	return p->tenant_lines[tenant];
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
is_quota_right(struct gpd_config_parser *p, int tenant, int device)
{
	const struct gpd_config_quota *quota = &p->config->tenants[tenant].devices[device];
	const char *wrong = NULL;

	/* GPD_NO_LIMIT for all is more than any other, but asks for nothing. */
	if (quota->session_memory.number != GPD_NO_LIMIT &&
	    is_more(&quota->session_memory, &quota->memory))
		wrong = "session-memory: one session may have more than the whole tenant";
	else if ((quota->session_sm.share || quota->sm.number) &&
		 is_more(&quota->session_sm, &quota->sm))
		wrong = "session-sm: one session may have more than the whole tenant";
	else if (quota->time_share > quota->limit)
		wrong = "time-share: it is more than the limit";
	if (wrong)
		(void)gpd_config_complain(p, at_tenant(p, tenant), "%s, of device %d", wrong,
					  device);
	return !wrong;
}

/* A client of this certificate would be the first tenant's of the file, whoever that is. */
static bool
check_certificates(struct gpd_config_parser *p, int tenant)
{
	const struct gpd_config_tenant *tenants = p->config->tenants;

	for (int i = 0; i < tenants[tenant].certificate_count; i++) {
		const char *name = tenants[tenant].certificates[i];
		int first = gpd_config_certificate_find(p->config, name);

		if (first != tenant &&
		    !gpd_config_complain(p, at_tenant(p, tenant),
					 "the certificate \"%s\" is that of tenant %s "
					 "already (line %d)",
					 name, tenants[first].name, p->tenant_lines[first]))
			return false;
	}
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

/* Those of a device with fixed parts. */
static bool
are_time_shares_right(struct gpd_config_parser *p, int device)
{
	uint32_t sum = 0;

	for (int i = 0; i < p->config->tenant_count; i++) {
		const struct gpd_config_quota *quota = &p->config->tenants[i].devices[device];

		sum += quota->allowed ? quota->time_share : 0;
		if (sum > 100) {
			(void)gpd_config_complain(p, at_tenant(p, i),
						  "with its own the time-shares of device %d, "
						  "whose policy is fixed, are %u%%, more than "
						  "100%%",
						  device, sum);
			return false;
		}
	}
	return true;
}

bool
gpd_config_check(struct gpd_config_parser *p)
{
	int device;

	/* What is wrong for one device mostly is for all of them: the first is enough. */
	for (int tenant = 0; tenant < p->config->tenant_count; tenant++) {
		if (!check_certificates(p, tenant))
			return false;
		for (device = 0; device < GPD_LEDGER_DEVICES; device++)
			if (!is_quota_right(p, tenant, device))
				break;
		if (device < GPD_LEDGER_DEVICES && !p->report)
			return false;
	}
	for (device = 0; device < GPD_LEDGER_DEVICES; device++)
		if (may_be_fixed(p->config, device) && !are_time_shares_right(p, device))
			return p->report != NULL;
	return true;
}
