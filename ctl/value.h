/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers as people write and read them.  No state.  Parsers take the whole text or return false
 * and write nothing.
 */
#ifndef CTL_VALUE_H
#define CTL_VALUE_H

#include "protocol/admin_messages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CTL_VALUE_MAX 32

/* Digits alone. */
bool ctl_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *value_p);
/* 1.5GiB, 512M, 512MB, 1073741824: multiples of 1024 in all spellings. */
bool ctl_parse_bytes(const char *text, uint64_t *bytes_p);
/* More than 0 and at most 100, with two decimals, as hundredths; a % at the end is optional. */
bool ctl_parse_percent(const char *text, uint32_t *hundredths_p);
/* "normal", "low", "high", or 0 to 2. */
bool ctl_parse_priority(const char *text, uint64_t *priority_p);

/* NULL, or what is wrong with it as the end of a sentence that begins with the text. */
const char *ctl_parse_setting(const char *text, Gpupool__AdminSetting *setting);
/* As gpupoold.conf(5) calls it, too. */
const char *ctl_setting_name(Gpupool__AdminSetting__Key key);
/* The one that NAME=VALUE may have meant, or NULL. */
const char *ctl_similar_setting(const char *text);

/* "1.5 GiB"; text is CTL_VALUE_MAX long, as below, and returned. */
char *ctl_format_bytes(uint64_t bytes, char *text);
/* "2.35 s", "1 h 02 m". */
char *ctl_format_ns(uint64_t ns, char *text);
char *ctl_format_age(uint64_t seconds, char *text);
const char *ctl_priority_name(uint32_t priority);

#endif /* CTL_VALUE_H */
