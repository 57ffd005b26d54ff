GP_KIND(graph, COST(64))
