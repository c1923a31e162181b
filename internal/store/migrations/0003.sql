-- of the segments sent; NULL in results that were kept before, and where it is not known
ALTER TABLE direction ADD COLUMN retransmitted_ratio REAL;
