GP_LOCAL(CLIENT_OBJECT(active))
CUresult cuProfilerStart(void);
