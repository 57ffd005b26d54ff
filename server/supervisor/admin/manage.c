/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/admin/manage.h"

#include "base/edit_distance.h"
#include "server/common/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void
gpd_manager_init(struct gpd_manager *manager, struct gpd_admission *admission,
		 const struct gpd_manager_callbacks *callbacks, void *arg)
{
	*manager = (struct gpd_manager){
		.source = { .admission = admission, .started_s = time(NULL) },
		.admission = admission,
		.callbacks = callbacks,
		.arg = arg,
	};
	pthread_mutex_init(&manager->source.lock, NULL);
	pthread_mutex_lock(&manager->source.lock);
	gpd_admin_init(&manager->admin, gpd_manager_handle, manager);
	gpd_usage_init(&manager->usage, admission);
	manager->source.usage = &manager->usage;
}

/* path NULL: the default one, if it can be opened. */
static int
open_admin(struct gpd_manager *manager, const char *path)
{
	char usual[sizeof(manager->admin.path)], error[256];

	if (path && strcmp(path, "off") == 0)
		return 0;
	if (path) {
		if (gpd_admin_open(&manager->admin, path, error, sizeof(error)) == 0)
			return 0;
		fprintf(stderr, "gpupoold: no admin socket: %s\n", error);
		return -1;
	}
	if (gp_admin_get_default_path(usual, sizeof(usual)))
		gpd_warning("no admin socket: XDG_RUNTIME_DIR is not set; use --admin-socket PATH");
	else if (gpd_admin_open(&manager->admin, usual, error, sizeof(error)))
		gpd_warning("no admin socket: %s; --admin-socket gives it another path", error);
	return 0;
}

/* Returns the configured path, else the default one in the service's state folder, else "". */
static const char *
usage_path(const struct gpd_config *config, char usual[GPD_CONFIG_PATH_MAX])
{
	const char *folder = getenv("STATE_DIRECTORY");

	if (config->usage[0])
		return config->usage;
	if (!folder || folder[0] != '/' || strchr(folder, ':') ||
	    snprintf(usual, GPD_CONFIG_PATH_MAX, "%s/usage.csv", folder) >= GPD_CONFIG_PATH_MAX)
		return "";
	return usual;
}

/* If configured records cannot be written, the daemon does not start; for the default path a
 * warning is enough. */
int
gpd_manager_open_usage(struct gpd_manager *manager)
{
	const struct gpd_config *config = manager->admission->quota->tenants.config;
	char error[512], usual[GPD_CONFIG_PATH_MAX];

	if (gpd_usage_set_path(&manager->usage, usage_path(config, usual), error, sizeof(error))) {
		if (config->usage[0]) {
			fprintf(stderr, "gpupoold: no %s\n", error);
			return -1;
		}
		gpd_warning("%s: records are buffered in memory until the file is writable", error);
		gpd_usage_set_path_deferred(&manager->usage, usual);
	}
	manager->admission->quota->ended = gpd_usage_ended;
	manager->admission->quota->ended_arg = &manager->usage;
	return 0;
}

int
gpd_manager_open(struct gpd_manager *manager, const struct gpd_options *options)
{
	const struct gpd_config *config = manager->admission->quota->tenants.config;
	const char *path = config->admin_socket[0] ? config->admin_socket : NULL;
	const char *host = options->has_metrics ? options->metrics_host : config->metrics_host;
	uint16_t port = options->has_metrics ? options->metrics_port : config->metrics_port;
	char error[512];

	memcpy(manager->admin_socket, config->admin_socket, sizeof(manager->admin_socket));
	if (open_admin(manager, options->admin_socket ? options->admin_socket : path))
		return -1;
	if (!host[0] || gpd_metrics_open(&manager->metrics, &manager->source, host, port,
					 options->insecure, error, sizeof(error)) == 0)
		return 0;
	fprintf(stderr, "gpupoold: no metrics: %s\n", error);
	return -1;
}

void
gpd_manager_reload(struct gpd_manager *manager, const struct gpd_options *options,
		   struct gpd_reload_report *reloaded)
{
	const struct gpd_config *config = manager->admission->quota->tenants.config;
	const struct gpd_metrics *now = &manager->metrics;
	char error[512], usual[GPD_CONFIG_PATH_MAX];

	if (gpd_usage_set_path(&manager->usage, usage_path(config, usual), error, sizeof(error)))
		gpd_reload_report_add(reloaded, GPD_LOG_ERROR, "usage: unchanged: %s", error);

