/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Administration of the running daemon: executes the requests of the admin socket, and owns the
 * admin socket, the metrics server and the usage records.
 *
 * Threads: the supervisor's main thread. It holds the lock of the report source, through which
 * other threads read, except while it waits for events or joins the metrics thread.
 */
#ifndef GPD_MANAGE_H
#define GPD_MANAGE_H

#include "base/lock.h"
#include "server/common/config/options.h"
#include "server/common/config/reload_report.h"
#include "server/supervisor/admin/admin_socket.h"
#include "server/supervisor/admin/metrics.h"
#include "server/supervisor/admin/report.h"
#include "server/supervisor/admin/usage.h"
#include "server/supervisor/admission/admission.h"

#include <stdbool.h>
#include <stdint.h>

/* Operations of the supervisor; arg is the supervisor. */
struct gpd_manager_hooks {
	/* Retires the worker. Returns false if there is no such worker, or it is starting or
	 * ending. */
	bool (*retire)(void *arg, pid_t worker);
	void (*reload)(void *arg, struct gpd_reload_report *reloaded);
};

struct gpd_manager {
	struct gpd_report_source source;
	struct gpd_admin admin;
	struct gpd_metrics metrics;
	struct gpd_usage usage;
	struct gpd_admission *admission;
	const struct gpd_manager_hooks *hooks;
	void *arg;
	char admin_socket[108]; /* as configured when it was opened, or "" */
};

/* Called before the first session. Acquires the lock of the report source. */
void gpd_manager_init(struct gpd_manager *manager, struct gpd_admission *admission,
		      const struct gpd_manager_hooks *hooks, void *arg)
	GP_LOCKS(manager->source.lock);
/* Opens the admin socket and the metrics server according to the options and the configuration.
 * Returns 0, or -1 after printing the reason to standard error. */
GP_MUST_CHECK int gpd_manager_open(struct gpd_manager *manager, const struct gpd_options *options);
/* Opens the usage records, after the daemon has switched to its user. Returns 0 or -1 as above. */
GP_MUST_CHECK int gpd_manager_open_usage(struct gpd_manager *manager);
/* Applies a new configuration to them. */
void gpd_manager_reload(struct gpd_manager *manager, const struct gpd_options *options,
			struct gpd_reload_report *reloaded) GP_LOCKED(manager->source.lock);
/* Logs their addresses, and prints the metrics' one to standard output if print is set. */
void gpd_manager_announce(const struct gpd_manager *manager, bool print);
/* Closes everything and releases the lock. */
void gpd_manager_fini(struct gpd_manager *manager) GP_UNLOCKS(manager->source.lock);

/* Handles a request of the admin socket, as gpd_admin_handler; exported for the tests. */
int gpd_manager_handle(void *manager, const struct gpd_admin_peer *peer,
		       const Gpupool__AdminRequest *request, bool again, uint8_t **reply_p,
		       size_t *size_p);

/* manage_set.c: changes limits of a tenant or a session, and logs the changes. Returns 0, or
 * GP_E_INVALID with a text in error if nothing was changed. warning, of the same size, describes
 * settings without effect. */
int gpd_manager_set(struct gpd_manager *manager, const struct gpd_admin_peer *peer,
		    const Gpupool__AdminSet *set, char *error, char *warning, size_t size);

/* Writes the error for a request with an unknown tenant, with a suggestion if there is a similar
 * name. Returns GP_E_INVALID. */
int gpd_manager_unknown_tenant(const struct gpd_manager *manager, const char *name, char *error,
			       size_t size);

#endif /* GPD_MANAGE_H */
