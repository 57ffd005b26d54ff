/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the daemon is watched and steered while it runs: what the requests of the admin socket do,
 * and the parts of the supervisor that belong to it.
 *
 * Main thread only; what other threads are to see is in the source, under its lock, which this
 * thread gives away only while it waits: for events, or for the end of the metrics' thread.
 */
#ifndef GPD_MANAGE_H
#define GPD_MANAGE_H

#include "base/lock.h"
#include "server/common/config/options.h"
#include "server/common/config/reloaded.h"
#include "server/supervisor/admin/admin_socket.h"
#include "server/supervisor/admin/metrics.h"
#include "server/supervisor/admin/report.h"
#include "server/supervisor/admin/usage.h"
#include "server/supervisor/admission/admission.h"

#include <stdbool.h>
#include <stdint.h>

/* What only the supervisor can do; arg is the supervisor. */
struct gpd_manager_hooks {
	/* The worker gets no new sessions.  False: there is no such worker, or it is starting or
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
	char admin_socket[108]; /* that the configuration named when it was opened, or "" */
};

/* Before the first session. */
void gpd_manager_init(struct gpd_manager *manager, struct gpd_admission *admission,
		      const struct gpd_manager_hooks *hooks, void *arg)
	GP_LOCKS(manager->source.lock);
/* The admin socket and the metrics, as the options or the configuration say.  0, or -1: standard
 * error says why. */
GP_MUST_CHECK int gpd_manager_open(struct gpd_manager *manager, const struct gpd_options *options);
/* The usage records, once the daemon is the user that it stays.  0 or -1 likewise. */
GP_MUST_CHECK int gpd_manager_open_usage(struct gpd_manager *manager);
/* The configuration may say something else of them now. */
void gpd_manager_reload(struct gpd_manager *manager, const struct gpd_options *options,
			struct gpd_reload_report *reloaded) GP_LOCKED(manager->source.lock);
/* Says where they are: in the log and, if asked for, the metrics on standard output. */
void gpd_manager_announce(const struct gpd_manager *manager, bool print);
void gpd_manager_fini(struct gpd_manager *manager) GP_UNLOCKS(manager->source.lock);

/* For the tests: a request of the admin socket, as gpd_admin_handler. */
int gpd_manager_handle(void *manager, const struct gpd_admin_peer *peer,
		       const Gpupool__AdminRequest *request, bool again, uint8_t **reply_p,
		       size_t *size_p);

/* manage_set.c: 0, or error says what was wrong and nothing was changed.  warning, as large: what
 * does not do what it seems to; the log says who changed what. */
int gpd_manager_set(struct gpd_manager *manager, const struct gpd_admin_peer *peer,
		    const Gpupool__AdminSet *set, char *error, char *warning, size_t size);

/* For whom a request names a tenant that there is none of: GP_E_INVALID, and error says so, and who
 * may have been meant. */
int gpd_manager_unknown_tenant(const struct gpd_manager *manager, const char *name, char *error,
			       size_t size);

#endif /* GPD_MANAGE_H */