	if (!options->has_metrics && (config->metrics_port != now->port ||
				      (now->port && strcmp(config->metrics_host, now->host) != 0)))
		gpd_reload_report_add(reloaded, GPD_LOG_WARNING,
				      "metrics: takes effect after a restart (now: %s)",
				      now->http ? now->url : "off");
	if (!options->admin_socket && strcmp(config->admin_socket, manager->admin_socket) != 0)
		gpd_reload_report_add(reloaded, GPD_LOG_WARNING,
				      "admin-socket: takes effect after a restart (now: %s)",
				      manager->admin.fd < 0 ? "none" : manager->admin.path);
}

void
gpd_manager_announce(const struct gpd_manager *manager, bool print)
{
	if (manager->admin.fd >= 0)
		gpd_info("admin socket at %s", manager->admin.path);
	if (!manager->metrics.http)
		return;
	gpd_info("metrics at %s", manager->metrics.url);
	if (print)
		printf("metrics at %s\n", manager->metrics.url);
	(void)fflush(stdout);
}

void
gpd_manager_fini(struct gpd_manager *manager)
{
	gpd_admin_fini(&manager->admin);
	manager->admission->quota->ended = NULL;
	gpd_usage_close(&manager->usage);
	pthread_mutex_unlock(&manager->source.lock);
	gpd_metrics_close(&manager->metrics);
	pthread_mutex_destroy(&manager->source.lock);
}

/* Result of a request. */
struct outcome {
	Gpupool__AdminReply reply;
	char error[GPD_CONFIG_ERROR_MAX];
	char warning[GPD_CONFIG_ERROR_MAX];
	struct gpd_reload_report reloaded;
};

static int
request_report(struct gpd_manager *m, const Gpupool__AdminReportRequest *request, struct outcome *o)
{
	o->reply.report = gpd_report_create(&m->source, request->session);
	if (!o->reply.report)
		snprintf(o->error, sizeof(o->error), "the daemon has no memory for a report");
	return 0;
}

/* The session has ended when its ledger entry is free, after its work on the GPU has ended. */
static int
request_terminate(struct gpd_manager *m, uint64_t id, bool again, struct outcome *o)
{
	bool known = gpd_ledger_find(m->admission->quota->ledger, id) != NULL;

	if (known && !again)
		gpd_admission_terminate(m->admission, id);
	if (known)
		return GP_E_TIMEOUT;
	if (!again)
		snprintf(o->error, sizeof(o->error), "unknown session %llu",
			 (unsigned long long)id);
	return 0;
}

static int
request_drain(struct gpd_manager *m, const Gpupool__AdminDrain *request, bool again,
	      struct outcome *o)
{
	if (again && !m->admission->draining) {
		snprintf(o->error, sizeof(o->error), "new sessions are admitted again");
		return 0;
	}
	if (!again && m->admission->draining == request->undo)
		gpd_info(request->undo ? "new sessions are admitted again"
				       : "draining: no new sessions are admitted");
	m->admission->draining = !request->undo;
	return request->wait && !request->undo && !gpd_admission_is_empty(m->admission)
		       ? GP_E_TIMEOUT
		       : 0;
}

/* Ends the worker's sessions. Returns whether there still are any. */
static bool
terminate_worker_sessions(struct gpd_manager *m, int32_t worker, bool again)
{
	const struct gpd_ledger *ledger = m->admission->quota->ledger;

	for (const struct gpd_ledger_session *s = NULL;
	     !again && (s = gpd_ledger_next(ledger, s, worker));)
		gpd_admission_terminate(m->admission, atomic_load(&s->id));
	return gpd_ledger_next(ledger, NULL, worker) != NULL;
}

/* Returns whether the session's client has been disconnected; its work may still run. */
static bool
session_is_ending(const struct gpd_manager *m, uint64_t id)
{
	const struct gpd_connection *connection = gpd_admission_find(m->admission, id);

	return !connection || connection->state == GPD_CONNECTION_CLOSING;
}

int
gpd_manager_unknown_tenant(const struct gpd_manager *manager, const char *name, char *error,
			   size_t size)
{
	const struct gpd_ledger *ledger = manager->admission->quota->ledger;
	struct gp_suggestion similar = { .word = name };

	for (int i = 0; i < GPD_LEDGER_TENANTS; i++) {
		if (ledger->tenants[i].name[0])
			gp_suggestion_consider(&similar, ledger->tenants[i].name);
	}
	if (similar.best)
		(void)snprintf(error, size, "unknown tenant \"%.64s\"; did you mean %s?", name,
			       similar.best);
	else
		(void)snprintf(error, size, "unknown tenant \"%.64s\"", name);
	return GP_E_INVALID;
}

