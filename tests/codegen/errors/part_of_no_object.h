GP_KIND(node, TYPES(CUgraphNode), COST(64), PART_OF(stream))
