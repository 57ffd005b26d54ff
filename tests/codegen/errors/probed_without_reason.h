GP_PROBED(cuInit)
