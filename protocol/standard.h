/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three descriptors that every program may write to without asking.
 */
#ifndef GP_STDIO_H
#define GP_STDIO_H

#include "base/status.h"

/*
 * First of all in main(): opens /dev/null where one of the descriptors 0 to 2 is closed.  Else the
 * next file or socket would get its number, and what is printed would go there.  0 or a negative
 * errno.
 */
GP_MUST_CHECK int gp_stdio_ensure_open(void);

#endif /* GP_STDIO_H */
