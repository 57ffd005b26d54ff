GP_LOCAL(OF(active))
CUresult cuProfilerStart(void);
