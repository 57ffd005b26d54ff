/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/value.h"

#include "base/edit_distance.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const priorities[] = { "normal", "low", "high" };

bool
ctl_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *value_p)
{
	unsigned long long value;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (*end || errno || value < min || value > max)
		return false;
	*value_p = value;
	return true;
}

/* Digits with at most one point; no exponent, sign or locale. */
static bool
parse_decimal(const char *text, double *value_p, const char **end_p)
{
	double value = 0, unit = 1;
	bool point = false, any = false;

	for (; isdigit((unsigned char)*text) || (*text == '.' && !point); text++) {
		if (*text == '.') {
			point = true;
			continue;
		}
		any = true;
		if (point)
			unit /= 10;
		value = point ? value + unit * (*text - '0') : value * 10 + (*text - '0');
	}
	*value_p = value;
	*end_p = text;
	return any;
}

bool
ctl_parse_bytes(const char *text, uint64_t *bytes_p)
{
	static const char units[] = "KMGTP";
	const char *at, *unit;
	double value;
	int power = 0;

	if (ctl_parse_number(text, 0, UINT64_MAX - 1, bytes_p))
		return true;
	if (!parse_decimal(text, &value, &at))
		return false;
	while (*at == ' ')
		at++;
	unit = *at ? strchr(units, toupper((unsigned char)*at)) : NULL;
	if (unit) {
		power = (int)(unit - units) + 1;
		at++;
		if (*at == 'i' || *at == 'I')
			at++;
	}
	if (*at == 'b' || *at == 'B')
		at++;
	value = ldexp(value, 10 * power);
	if (*at || value >= ldexp(1, 63))
		return false;
	*bytes_p = (uint64_t)value;
	return true;
}

bool
ctl_parse_percent(const char *text, uint32_t *hundredths_p)
{
	const char *end;
	double value;

	if (!parse_decimal(text, &value, &end) || value <= 0 || value > 100)
		return false;
	if (end[0] == '%')
		end++;
	if (*end)
		return false;
	/* A value above 0 must not be rounded to 0. */
	*hundredths_p = (uint32_t)lround(value * 100);
	if (*hundredths_p == 0)
		*hundredths_p = 1;
	return true;
}

bool
ctl_parse_priority(const char *text, uint64_t *priority_p)
{
	for (uint64_t i = 0; i < 3; i++) {
		if (strcmp(text, priorities[i]) == 0) {
			*priority_p = i;
			return true;
		}
	}
	return ctl_parse_number(text, 0, 2, priority_p);
}

const char *
ctl_priority_name(uint32_t priority)
{
	return priority < 3 ? priorities[priority] : "?";
}

const char *
ctl_format_date(uint64_t seconds, char *text)
{
	time_t time = (time_t)seconds;
	struct tm when;

	if (seconds == UINT64_MAX || !localtime_r(&time, &when) ||
	    strftime(text, CTL_VALUE_MAX, "%Y-%m-%d %H:%M", &when) == 0)
		return "-";
	return text;
}

char *
ctl_format_utc(int64_t seconds, const char *format, char *text)
{
	time_t time = (time_t)seconds;
	struct tm when;

	text[0] = '\0';
	if (gmtime_r(&time, &when))
		(void)strftime(text, CTL_VALUE_MAX, format, &when);
	return text;
}

/* Bytes, a share of the device, or "none". */
static const char *
parse_memory(const char *text, Gpupool__AdminSetting *setting)
{
	if (strcmp(text, "all") == 0 || strcmp(text, "none") == 0)
		setting->number = UINT64_MAX;
	else if (strchr(text, '%') ? !ctl_parse_percent(text, &setting->share)
				   : !ctl_parse_bytes(text, &setting->number))
		return "is not a valid size: use 2M or more (1.5GiB), a percentage (25%) or all";
	return NULL;
}

static const char *
parse_sm(const char *text, Gpupool__AdminSetting *setting)
{
	if (strcmp(text, "all") == 0)
		setting->number = 0;
	else if (strchr(text, '%') ? !ctl_parse_percent(text, &setting->share)
				   : !ctl_parse_number(text, 1, UINT32_MAX, &setting->number))
		return "is not a valid number of multiprocessors: use 1 or more (66), a percentage "
		       "(50%) or all";
	return NULL;
}

static const char *
parse_bandwidth(const char *text, Gpupool__AdminSetting *setting)
{
	char number[CTL_VALUE_MAX];
	size_t length = strlen(text);

	if (strcmp(text, "unlimited") == 0 || strcmp(text, "none") == 0) {
		setting->number = UINT64_MAX;
		return NULL;
	}
	if (length > 2 && strcmp(text + length - 2, "/s") == 0)
		length -= 2;
	if (length < sizeof(number)) {
		memcpy(number, text, length);
		number[length] = 0;
		if (ctl_parse_bytes(number, &setting->number))
			return NULL;
	}
	return "is not a valid bandwidth: use bytes per second from 64K (500M), or unlimited";
}

/* "%" is optional. */
static bool
parse_whole_percent(const char *text, uint64_t min, uint64_t *percent_p)
{
	char digits[CTL_VALUE_MAX];
	size_t length = strlen(text);

	(void)snprintf(digits, sizeof(digits), "%s", text);
	if (length && length < sizeof(digits) && digits[length - 1] == '%')
		digits[length - 1] = 0;
	return ctl_parse_number(digits, min, 100, percent_p);
}

