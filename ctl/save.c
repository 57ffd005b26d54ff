/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/save.h"

#include "ctl/value.h"
#include "server/common/base/shared_file.h"
#include "server/common/config/config.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEY_MAX 64
#define FILE_MODE 0640

/* A line of the file without its newline. */
struct line {
	const char *text;
	size_t length;
};

static struct line
line_at(const char *text)
{
	return (struct line){ text, strcspn(text, "\n") };
}

static const char *
next_line(struct line line)
{
	return line.text + line.length + (line.text[line.length] == '\n');
}

static struct line
line_trim(struct line line)
{
	while (line.length && isspace((unsigned char)*line.text)) {
		line.text++;
		line.length--;
	}
	while (line.length && isspace((unsigned char)line.text[line.length - 1]))
		line.length--;
	return line;
}

static bool
line_equals(struct line line, const char *arg)
{
	return line.length == strlen(arg) && memcmp(line.text, arg, line.length) == 0;
}

/* "[tenant NAME]", with the blanks that the daemon permits. */
static bool
line_begins_tenant(struct line line, const char *name)
{
	struct line inner = line_trim(line);
	const char *end = inner.length ? memchr(inner.text, ']', inner.length) : NULL;

	if (!end || inner.text[0] != '[')
		return false;
	inner = line_trim((struct line){ inner.text + 1, (size_t)(end - inner.text) - 1 });
	if (inner.length < 7 || strncmp(inner.text, "tenant", 6) != 0 ||
	    !isspace((unsigned char)inner.text[6]))
		return false;
	return line_equals(line_trim((struct line){ inner.text + 6, inner.length - 6 }), name);
}

static bool
line_begins_section(struct line line)
{
	return line_trim(line).length && line_trim(line).text[0] == '[';
}

static bool
line_sets_key(struct line line, const char *key)
{
	size_t length = 0;

	while (length < line.length && !strchr("=:", line.text[length]))
		length++;
	return length < line.length &&
	       line_equals(line_trim((struct line){ line.text, length }), key);
}

/* Returns the value of such a line, without surrounding blanks and comment. */
static struct line
line_get_value(struct line line)
{
	size_t at = 0, end;

	while (!strchr("=:", line.text[at]))
		at++;
	for (end = ++at; end < line.length; end++) {
		if (strchr(";#", line.text[end]) && isspace((unsigned char)line.text[end - 1]))
			break;
	}
	return line_trim((struct line){ line.text + at, end - at });
}

static char *
text_splice(const char *text, size_t from, size_t length, const char *with)
{
	char *out;

	if (asprintf(&out, "%.*s%s%s", (int)from, text, with, text + from + length) < 0)
		return NULL;
	return out;
}

/* Inserts a line, after a newline if the previous line has none. */
static char *
text_insert_line(const char *text, size_t at, const char *before, const char *key,
		 const char *value)
{
	bool open_line = at && text[at - 1] != '\n';
	char *line, *out;

	if (asprintf(&line, "%s%s%s = %s\n", open_line ? "\n" : "", before, key, value) < 0)
		return NULL;
	out = text_splice(text, at, 0, line);
	free(line);
	return out;
}

char *
ctl_save_edit(const char *text, const char *tenant, const char *key, const char *value)
{
	bool inside = false, found = false;
	size_t at = 0; /* after the section's last line that is not empty or a comment */
	char section[GPD_TENANT_NAME_MAX + 16];

	for (const char *next = text; *next;) {
		struct line line = line_at(next), content = line_trim(line);

		next = next_line(line);
		if (line_begins_section(line)) {
			inside = line_begins_tenant(line, tenant);
			found = found || inside;
		}
		if (!inside)
			continue;
		if (line_sets_key(line, key)) {
			struct line old = line_get_value(line);

			return text_splice(text, (size_t)(old.text - text), old.length, value);
		}
		if (content.length && !strchr("#;", content.text[0]))
			at = (size_t)(next - text);
	}
	if (found)
		return text_insert_line(text, at, "", key, value);
	(void)snprintf(section, sizeof(section), "%s[tenant %s]\n", *text ? "\n" : "", tenant);
	return text_insert_line(text, strlen(text), section, key, value);
}

