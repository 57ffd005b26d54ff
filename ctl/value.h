/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsers and formatters for numbers and settings in the form that people write and read.
 *
 * Ownership: parsers borrow the text; formatting functions write to a buffer of the caller.
 * Threads: any; the functions have no state.
 * Errors: functions that parse and return bool return true if the whole text is valid; otherwise
 * false, and write nothing.
 */
#ifndef CTL_VALUE_H
#define CTL_VALUE_H

#include "protocol/admin_messages.h"

#include <stdbool.h>
#include <stdint.h>

/* Size of a formatted value, with its NUL. */
#define CTL_VALUE_MAX 32

/* Parses decimal digits into a number from min to max. */
bool ctl_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *value_p);
/* Parses a size such as 1.5GiB, 512M, 512MB or 1073741824 into bytes; all units are multiples of
 * 1024. */
bool ctl_parse_bytes(const char *text, uint64_t *bytes_p);
/* Parses a percentage above 0 and at most 100 into hundredths of a percent, rounded, but at least
 * 1; "%" is optional. */
bool ctl_parse_percent(const char *text, uint32_t *hundredths_p);
/* Parses "normal", "low", "high", or 0 to 2, into the number. */
bool ctl_parse_priority(const char *text, uint64_t *priority_p);

/* Parses NAME=VALUE into *setting, of which nothing has to be freed. Returns NULL if the text is
 * valid. Otherwise returns the end of an error sentence that begins with the text, a static text,
 * and *setting is undefined. */
const char *ctl_parse_setting(const char *text, Gpupool__AdminSetting *setting);
/* Returns the setting's name, as in gpupoold.conf(5); "?" for an unknown key. The text is
 * static. */
const char *ctl_setting_name(Gpupool__AdminSetting__Key key);
/* Returns the name of the setting most similar to that of NAME=VALUE, a static text; NULL: none is
 * similar. */
const char *ctl_similar_setting(const char *text);

/* Formats bytes as "1.5 GiB" into text, of CTL_VALUE_MAX bytes. Returns text. */
char *ctl_format_bytes(uint64_t bytes, char *text);
/* Formats nanoseconds as "2.35 s" into text, of CTL_VALUE_MAX bytes; from one minute on as
 * ctl_format_age(). Returns text. */
char *ctl_format_ns(uint64_t ns, char *text);
/* Formats seconds as "45 s", "2 m 05 s", "1 h 02 m" or "3 d 04 h" into text, of CTL_VALUE_MAX
 * bytes. Returns text. */
char *ctl_format_age(uint64_t seconds, char *text);
/* Formats seconds since 1970 as "2026-11-01 15:30", in local time, into text, of CTL_VALUE_MAX
 * bytes. Returns text, or "-" for UINT64_MAX and times that have no date. */
const char *ctl_format_date(uint64_t seconds, char *text);
/* Formats seconds since 1970 as strftime() does, in UTC, into text, of CTL_VALUE_MAX bytes; "" if
 * the year has more digits than an int. Returns text. */
char *ctl_format_utc(int64_t seconds, const char *format, char *text)
	__attribute__((format(strftime, 2, 0)));
/* Returns the name of a priority, as ctl_parse_priority() accepts it; "?" for an unknown one. The
 * text is static. */
const char *ctl_priority_name(uint32_t priority);

#endif /* CTL_VALUE_H */
