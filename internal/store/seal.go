package store

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sealer marks results as measured on this host with an HMAC in their row. The key is in this user's state
// directory only. Documents carry neither, so no imported result has a valid seal.
type sealer struct{ key []byte }

const sealKeyFile = "seal_key"

// newSealer reads the key; create makes a missing one. Without a key nothing is sealed.
func newSealer(dir string, create bool) sealer {
	path := filepath.Join(dir, sealKeyFile)
	if _, err := os.Lstat(path); err != nil && create && dir != "" {
		if err := makeOnce(dir, sealKeyFile, rand.Text()+rand.Text()); err != nil {
			return sealer{}
		}
	}
	text, err := os.ReadFile(path)
	if key := strings.TrimSpace(string(text)); err == nil && dir != "" && len(key) >= 32 {
		return sealer{[]byte(key)}
	}
	return sealer{}
}

// seal returns the seal of a result in a series, "" without a key.
func (s sealer) seal(id, path string) string {
	if s.key == nil {
		return ""
	}
	m := hmac.New(sha256.New, s.key)
	fmt.Fprintf(m, "fullpipe measured here v1\n%s\n%s\n", id, path)
	return hex.EncodeToString(m.Sum(nil))
}

// verify reports whether the seal proves that this host measured the result.
func (s sealer) verify(seal, id, path string) bool {
	return s.key != nil && seal != "" && hmac.Equal([]byte(seal), []byte(s.seal(id, path)))
}

// MeasuredHere reports whether this host measured one of the newest results of a path.
func (s *Store) MeasuredHere(ctx context.Context, path string) (bool, error) {
	const maxResults = 1000
	rows, err := s.db.QueryContext(ctx, "SELECT id, seal FROM run WHERE path = $1 AND seal <> '' "+
		"ORDER BY started_ns DESC LIMIT $2", path, maxResults)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	sealer := newSealer(s.dir, false)
	for rows.Next() {
		var id, seal string
		if err := rows.Scan(&id, &seal); err != nil {
			return false, err
		}
		if sealer.verify(seal, id, path) {
			return true, nil
		}
	}
	return false, rows.Err()
}
