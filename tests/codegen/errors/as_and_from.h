GP_LOCAL()
CUresult cuDriverGetVersion(
        OUT int *version);

GP_LOCAL(AS(cuDriverGetVersion, version))
CUresult cuSample(
        OUT FROM(version) int *version);
