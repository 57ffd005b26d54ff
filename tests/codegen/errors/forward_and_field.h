GP_LOCAL()
CUresult cuDriverGetVersion(
        OUT int *version);

GP_LOCAL(FORWARD(cuDriverGetVersion, version))
CUresult cuSample(
        OUT FIELD(version) int *version);
