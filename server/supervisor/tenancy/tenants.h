/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration at work: tenants in the ledger, whose a session is, which devices it gets.
 *
 * The supervisor has one.  What is configured in per cent needs to know the devices, which a worker
 * tells; until then nobody is admitted.  A new configuration takes the place of the old one at
 * once, for the sessions that there are, too; a tenant that it does not name keeps what it had
 * until its last session ends.  Main thread only.  error: room of GPD_CONFIG_ERROR_MAX.
 */
#ifndef GPD_TENANTS_H
#define GPD_TENANTS_H

#include "protocol/control.h"
#include "server/common/config/config.h"
#include "server/common/ledger/ledger.h"

#define GPD_VIRTUAL_MAX 64
#define GPD_UNITS_MAX (GPD_LEDGER_DEVICES * GPD_VIRTUAL_MAX)

/* A device that sessions can have: a whole one, or a part of it that one session has at a time. */
struct gpd_unit {
	int device; /* the daemon's ordinal */
	int part;   /* 0 to n - 1 */
	int parts;  /* n; 1: the device itself */
};

/* What a session was given. */
struct gpd_assignment {
	uint32_t tenant;      /* in the ledger */
	bool dedicated;       /* in a process of its own */
	uint32_t compression; /* enum gp_pack_mode */
	int count;
	struct gpd_unit units[GPD_LEDGER_DEVICES];
};

struct gpd_tenants {
	struct gpd_ledger *ledger;
	struct gpd_config *config;
	uint64_t machine_memory;                /* when the configuration came into force */
	int config_indexes[GPD_LEDGER_TENANTS]; /* by line of the ledger: in the configuration, or
						   -1 */
	/* By line, too: as the configuration says, or as was set since. */
	uint32_t sessions_max[GPD_LEDGER_TENANTS];
	/* The configuration does not name it: it came by a token, and has what [tenant default]
	 * says, on its own account. */
	bool guests[GPD_LEDGER_TENANTS];
	bool software; /* as the driver says, as all of the devices but their rules and holders */
	uint32_t driver_version;
	int device_count;
	struct gpd_tenants_device {
		char name[128];
		uint8_t uuid[16];
		uint64_t memory;
		uint32_t multiprocessors;
		struct gpd_config_device rule;
		uint64_t part_sessions[GPD_VIRTUAL_MAX]; /* sessions that have the parts; 0: free */
	} devices[GPD_LEDGER_DEVICES];
};

/* Of two numbers of multiprocessors, of which 0 is all. */
uint32_t gpd_tenants_min_sms(uint32_t a, uint32_t b);
/* What of a device's multiprocessors this amount comes to, in pieces as they are given out; 0: all.
 */
uint32_t gpd_tenants_round_sms(const struct gpd_tenants *tenants, int device,
			       const struct gpd_config_amount *amount);
/* Of a device as workers describe it; 0: they do not say. */
uint32_t gpd_tenants_get_sms(const Gpupool__Device *device);

/* The configuration that holds from now on, which is taken over. */
void gpd_tenants_set_config(struct gpd_tenants *tenants, struct gpd_config *config);
/* What a worker says of the devices; every one says the same. */
void gpd_tenants_set_devices(struct gpd_tenants *tenants, const Gpupool__Welcome *facts);

/* Whose the client is, and of which class; it has no session yet.  proven: the tenant that its
 * credentials are of; "": as it claims.  GP_E_INVALID: it is refused. */
GP_MUST_CHECK int gpd_tenants_admit(struct gpd_tenants *tenants, const Gpupool__Hello *hello,
				    const char *proven, const char *address,
				    struct gpd_assignment *assignment, char *error);
/* Whether the tenant may have one more session, besides those who wait before. */
GP_MUST_CHECK int gpd_tenants_has_room(const struct gpd_tenants *tenants,
				       const struct gpd_assignment *assignment, unsigned int ahead,
				       char *error);
/* Fills the grant's devices: those that the client names, or all that it may have.  Parts of
 * devices are the session's until gpd_tenants_release().  GP_E_INVALID: there is no such device, or
 * it is not for this tenant; GP_E_RESOURCE: it is taken. */
GP_MUST_CHECK int gpd_tenants_assign(struct gpd_tenants *tenants, const Gpupool__Hello *hello,
				     uint64_t session, struct gpd_assignment *assignment,
				     char *error);
void gpd_tenants_release(struct gpd_tenants *tenants, uint64_t session);

/* What the configuration sets for each session of the tenant: caps, devices, parts of devices. */
void gpd_tenants_apply_limits(const struct gpd_tenants *tenants,
			      const struct gpd_assignment *assignment,
			      struct gpd_ledger_session *line);

/* All that clients can name, in the order in which they count them; how many. */
int gpd_tenants_units(const struct gpd_tenants *tenants, struct gpd_unit units[GPD_UNITS_MAX]);

#endif /* GPD_TENANTS_H */
