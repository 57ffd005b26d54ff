/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a report in Prometheus' text format 0.0.4, with gpupool's own metric names, and those of
 * DCGM and HAMi for metrics with the same meaning.
 *
 * Threads: any; the function keeps no state.
 * Errors: those of the stream (ferror(3)).
 */
#ifndef GPD_METRICS_TEXT_H
#define GPD_METRICS_TEXT_H

#include "protocol/admin_messages.h"

#include <stdio.h>

/* Writes all metrics of the report to the stream. */
void gpd_metrics_write(FILE *file, const Gpupool__AdminReport *report);

#endif /* GPD_METRICS_TEXT_H */
