/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard file descriptors 0 to 2 of a program.
 *
 * Threads: called by the only thread of the process.
 */
#ifndef GP_STANDARD_FDS_H
#define GP_STANDARD_FDS_H

#include "base/status.h"

/*
 * Opens /dev/null for each of the descriptors 0 to 2 that is closed. Otherwise the next file or
 * socket would get such a number, and printed output would be written to it. Must be called first
 * in main(). Returns 0, or the negative errno of open().
 */
GP_MUST_CHECK int gp_stdio_ensure_open(void);

#endif /* GP_STANDARD_FDS_H */
