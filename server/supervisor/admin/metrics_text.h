/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report as Prometheus reads it: text format 0.0.4, gpupool's own names, and those of DCGM and
 * HAMi where theirs mean the same.  No state, any thread.
 */
#ifndef GPD_METRICS_TEXT_H
#define GPD_METRICS_TEXT_H

#include "protocol/admin_messages.h"

#include <stdio.h>

void gpd_metrics_write(FILE *file, const Gpupool__AdminReport *report);

#endif /* GPD_METRICS_TEXT_H */
