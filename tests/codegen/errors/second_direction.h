GP_LOCAL()
CUresult cuDriverGetVersion(IN OUT int *driverVersion);
