/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/printable.h"

size_t
gp_printable(char *to, size_t size, const char *from)
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
