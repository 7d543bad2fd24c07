real y
