/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/look.h"

#include "client/base/config.h"
#include "client/connect/connect.h"
#include "protocol/printable.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int
cli_look_find(const struct cli_look *look, const struct gp_url *url)
{
	for (int i = 0; i < look->daemon_count; i++) {
		const struct gp_url *other = &look->daemons[i].url;

		if (strcmp(other->scheme, url->scheme) == 0 &&
		    strcmp(other->host, url->host) == 0 && other->port == url->port)
			return i;
	}
	return -1;
}

/* As a program refuses it, too. */
static bool
is_twice(const struct cli_look *look, int at)
{
	const struct gp_url *url = &look->urls[at];
	int daemon = cli_look_find(look, url);

	for (int i = 0; i < at; i++) {
		const struct gp_url *other = &look->urls[i];

		if (cli_look_find(look, other) == daemon &&
		    (url->device == other->device || url->device == GP_URL_ANY_DEVICE ||
		     other->device == GP_URL_ANY_DEVICE))
			return true;
	}
	return false;
}

int
cli_look_list(struct cli_look *look, char *error, size_t error_size)
{
	*look = (struct cli_look){ 0 };
	if (gpc_config_daemons(look->urls, CLI_URLS_MAX, &look->url_count, error, error_size))
		return -1;
	for (int i = 0; i < look->url_count; i++) {
		struct cli_daemon *daemon;

		if (cli_look_find(look, &look->urls[i]) >= 0 && is_twice(look, i)) {
			char text[GP_URL_TEXT_MAX];

			gp_url_format(&look->urls[i], text, sizeof(text));
			(void)snprintf(error, error_size, "%s is named twice", text);
			return -1;
		}
		if (cli_look_find(look, &look->urls[i]) >= 0)
			continue;
		if (look->daemon_count == CLI_DAEMONS_MAX) {
			(void)snprintf(error, error_size, "more than %d daemons", CLI_DAEMONS_MAX);
			return -1;
		}
		daemon = &look->daemons[look->daemon_count++];
		daemon->url = look->urls[i];
		daemon->url.device = GP_URL_ANY_DEVICE;
		gp_url_format(&daemon->url, daemon->text, sizeof(daemon->text));
	}
	return 0;
}

int
cli_look_ask(struct cli_daemon *daemon)
{
	gp_control_free(daemon->message);
	daemon->message = NULL;
	daemon->account = NULL;
	if (gpc_link_look(&daemon->url, &daemon->message, &daemon->round_trip_ns, daemon->error,
			  sizeof(daemon->error)))
		return -1;
	daemon->account = daemon->message->account;
	return 0;
}

void
cli_look_free(struct cli_look *look)
{
	for (int i = 0; i < look->daemon_count; i++)
		gp_control_free(look->daemons[i].message);
	look->daemon_count = 0;
}

const char *
cli_look_text(const char *text, char *to, size_t size)
{
	(void)gp_printable(to, size, text ? text : "");
	return to;
}

const char *
cli_look_uuid(const Gpupool__AccountDevice *device, char *to)
{
	size_t used = (size_t)sprintf(to, "GPU-");

	for (size_t i = 0; i < 16; i++)
		used += (size_t)sprintf(to + used, "%s%02x",
					i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
					i < device->uuid.len ? device->uuid.data[i] : 0);
	return to;
}
