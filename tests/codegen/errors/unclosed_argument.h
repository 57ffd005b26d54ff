GP_LOCAL(VIA(gpFoo
CUresult cuFoo(int x);
