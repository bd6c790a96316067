def append(cache, rows, position):
    updated = cache.copy()
    free = updated[position[0] :]
    free[: len(rows)] = rows[: len(free)]
    return updated
