/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the reader of gpupoold.conf(5) knows while it reads, for its parts: config_parse.c, which
 * takes line after line, and config_check.c, which looks at what they say together.
 *
 * All functions complain by writing the error text.  It ends the reading, or is reported, and the
 * reading continues.
 */
#ifndef GPD_CONFIG_PARSER_H
#define GPD_CONFIG_PARSER_H

#include "server/common/config/config_key.h"

#define GPD_CONFIG_RULES 128
#define GPD_CONFIG_LINE 256 /* no line has more bytes than fit */

struct gpd_config_parser {
	int line;
	const char *file;
	struct gpd_config *config;

	char *error;
	size_t error_size;
	int result;
	gpd_config_report_func *report; /* NULL: the first error ends the reading */
	void *report_arg;
	char where[2 * GPD_CONFIG_LINE]; /* what the error text begins with */

	enum gpd_config_section section;
	char title[GPD_CONFIG_LINE]; /* "[tenant alice]" */
	void *into;                  /* the struct that the open section's values are in */
	struct gpd_config_device_rule *rule;
	struct gpd_config_tenant *tenant;
	bool skips; /* lines, up to the next section: that of this one is wrong */
	struct gpd_config_lines lines[GPD_CONFIG_KEYS_MAX];
	const struct gpd_config_key *open_list; /* its last line ended with a comma */
	int open_list_line;

	int daemon_line;
	int rule_lines[GPD_CONFIG_RULES];
	int tenant_lines[GPD_CONFIG_TENANTS];
};

/* An error in this line, after `where`.  Returns whether the reading continues. */
GP_PRINTF(3, 4)
bool gpd_config_complain(struct gpd_config_parser *p, int line, const char *format, ...);

/* Without blanks at both ends, in place. */
char *gpd_config_trim(char *text);
/* A comment at its end does not count. */
void gpd_config_cut_comment(char *text);

/* -1: there is no such key. */
int gpd_config_key_index(enum gpd_config_section section, const char *name, size_t length);

/* Whether what was read makes sense together. */
bool gpd_config_check(struct gpd_config_parser *p);

#endif /* GPD_CONFIG_PARSER_H */
