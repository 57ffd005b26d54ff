GP_ATTRIBUTES(CUfoo_attribute, CUdevice CU_FOO)