/* Ends all sessions of the tenant; new ones are admitted as before. */
static int
terminate_tenant(struct gpd_manager *m, const char *name, bool again, struct outcome *o)
{
	const struct gpd_ledger *ledger = m->admission->quota->ledger;
	bool known = false, any = false;

	for (int i = 0; i < GPD_LEDGER_TENANTS; i++)
		known = known || strcmp(ledger->tenants[i].name, name) == 0;
	if (!known)
		(void)gpd_manager_unknown_tenant(m, name, o->error, sizeof(o->error));
	for (const struct gpd_ledger_session *s = NULL;
	     (s = gpd_ledger_next(ledger, s, GPD_LEDGER_ANY_WORKER));) {
		uint64_t id = atomic_load(&s->id);

		if (strcmp(ledger->tenants[s->tenant].name, name) != 0)
			continue;
		if (!again)
			gpd_admission_terminate(m->admission, id);
		any = any || !again || session_is_ending(m, id);
	}
	return any ? GP_E_TIMEOUT : 0;
}

static int
request_retire(struct gpd_manager *m, const Gpupool__AdminRetire *request, bool again,
	       struct outcome *o)
{
	if (!again && !m->callbacks->retire(m->arg, (pid_t)request->pid)) {
		snprintf(o->error, sizeof(o->error),
			 "worker %u: not found, starting or ending; gpupoolctl worker list lists "
			 "the workers",
			 request->pid);
		return 0;
	}
	return request->terminate && terminate_worker_sessions(m, (int32_t)request->pid, again)
		       ? GP_E_TIMEOUT
		       : 0;
}

static int
request_end_quarantine(struct gpd_manager *m, uint64_t id, struct outcome *o)
{
	if (!gpd_quarantine_end(&m->admission->quarantine, id))
		snprintf(o->error, sizeof(o->error),
			 "unknown quarantine %llu: gpupoolctl quarantine list lists them",
			 (unsigned long long)id);
	return 0;
}

/* Returns 0 or GP_E_TIMEOUT. */
static int
request_execute(struct gpd_manager *m, const struct gpd_admin_peer *peer,
		const Gpupool__AdminRequest *request, bool again, struct outcome *o)
{
	if (peer->read_only && request->body_case != GPUPOOL__ADMIN_REQUEST__BODY_REPORT) {
		snprintf(o->error, sizeof(o->error),
			 "members of the group " GPD_ADMIN_READERS
			 " have read-only access; use root or the daemon's user");
		return 0;
	}
	switch (request->body_case) {
	case GPUPOOL__ADMIN_REQUEST__BODY_REPORT:
		return request_report(m, request->report, o);
	case GPUPOOL__ADMIN_REQUEST__BODY_SET:
		(void)gpd_manager_set(m, peer, request->set, o->error, o->warning,
				      sizeof(o->error));
		o->reply.warning = o->warning;
		return 0;
	case GPUPOOL__ADMIN_REQUEST__BODY_TERMINATE:
		if (request->terminate->session == 0 && request->terminate->tenant[0])
			return terminate_tenant(m, request->terminate->tenant, again, o);
		return request_terminate(m, request->terminate->session, again, o);
	case GPUPOOL__ADMIN_REQUEST__BODY_DRAIN:
		return request_drain(m, request->drain, again, o);
	case GPUPOOL__ADMIN_REQUEST__BODY_RELOAD:
		m->callbacks->reload(m->arg, &o->reloaded);
		o->reply.warning = o->reloaded.warning;
		return 0;
	case GPUPOOL__ADMIN_REQUEST__BODY_ENABLE_DEVICE:
		(void)m->callbacks->enable_device(m->arg, request->enable_device->device, o->error,
						  sizeof(o->error));
		return 0;
	case GPUPOOL__ADMIN_REQUEST__BODY_RETIRE:
		return request_retire(m, request->retire, again, o);
	case GPUPOOL__ADMIN_REQUEST__BODY_QUARANTINE_END:
		return request_end_quarantine(m, request->quarantine_end->id, o);
	default:
		snprintf(o->error, sizeof(o->error),
			 "this daemon (" GPD_VERSION ") does not know this request");
		return 0;
	}
}

int
gpd_manager_handle(void *manager, const struct gpd_admin_peer *peer,
		   const Gpupool__AdminRequest *request, bool again, uint8_t **reply_p,
		   size_t *size_p)
{
	struct outcome o = { .reply = GPUPOOL__ADMIN_REPLY__INIT };
	int r = request_execute(manager, peer, request, again, &o);

	*reply_p = NULL;
	if (r == 0) {
		o.reply.error = o.error[0] ? o.error : o.reloaded.error;
		*reply_p = gp_admin_pack_reply(&o.reply, size_p);
	}
	gpd_report_free(o.reply.report);
	return r;
}
