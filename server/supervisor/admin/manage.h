/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Administration of the running daemon: executes the requests of the admin socket, and owns the
 * admin socket, the metrics server and the usage records.
 *
 * Order: gpd_manager_init(), gpd_manager_open(), gpd_manager_open_usage(), gpd_manager_announce()
 * when the daemon serves clients; gpd_manager_reload() at each reload; gpd_manager_fini(), also
 * after a failed open.
 * Ownership: the struct must not move. admission and callbacks are borrowed and must outlive the
 * manager.
 * Threads: the supervisor's main thread. It holds the lock of the report source (report.h), through
 * which the metrics thread reads, except while it waits for events or joins that thread.
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
struct gpd_manager_callbacks {
	/* Retires the worker with this process ID: it gets no new sessions, and exits after its
	 * last one (gpd_worker_pool_retire() of worker_pool.h). Returns false if there is no such
	 * worker, or it is starting or ending. */
	bool (*retire)(void *arg, pid_t worker);
	/* Makes a sick device usable again (gpd_device_monitor_enable() of device_monitor.h). */
	int (*enable_device)(void *arg, uint32_t device, char *error, size_t size);
	/* Reloads the configuration (reload.h). *reloaded is overwritten with the failures and the
	 * changes that need a restart. */
	void (*reload)(void *arg, struct gpd_reload_report *reloaded);
};

/* The administration. */
struct gpd_manager {
	struct gpd_report_source source;
	struct gpd_admin admin;
	struct gpd_metrics metrics;
	struct gpd_usage usage;
	struct gpd_admission *admission;
	const struct gpd_manager_callbacks *callbacks;
	void *arg;              /* first argument of the callbacks */
	char admin_socket[108]; /* path configured when the socket was opened; "": not configured */
};

/* Initializes without sockets and files, and acquires the lock of the report source. Called before
 * the first session. */
void gpd_manager_init(struct gpd_manager *manager, struct gpd_admission *admission,
		      const struct gpd_manager_callbacks *callbacks, void *arg)
	GP_LOCKS(manager->source.lock);
/* Opens the admin socket and the metrics server according to the options and the configuration.
 * Called before the daemon switches to its user. Returns 0; or -1 after printing the reason to
 * standard error, and the daemon must not start. A default admin socket that cannot be opened is
 * only a warning. */
GP_MUST_CHECK int gpd_manager_open(struct gpd_manager *manager, const struct gpd_options *options);
/* Opens the usage records and registers their callback with the quota. Called after the daemon has
 * switched to its user. Returns 0; or -1 after printing the reason to standard error if configured
 * records cannot be written. */
GP_MUST_CHECK int gpd_manager_open_usage(struct gpd_manager *manager);
/* Applies the configuration that the admission has now to the usage records. Adds a failure, and
 * changes of the admin socket and the metrics server, which need a restart, to *reloaded. Called
 * after gpd_admission_reload() (admission.h). */
void gpd_manager_reload(struct gpd_manager *manager, const struct gpd_options *options,
			struct gpd_reload_report *reloaded) GP_LOCKED(manager->source.lock);
/* Logs the addresses of the admin socket and the metrics server. print: also prints the address of
 * the metrics server to standard output. */
void gpd_manager_announce(const struct gpd_manager *manager, bool print);
/* Closes the admin socket, the usage records and the metrics server. Releases and destroys the lock
 * of the report source, and joins the metrics thread. Called before gpd_admission_fini(). */
void gpd_manager_fini(struct gpd_manager *manager) GP_UNLOCKS(manager->source.lock);

/* Handles a request of the admin socket: a gpd_admin_handler (admin_socket.h) whose arg is the
 * manager. Declared here for the tests. */
int gpd_manager_handle(void *manager, const struct gpd_admin_peer *peer,
		       const Gpupool__AdminRequest *request, bool again, uint8_t **reply_p,
		       size_t *size_p);

/* Changes limits of a tenant or a session, and logs the changes with the peer's user; in
 * manage_set.c. error and warning have size bytes each; warning must be an empty string before.
 * Returns 0, with the texts about settings without effect in warning; or GP_E_INVALID with a text
 * in error, and nothing was changed. */
int gpd_manager_set(struct gpd_manager *manager, const struct gpd_admin_peer *peer,
		    const Gpupool__AdminSet *set, char *error, char *warning, size_t size);

/* Writes the error for a request with an unknown tenant, with a suggestion if there is a similar
 * name. Returns GP_E_INVALID. */
int gpd_manager_unknown_tenant(const struct gpd_manager *manager, const char *name, char *error,
			       size_t size);

#endif /* GPD_MANAGE_H */
