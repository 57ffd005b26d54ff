GP_LOCAL()
CUresult cuFoo(
        CONVERT(gpc_convert) unsigned int a);
