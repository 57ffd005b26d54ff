/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys that gpupoold.conf(5) has in each kind of section: what they take, and where that goes.
 * Constant tables; any thread.
 */
#ifndef GPD_CONFIG_KEY_H
#define GPD_CONFIG_KEY_H

#include "server/common/config/config.h"

#include <stddef.h>
#include <stdint.h>

#define GPD_CONFIG_KEYS_MAX 20 /* in a kind of section */

/* The least that a quota may be, in bytes and in bytes per second. */
#define GPD_MEMORY_MIN ((uint64_t)2 << 20)
#define GPD_BANDWIDTH_MIN ((uint64_t)64 << 10)

enum gpd_config_section {
	GPD_CONFIG_SECTION_NONE,
	GPD_CONFIG_SECTION_DAEMON,
	GPD_CONFIG_SECTION_DEVICE,
	GPD_CONFIG_SECTION_TENANT,
};

enum gpd_config_shape {
	GPD_CONFIG_ONE,        /* the section's struct holds the value */
	GPD_CONFIG_PER_DEVICE, /* struct gpd_config_quota does; "key.1" is for device 1 alone */
	GPD_CONFIG_LIST,       /* read() adds one element to the section's struct */
};

struct gpd_config_key {
	const char *name;
	/* As the functions of config_value.h; gpd_config_no_memory. */
	const char *(*read)(const struct gpd_config_key *key, const char *text, void *value);
	enum gpd_config_shape shape;
	size_t offset; /* of the value in its struct */
	uint32_t min, max;
	const char *keyword; /* instead of a number, NULL: none */
	uint32_t keyword_value;
	const char *const *keywords;
	const char *wrong;
	const char *old_name; /* accepted with a warning; NULL: none */
};

extern const char gpd_config_no_memory[];

const struct gpd_config_key *gpd_config_keys(enum gpd_config_section section, int *count_p);
/* The key of this name or old name.  -1: there is no such key. */
int gpd_config_key_index(enum gpd_config_section section, const char *name, size_t length);

#endif /* GPD_CONFIG_KEY_H */
