/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants at run time: applies the configuration to the ledger, assigns clients to tenants, and
 * devices to sessions.
 *
 * Shares in percent need the sizes of the devices, which the first worker reports; no client is
 * admitted before that. A new configuration takes effect at once, also for existing sessions; a
 * tenant that it no longer contains keeps its limits until its last session ends.
 *
 * Threads: the supervisor's main thread.
 * Errors: texts are written to error, a buffer of GPD_CONFIG_ERROR_MAX bytes.
 */
#ifndef GPD_TENANTS_H
#define GPD_TENANTS_H

#include "protocol/control.h"
#include "server/common/config/config.h"
#include "server/common/ledger/ledger.h"

#define GPD_VIRTUAL_MAX 64
#define GPD_UNITS_MAX (GPD_LEDGER_DEVICES * GPD_VIRTUAL_MAX)

/* A device as clients select it: a whole one, or a part that one session has at a time. */
struct gpd_unit {
	int device; /* the daemon's ordinal */
	int part;   /* 0 to parts - 1 */
	int parts;  /* 1: the whole device */
};

/* Tenant and devices of a session. */
struct gpd_assignment {
	uint32_t tenant;      /* index in the ledger */
	bool dedicated;       /* runs in a worker of its own */
	uint32_t compression; /* enum gp_pack_mode */
	int count;
	struct gpd_unit units[GPD_LEDGER_DEVICES];
};

struct gpd_tenants {
	struct gpd_ledger *ledger;
	struct gpd_config *config;
	uint64_t machine_memory; /* of the host, at the last change of the configuration */
	/* By ledger index: index in the configuration, or -1. */
	int config_indexes[GPD_LEDGER_TENANTS];
	/* By ledger index: as configured, or as set since. */
	uint32_t sessions_max[GPD_LEDGER_TENANTS];
	/* By ledger index: the tenant is not configured; it comes from a token, and has the limits
	 * of [tenant default] with separate accounting. */
	bool guests[GPD_LEDGER_TENANTS];
	/* The devices are the software device. Reported by the first worker, as the fields below
	 * except rule and part_sessions. */
	bool software;
	uint32_t driver_version;
	int device_count;
	struct gpd_tenants_device {
		char name[128];
		uint8_t uuid[16];
		uint64_t memory;
		uint32_t multiprocessors;
		struct gpd_config_device rule;
		uint64_t part_sessions[GPD_VIRTUAL_MAX]; /* session that has the part; 0: free */
	} devices[GPD_LEDGER_DEVICES];
};

/* Returns the smaller number of multiprocessors, where 0 means all. */
uint32_t gpd_tenants_min_sms(uint32_t a, uint32_t b);
/* Returns the device's multiprocessors for this amount, rounded to the granularity; 0: all. */
uint32_t gpd_tenants_round_sms(const struct gpd_tenants *tenants, int device,
			       const struct gpd_config_amount *amount);
/* Returns the number of multiprocessors in a worker's description of a device; 0: not given. */
uint32_t gpd_tenants_get_sms(const Gpupool__Device *device);

/* Applies a configuration and takes ownership of it. */
void gpd_tenants_set_config(struct gpd_tenants *tenants, struct gpd_config *config);
/* Stores the devices as reported by a worker; all workers report the same. */
void gpd_tenants_set_devices(struct gpd_tenants *tenants, const Gpupool__Welcome *facts);

/* Assigns the client to a tenant and determines its isolation, before it has a session. proven: the
 * tenant of its credentials; "": the one that it requests. Returns GP_E_INVALID if it is
 * refused. */
GP_MUST_CHECK int gpd_tenants_admit(struct gpd_tenants *tenants, const Gpupool__Hello *hello,
				    const char *proven, const char *address,
				    struct gpd_assignment *assignment, char *error);
/* Returns 0 if the tenant may have one more session, in addition to `ahead` clients that wait
 * before it; else GP_E_RESOURCE. */
GP_MUST_CHECK int gpd_tenants_has_room(const struct gpd_tenants *tenants,
				       const struct gpd_assignment *assignment, unsigned int ahead,
				       char *error);
/* Assigns devices to the session: those that the client selects, or all that it may use. Parts
 * belong to the session until gpd_tenants_release(). Returns GP_E_INVALID if a device does not
 * exist or is not allowed, GP_E_RESOURCE if it is in use. */
GP_MUST_CHECK int gpd_tenants_assign(struct gpd_tenants *tenants, const Gpupool__Hello *hello,
				     uint64_t session, struct gpd_assignment *assignment,
				     char *error);
/* Frees the parts of devices that the session has. */
void gpd_tenants_release(struct gpd_tenants *tenants, uint64_t session);

/* Sets the limits that the configuration has for each session of the tenant: memory, devices, parts
 * of devices. */
void gpd_tenants_apply_limits(const struct gpd_tenants *tenants,
			      const struct gpd_assignment *assignment,
			      struct gpd_ledger_session *line);

/* Fills units with all devices and parts that clients can select, in the order of their ordinals.
 * Returns their number. */
int gpd_tenants_units(const struct gpd_tenants *tenants, struct gpd_unit units[GPD_UNITS_MAX]);

#endif /* GPD_TENANTS_H */
