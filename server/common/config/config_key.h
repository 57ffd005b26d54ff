/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of gpupoold.conf(5) for each kind of section: their values' types, limits and
 * destinations in struct gpd_config.
 *
 * Threads: any; the tables are constant.
 */
#ifndef GPD_CONFIG_KEY_H
#define GPD_CONFIG_KEY_H

#include "server/common/config/config.h"

#include <stddef.h>
#include <stdint.h>

#define GPD_CONFIG_KEYS_MAX 20 /* maximum per section */

/* The minimum of a memory quota in bytes, and of a bandwidth limit in bytes per second. */
#define GPD_MEMORY_MIN ((uint64_t)2 << 20)
#define GPD_BANDWIDTH_MIN ((uint64_t)64 << 10)

enum gpd_config_section {
	GPD_CONFIG_SECTION_NONE,
	GPD_CONFIG_SECTION_DAEMON,
	GPD_CONFIG_SECTION_DEVICE,
	GPD_CONFIG_SECTION_TENANT,
};

enum gpd_config_shape {
	GPD_CONFIG_ONE, /* one value in the section's struct */
	/* One value per device in struct gpd_config_quota; "key.1" sets device 1 only. */
	GPD_CONFIG_PER_DEVICE,
	GPD_CONFIG_LIST, /* read() appends one element to a list of the section's struct */
};

struct gpd_config_key {
	const char *name;
	/* Parses a value. Returns NULL or an error as the functions of config_value.h do, or
	 * gpd_config_no_memory. */
	const char *(*read)(const struct gpd_config_key *key, const char *text, void *value);
	enum gpd_config_shape shape;
	size_t offset; /* of the value in its struct */
	uint32_t min, max;
	const char *keyword; /* alternative to a number; NULL: none */
	uint32_t keyword_value;
	const char *const *keywords;
	const char *wrong;
	const char *old_name; /* accepted with a warning; NULL: none */
};

extern const char gpd_config_no_memory[];

/* Returns the keys of this kind of section; *count_p is their number. */
const struct gpd_config_key *gpd_config_keys(enum gpd_config_section section, int *count_p);
/* Returns the index in gpd_config_keys() of the key with this name, or -1. */
int gpd_config_key_index(enum gpd_config_section section, const char *name, size_t length);

#endif /* GPD_CONFIG_KEY_H */
