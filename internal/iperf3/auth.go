package iperf3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Authenticator checks users and passwords like iperf3's --rsa-private-key-path and --authorized-users-path. All
// invalid tokens get the same reply after the same time. This hides whether padding, user or password was wrong.
type Authenticator struct {
	// Key decrypts tokens: OAEP with SHA-1 as of iperf3 3.17, or with PKCS1 the older PKCS#1 v1.5.
	Key   *rsa.PrivateKey
	PKCS1 bool
	// MaxSkew is the largest difference from the client's clock; 0: 10 s. Within it a token can be replayed, which
	// iperf3's protocol does not prevent.
	MaxSkew time.Duration
	// Users returns the current users file in the format of ParseUsers.
	Users func() ([]byte, error)
}

// ErrNotAuthorized reports that a client's token was rejected.
var ErrNotAuthorized = errors.New("test authorization failed")

const (
	defaultSkew = 10 * time.Second
	// refusalDelay is the time from a request to its refusal. It exceeds the slowest check (RSA with 16384 bits:
	// 200 ms) and slows down guessing.
	refusalDelay = time.Second
	// maxUsers limits a users file. Each login is compared with every line.
	maxUsers = 10000
	// minRSABits is the shortest modulus, in bits, that fits a token with padding.
	minRSABits = 1024
)

// PrivateKey parses an unencrypted RSA key in PEM: PKCS#8 ("PRIVATE KEY") or PKCS#1 ("RSA PRIVATE KEY").
func PrivateKey(text []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("not a key in PEM")
	}
	if strings.Contains(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "" {
		return nil, errors.New("the key is encrypted; a key without a passphrase is needed")
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, errors.New("not a private key")
		}
		var ok bool
		key, ok = parsed.(*rsa.PrivateKey)
		if !ok {
			return nil, errors.New("not an RSA key")
		}
	}
	if key.N.BitLen() < minRSABits {
		return nil, fmt.Errorf("the key has %d bits; at least %d are needed", key.N.BitLen(), minRSABits)
	}
	return key, key.Validate()
}

// User is a line of a users file: a name and the SHA-256 of "{NAME}PASSWORD".
type User struct {
	Name string
	Hash [sha256.Size]byte
}

// ParseUsers parses lines of NAME,HASH with a hexadecimal hash. Like iperf3 it skips empty lines, comments (#) and
// lines without a comma. An invalid hash is an error with the line number.
func ParseUsers(text []byte) (users []User, err error) {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		name, hash, ok := strings.Cut(strings.TrimRight(string(line), "\r\n"), ",")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		hash, _, _ = strings.Cut(hash, ",")
		raw, err := hex.DecodeString(strings.TrimSpace(hash))
		if err != nil || len(raw) != sha256.Size {
			return nil, fmt.Errorf("line %d: %q has no SHA-256 of 64 hexadecimal digits", n, name)
		}
		users = append(users, User{name, [sha256.Size]byte(raw)})
		if len(users) > maxUsers {
			return nil, fmt.Errorf("more than %d users", maxUsers)
		}
	}
	return users, nil
}

// authenticate returns at once for a valid token and after refusalDelay for an invalid one.
func (g *Authenticator) authenticate(ctx context.Context, token string) error {
	late := time.NewTimer(refusalDelay)
	defer late.Stop()
	err := g.verify(token, time.Now())
	if err == nil {
		return nil
	}
	select {
	case <-late.C:
	case <-ctx.Done():
	}
	return err
}

// verify compares a token with the users. Its error is for the server's log only.
func (g *Authenticator) verify(token string, now time.Time) error {
	text, err := g.Users()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotAuthorized, err)
	}
	users, err := ParseUsers(text)
	if err != nil {
		return fmt.Errorf("%w: users: %w", ErrNotAuthorized, err)
	}
	l, opened := g.decrypt(token)
	digest := sha256.Sum256([]byte("{" + l.User + "}" + l.Password))
	name := sha256.Sum256([]byte(l.User))
	right := 0
	for _, u := range users {
		known := sha256.Sum256([]byte(u.Name))
		right |= subtle.ConstantTimeCompare(name[:], known[:]) & subtle.ConstantTimeCompare(digest[:], u.Hash[:])
	}
	skew := now.Sub(l.At).Abs()
	switch {
	case token == "":
		return fmt.Errorf("%w: no user was named", ErrNotAuthorized)
	case !opened:
		return fmt.Errorf("%w: the token does not open with this key and padding", ErrNotAuthorized)
	case right != 1:
		return fmt.Errorf("%w: user or password is wrong", ErrNotAuthorized)
	case skew > cmp.Or(g.MaxSkew, defaultSkew):
		return fmt.Errorf("%w: the clocks are %v apart", ErrNotAuthorized, skew.Round(time.Second))
	}
	return nil
}

// decrypt decrypts a token. ok is false if it is not a login.
func (g *Authenticator) decrypt(token string) (l Login, ok bool) {
	sealed, err := base64.StdEncoding.DecodeString(token)
	if err != nil || len(sealed) != g.Key.Size() {
		return l, false
	}
	var text []byte
	if g.PKCS1 {
		//lint:ignore SA1019 clients before iperf3 3.17 send nothing else; authenticate hides whether it was
		// well-formed
		text, err = rsa.DecryptPKCS1v15(rand.Reader, g.Key, sealed)
	} else {
		text, err = rsa.DecryptOAEP(sha1.New(), nil, g.Key, sealed, nil)
	}
	words := strings.Fields(string(text))
	if err != nil || len(words) != 6 || words[0] != "user:" || words[2] != "pwd:" || words[4] != "ts:" {
		return l, false
	}
	seconds, err := strconv.ParseInt(words[5], 10, 64)
	return Login{words[1], words[3], time.Unix(seconds, 0)}, err == nil
}