static const char *
parse_limit(const char *text, Gpupool__AdminSetting *setting)
{
	return parse_whole_percent(text, 1, &setting->number)
		       ? NULL
		       : "is not a whole percentage from 1 to 100";
}

static const char *
parse_time_share(const char *text, Gpupool__AdminSetting *setting)
{
	return parse_whole_percent(text, 0, &setting->number)
		       ? NULL
		       : "is not a whole percentage from 0 to 100";
}

static const char *
parse_key_priority(const char *text, Gpupool__AdminSetting *setting)
{
	return ctl_parse_priority(text, &setting->number) ? NULL
							  : "is not one of normal, low, high";
}

static const char *
parse_weight(const char *text, Gpupool__AdminSetting *setting)
{
	return ctl_parse_number(text, 1, 1000, &setting->number) ? NULL
								 : "is not a weight from 1 to 1000";
}

static const char *
parse_sessions(const char *text, Gpupool__AdminSetting *setting)
{
	if (strcmp(text, "unlimited") == 0)
		setting->number = UINT32_MAX;
	else if (!ctl_parse_number(text, 0, 4096, &setting->number))
		return "is neither a number from 0 to 4096 nor unlimited";
	return NULL;
}

/* Names as in gpupoold.conf(5). */
static const struct key {
	const char *name;
	Gpupool__AdminSetting__Key key;
	const char *(*parse)(const char *text, Gpupool__AdminSetting *setting);
} keys[] = {
	{ "memory", GPUPOOL__ADMIN_SETTING__KEY__MEMORY, parse_memory },
	{ "sm", GPUPOOL__ADMIN_SETTING__KEY__SM, parse_sm },
	{ "priority", GPUPOOL__ADMIN_SETTING__KEY__PRIORITY, parse_key_priority },
	{ "weight", GPUPOOL__ADMIN_SETTING__KEY__WEIGHT, parse_weight },
	{ "limit", GPUPOOL__ADMIN_SETTING__KEY__LIMIT, parse_limit },
	{ "time-share", GPUPOOL__ADMIN_SETTING__KEY__TIME_SHARE, parse_time_share },
	{ "bandwidth", GPUPOOL__ADMIN_SETTING__KEY__BANDWIDTH, parse_bandwidth },
	{ "sessions", GPUPOOL__ADMIN_SETTING__KEY__SESSIONS, parse_sessions },
	/* Former name of time-share. */
	{ "share", GPUPOOL__ADMIN_SETTING__KEY__TIME_SHARE, parse_time_share },
};
#define KEY_COUNT (sizeof(keys) / sizeof(keys[0]))

const char *
ctl_setting_name(Gpupool__AdminSetting__Key key)
{
	for (size_t i = 0; i < KEY_COUNT; i++)
		if (keys[i].key == key)
			return keys[i].name;
	return "?";
}

const char *
ctl_similar_setting(const char *text)
{
	char word[CTL_VALUE_MAX];
	struct gp_suggestion similar = { .word = word };

	(void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(text, "="), text);
	for (size_t i = 0; i < KEY_COUNT; i++)
		gp_suggestion_consider(&similar, keys[i].name);
	return similar.best;
}

const char *
ctl_parse_setting(const char *text, Gpupool__AdminSetting *setting)
{
	const char *equals = strchr(text, '=');
	size_t length = equals ? (size_t)(equals - text) : 0;

	gpupool__admin_setting__init(setting);
	for (size_t i = 0; i < KEY_COUNT; i++) {
		if (strlen(keys[i].name) != length || strncmp(text, keys[i].name, length) != 0)
			continue;
		setting->key = keys[i].key;
		return keys[i].parse(equals + 1, setting);
	}
	return "sets none of memory, sm, priority, weight, limit, time-share, bandwidth, sessions";
}

char *
ctl_format_bytes(uint64_t bytes, char *text)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	int unit = 0;

	while (value >= 1024 && unit < 6) {
		value /= 1024;
		unit++;
	}
	if (unit == 0 || value == floor(value))
		snprintf(text, CTL_VALUE_MAX, "%.0f %s", value, units[unit]);
	else
		snprintf(text, CTL_VALUE_MAX, value < 100 ? "%.1f %s" : "%.0f %s", value,
			 units[unit]);
	return text;
}

char *
ctl_format_age(uint64_t seconds, char *text)
{
	unsigned long long s = seconds;

	if (s < 60)
		snprintf(text, CTL_VALUE_MAX, "%llu s", s);
	else if (s < 3600)
		snprintf(text, CTL_VALUE_MAX, "%llu m %02llu s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(text, CTL_VALUE_MAX, "%llu h %02llu m", s / 3600, s / 60 % 60);
	else
		snprintf(text, CTL_VALUE_MAX, "%llu d %02llu h", s / 86400, s / 3600 % 24);
	return text;
}

char *
ctl_format_ns(uint64_t ns, char *text)
{
	if (ns < 60000000000)
		snprintf(text, CTL_VALUE_MAX, "%.2f s", (double)ns / 1e9);
	else
		ctl_format_age(ns / 1000000000, text);
	return text;
}
