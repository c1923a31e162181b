package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"time"
)

// SealedCA is the hub's certificate authority: its certificate, and its private key that a key outside the database
// seals.
type SealedCA struct{ Cert, Key []byte }

// CA returns the authority. The error is ErrNotFound without one.
func (f *Fleet) CA(ctx context.Context) (ca SealedCA, err error) {
	var cert, key string
	err = f.s.db.QueryRowContext(ctx, "SELECT cert, sealed_key FROM ca").Scan(&cert, &key)
	if errors.Is(err, sql.ErrNoRows) {
		return ca, ErrNotFound
	}
	if err != nil {
		return ca, err
	}
	ca.Cert, err = base64.StdEncoding.DecodeString(cert)
	if err == nil {
		ca.Key, err = base64.StdEncoding.DecodeString(key)
	}
	return ca, err
}

// KeepCA stores an authority unless there is one, and returns the stored one.
func (f *Fleet) KeepCA(ctx context.Context, ca SealedCA) (SealedCA, error) {
	err := f.exec(ctx, "INSERT INTO ca(one, cert, sealed_key) VALUES(1, $1, $2) ON CONFLICT DO NOTHING",
		base64.StdEncoding.EncodeToString(ca.Cert), base64.StdEncoding.EncodeToString(ca.Key))
	if err != nil {
		return ca, err
	}
	return f.CA(ctx)
}

// SetHubURLs records at which URLs agents reach a hub, and forgets those that no hub has had since a time.
func (f *Fleet) SetHubURLs(ctx context.Context, urls []string, now, since time.Time) error {
	return f.change(ctx, func(tx *sql.Tx) error {
		for _, url := range urls {
			_, err := tx.ExecContext(ctx, "INSERT INTO hub_url(url, seen_ns) VALUES($1, $2) ON CONFLICT(url) DO UPDATE SET "+
				"seen_ns = excluded.seen_ns", plain(url), now.UnixNano())
			if err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM hub_url WHERE seen_ns < $1", since.UnixNano())
		return err
	})
}

// HubURLs returns the URLs of all hubs, the most recently used first.
func (f *Fleet) HubURLs(ctx context.Context) (urls []string, err error) {
	err = f.query(ctx, func(rows *sql.Rows) error {
		var url string
		err := rows.Scan(&url)
		urls = append(urls, url)
		return err
	}, "SELECT url FROM hub_url ORDER BY seen_ns DESC, url")
	return urls, err
}
