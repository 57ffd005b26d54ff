GP_LOCAL(OF(program))
CUresult cuDriverGetVersion(
        OUT FROM(version) int *version);
