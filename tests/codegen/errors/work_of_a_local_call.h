GP_LOCAL(UNBOUNDED)
CUresult cuFoo(int value);
