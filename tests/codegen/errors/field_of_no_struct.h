GP_LOCAL(CLIENT_OBJECT(program))
CUresult cuDriverGetVersion(
        OUT FIELD(version) int *version);
