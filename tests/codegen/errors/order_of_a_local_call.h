GP_LOCAL(AFTER_ALL)
CUresult cuFoo(int value);