/* Converts values that only the command accepts into the file's syntax. */
static const char *
value_to_file_syntax(Gpupool__AdminSetting__Key key, const char *value, char buffer[CTL_VALUE_MAX])
{
	if (key == GPUPOOL__ADMIN_SETTING__KEY__BANDWIDTH) {
		(void)snprintf(buffer, CTL_VALUE_MAX, "%.*s",
			       (int)(strstr(value, "/s") ? strlen(value) - 2 : strlen(value)),
			       value);
		return strcmp(value, "none") == 0 ? "unlimited" : buffer;
	}
	if (key == GPUPOOL__ADMIN_SETTING__KEY__PRIORITY && value[0] >= '0' && value[0] <= '2')
		return ctl_priority_name((uint32_t)(value[0] - '0'));
	return strcmp(value, "none") == 0 ? "all" : value;
}

static int
setting_edit(struct ctl_save *save, const char *tenant, const char *arg, const char *gpu)
{
	char key[KEY_MAX], buffer[CTL_VALUE_MAX], *text;
	Gpupool__AdminSetting setting;
	const char *wrong = ctl_parse_setting(arg, &setting);
	bool of_device = setting.key != GPUPOOL__ADMIN_SETTING__KEY__PRIORITY &&
			 setting.key != GPUPOOL__ADMIN_SETTING__KEY__BANDWIDTH &&
			 setting.key != GPUPOOL__ADMIN_SETTING__KEY__SESSIONS;

	if (wrong)
		return ctl_fail("%s: that %s", arg, wrong);
	(void)snprintf(key, sizeof(key), "%s%s%s", ctl_setting_name(setting.key),
		       gpu && of_device ? "." : "", gpu && of_device ? gpu : "");
	text = ctl_save_edit(save->text, tenant, key,
			     value_to_file_syntax(setting.key, strchr(arg, '=') + 1, buffer));
	if (!text)
		return ctl_fail("out of memory");
	free(save->text);
	save->text = text;
	save->size = strlen(text);
	return 0;
}

static int
find_file(const struct ctl *ctl, struct ctl_save *save)
{
	Gpupool__AdminReply *reply;

	if (ctl_request_report(ctl, 0, &reply))
		return -1;
	if (reply->report->config[0])
		save->path = strdup(reply->report->config);
	gp_admin_free_reply(reply);
	return save->path ? 0
			  : ctl_fail("--save: the daemon has no configuration: create one (it may "
				     "be empty), run gpupoolctl reload, and repeat");
}

int
ctl_save_prepare(const struct ctl *ctl, const char *tenant, int count, char **argv,
		 struct ctl_save *save)
{
	char error[GPD_CONFIG_ERROR_MAX], *bytes = NULL;
	struct gpd_config *config;
	const char *gpu = NULL;

	if (find_file(ctl, save))
		return -1;
	save->lock = gpd_shared_file_lock(save->path, error, sizeof(error));
	if (save->lock < 0 ||
	    gpd_shared_file_read(save->path, &bytes, &save->size, error, sizeof(error)))
		return ctl_fail("--save: %s", error);
	save->text = strndup(bytes, save->size);
	free(bytes);
	if (!save->text)
		return ctl_fail("out of memory");
	for (int i = 0; i < count; i++)
		if (strncmp(argv[i], "gpu=", 4) == 0)
			gpu = argv[i] + 4;
	for (int i = 0; i < count; i++) {
		if (strncmp(argv[i], "gpu=", 4) != 0 && setting_edit(save, tenant, argv[i], gpu))
			return -1;
	}
	/* A file that the daemon would reject at its next start is not written. */
	if (gpd_config_parse(save->text, save->path, &config, error, sizeof(error)))
		return ctl_fail("--save: nothing is changed: %s", error);
	gpd_config_free(config);
	return 0;
}

int
ctl_save_write(const struct ctl_save *save)
{
	char error[GPD_CONFIG_ERROR_MAX];

	if (gpd_shared_file_replace(save->path, FILE_MODE, save->text, save->size, error,
				    sizeof(error)))
		return ctl_fail("active, but not saved: %s", error);
	return 0;
}

void
ctl_save_drop(struct ctl_save *save)
{
	if (save->lock > 0)
		close(save->lock);
	free(save->path);
	free(save->text);
}
