/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/probe.h"

#include "client/base/config.h"
#include "client/connect/connect.h"
#include "protocol/printable.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int
cli_probe_find(const struct cli_probe *probe, const struct gp_url *url)
{
	for (int i = 0; i < probe->daemon_count; i++) {
		const struct gp_url *other = &probe->daemons[i].url;

		if (strcmp(other->scheme, url->scheme) == 0 &&
		    strcmp(other->host, url->host) == 0 && other->port == url->port)
			return i;
	}
	return -1;
}

/* The client library rejects duplicates as well. */
static bool
url_is_duplicate(const struct cli_probe *probe, int at)
{
	const struct gp_url *url = &probe->urls[at];
	int daemon = cli_probe_find(probe, url);

	for (int i = 0; i < at; i++) {
		const struct gp_url *other = &probe->urls[i];

		if (cli_probe_find(probe, other) == daemon &&
		    (url->device == other->device || url->device == GP_URL_ANY_DEVICE ||
		     other->device == GP_URL_ANY_DEVICE))
			return true;
	}
	return false;
}

int
cli_probe_init(struct cli_probe *probe, char *error, size_t error_size)
{
	*probe = (struct cli_probe){ 0 };
	if (gpc_config_daemons(probe->urls, CLI_URLS_MAX, &probe->url_count, error, error_size))
		return -1;
	for (int i = 0; i < probe->url_count; i++) {
		struct cli_daemon *daemon;

		if (cli_probe_find(probe, &probe->urls[i]) >= 0 && url_is_duplicate(probe, i)) {
			char text[GP_URL_TEXT_MAX];

			gp_url_format(&probe->urls[i], text, sizeof(text));
			(void)snprintf(error, error_size, "%s is named twice", text);
			return -1;
		}
		if (cli_probe_find(probe, &probe->urls[i]) >= 0)
			continue;
		if (probe->daemon_count == CLI_DAEMONS_MAX) {
			(void)snprintf(error, error_size, "more than %d daemons", CLI_DAEMONS_MAX);
			return -1;
		}
		daemon = &probe->daemons[probe->daemon_count++];
		daemon->url = probe->urls[i];
		daemon->url.device = GP_URL_ANY_DEVICE;
		gp_url_format(&daemon->url, daemon->text, sizeof(daemon->text));
	}
	return 0;
}

int
cli_probe_query(struct cli_daemon *daemon)
{
	gp_control_free(daemon->message);
	daemon->message = NULL;
	daemon->account = NULL;
	if (gpc_link_probe(&daemon->url, &daemon->message, daemon->error, sizeof(daemon->error)))
		return -1;
	daemon->account = daemon->message->account;
	return 0;
}

void
cli_probe_free(struct cli_probe *probe)
{
	for (int i = 0; i < probe->daemon_count; i++)
		gp_control_free(probe->daemons[i].message);
	probe->daemon_count = 0;
}

const char *
cli_probe_text(const char *text, char *to, size_t size)
{
	(void)gp_printable_text(to, size, text ? text : "");
	return to;
}
