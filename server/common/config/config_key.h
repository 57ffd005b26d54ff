/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of gpupoold.conf(5) for each kind of section: their values' types, limits and
 * destinations in the structs of config.h.
 *
 * Ownership: all tables and texts are static.
 * Threads: any; the tables are constant.
 */
#ifndef GPD_CONFIG_KEY_H
#define GPD_CONFIG_KEY_H

#include "server/common/config/config.h"

#include <stddef.h>
#include <stdint.h>

#define GPD_CONFIG_KEYS_MAX 24 /* maximum number of keys per section */

/* The minimum of an absolute amount of memory in bytes, and of a bandwidth limit in bytes per
 * second. */
#define GPD_MEMORY_MIN ((uint64_t)2 << 20)
#define GPD_BANDWIDTH_MIN ((uint64_t)64 << 10)

/* Kinds of sections of the file. */
enum gpd_config_section {
	GPD_CONFIG_SECTION_NONE,   /* before the first section; has no keys */
	GPD_CONFIG_SECTION_DAEMON, /* [daemon], into struct gpd_config */
	GPD_CONFIG_SECTION_DEVICE, /* [device ...], into struct gpd_config_device */
	GPD_CONFIG_SECTION_TENANT, /* [tenant NAME], into struct gpd_config_tenant */
};

/* Number of values of a key. */
enum gpd_config_shape {
	GPD_CONFIG_ONE, /* one value in the section's struct */
	/* One value per device in struct gpd_config_quota; "key.1" sets device 1 only. */
	GPD_CONFIG_PER_DEVICE,
	/* Several values; read() is called for each one with the section's struct, and adds it. */
	GPD_CONFIG_LIST,
};

/* A key. */
struct gpd_config_key {
	const char *name;
	/* Parses text into *value, the object at `offset`. Returns NULL on success. Otherwise
	 * leaves *value unchanged and returns a static text, the end of an error sentence that
	 * begins with the value, or gpd_config_no_memory. */
	const char *(*read)(const struct gpd_config_key *key, const char *text, void *value);
	enum gpd_config_shape shape;
	/* Offset of the value in the section's struct or, with GPD_CONFIG_PER_DEVICE, in struct
	 * gpd_config_quota. 0 also for keys that set several members: their read() receives the
	 * section's struct. */
	size_t offset;
	uint32_t min, max;   /* limits of a number; for a path max is its maximum length in bytes */
	const char *keyword; /* word accepted instead of a number; NULL: none */
	uint32_t keyword_value; /* number that the keyword stands for */
	/* Valid words, ended by NULL; the index of the word is the value. NULL: the value is not a
	 * word. */
	const char *const *keywords;
	/* Text that read() returns for an invalid value; NULL: read() has its own texts. */
	const char *wrong;
	const char *old_name; /* former name, accepted with a warning; NULL: none */
};

/* Error of read() that is compared by its address: out of memory. */
extern const char gpd_config_no_memory[];

/* Returns the keys of this kind of section, a constant table; NULL for GPD_CONFIG_SECTION_NONE.
 * *count_p is their number, at most GPD_CONFIG_KEYS_MAX. */
const struct gpd_config_key *gpd_config_keys(enum gpd_config_section section, int *count_p);
/* Returns the index in gpd_config_keys() of the key whose present or former name is the first
 * length bytes of name ("memory" of "memory.1"), or -1 if there is none. */
int gpd_config_key_index(enum gpd_config_section section, const char *name, size_t length);

#endif /* GPD_CONFIG_KEY_H */
