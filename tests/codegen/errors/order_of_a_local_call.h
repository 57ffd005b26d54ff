GP_LOCAL(BEHIND_ALL)
CUresult cuFoo(int value);
