/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/printable.h"

#include <ctype.h>
#include <string.h>

size_t
gp_printable_text(char *to, size_t size, const char *from)
{
	static const char digits[] = "0123456789abcdef";
	size_t used = 0;

	for (; *from; from++) {
		unsigned char c = (unsigned char)*from;
		size_t need = c >= ' ' && c < 0x7f ? 1 : 4;

		if (used + need >= size)
			break;
		if (need == 1) {
			to[used++] = (char)c;
			continue;
		}
		to[used++] = '\\';
		to[used++] = 'x';
		to[used++] = digits[c >> 4];
		to[used++] = digits[c & 15];
	}
	to[used] = 0;
	return used;
}

static bool
name_is_plain(const char *name)
{
	if (!*name)
		return false;
	for (; *name; name++) {
		if (!isalnum((unsigned char)*name) && !strchr("._-+@/~", *name))
			return false;
	}
	return true;
}

size_t
gp_printable_name(char *to, size_t size, const char *from)
{
	size_t used = 0;

	if (name_is_plain(from))
		return gp_printable_text(to, size, from);
	to[used++] = '"';
	/* Escapes one character at a time, leaving room for the closing quote. */
	for (; *from; from++) {
		char one[2] = { *from, 0 }, text[5];
		bool escaped = *from == '"' || *from == '\\';
		size_t length = gp_printable_text(text, sizeof(text), one);

		if (used + escaped + length + 2 > size)
			break;
		if (escaped)
			to[used++] = '\\';
		(void)memcpy(to + used, text, length);
		used += length;
	}
	to[used++] = '"';
	to[used] = 0;
	return used;
}

bool
gp_printable_is_formula(const char *text)
{
	return *text && strchr("=+-@\t\r", *text) && strcmp(text, "-") != 0;
}
