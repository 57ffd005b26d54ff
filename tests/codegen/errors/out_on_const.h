GP_LOCAL()
CUresult cuDriverGetVersion(OUT const int *driverVersion);
