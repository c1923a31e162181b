-- Of a load of requests; NULL for other commands, and in results that were kept before.
ALTER TABLE direction ADD COLUMN requests_per_s REAL;
ALTER TABLE direction ADD COLUMN p50_s REAL;
ALTER TABLE direction ADD COLUMN p99_s REAL;
