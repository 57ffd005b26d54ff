GP_LOCAL()
CUresult cuDriverGetVersion(int *driverVersion);
