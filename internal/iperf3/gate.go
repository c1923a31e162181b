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

// Gate is whom a server lets test: users with passwords, as of iperf3's
// --rsa-private-key-path and --authorized-users-path. Whatever is wrong with a token, its
// client is told the same, and at the same time after it asked: neither padding nor user
// nor password can be found out one by one.
type Gate struct {
	// Key opens the tokens: OAEP with SHA-1 as of iperf3 3.17, or with PKCS1 the PKCS#1
	// v1.5 of those before.
	Key   *rsa.PrivateKey
	PKCS1 bool
	// Skew is how far a client's clock may be off; 0 is 10 s. Within it a token that was
	// overheard opens another test: iperf3's protocol has nothing against that.
	Skew time.Duration
	// Users answers the users file at the time of asking, as ParseUsers reads it.
	Users func() ([]byte, error)
}

// ErrNotAuthorized is a client whose token did not open a test.
var ErrNotAuthorized = errors.New("test authorization failed")

const (
	defaultSkew = 10 * time.Second
	// refusalTime is when a refused client is told, from its asking on. The slowest path to
	// a refusal is far shorter (RSA of 16384 bits: 200 ms), and guessing is slowed down.
	refusalTime = time.Second
	// mostUsers bounds a users file, whose every line is compared with every login.
	mostUsers = 10000
	// leastRSA is the shortest modulus that a token fits into with its padding, bits.
	leastRSA = 1024
)

// PrivateKey reads an RSA key in PEM, PKCS#8 ("PRIVATE KEY") or PKCS#1 ("RSA PRIVATE
// KEY"), without a pass phrase.
func PrivateKey(text []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("not a key in PEM")
	}
	if strings.Contains(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "" {
		return nil, errors.New("the key has a pass phrase, which nobody could type here")
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, errors.New("not a private key")
		}
		var ok bool
		if key, ok = parsed.(*rsa.PrivateKey); !ok {
			return nil, errors.New("not an RSA key")
		}
	}
	if key.N.BitLen() < leastRSA {
		return nil, fmt.Errorf("the key has %d bits; at least %d are needed", key.N.BitLen(), leastRSA)
	}
	return key, key.Validate()
}

// User is a line of a users file: a name, and SHA-256 of "{NAME}PASSWORD".
type User struct {
	Name string
	Hash [sha256.Size]byte
}

// ParseUsers reads lines of NAME,HASH with the hash in hexadecimal. Empty lines, comments
// (#) and lines without a comma are left out, as iperf3 does; a hash that is none is an
// error with its line's number.
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
		if len(users) > mostUsers {
			return nil, fmt.Errorf("more than %d users", mostUsers)
		}
	}
	return users, nil
}

// passes lets a client in at once, or turns it away when its time has come.
func (g *Gate) passes(ctx context.Context, token string) error {
	late := time.NewTimer(refusalTime)
	defer late.Stop()
	err := g.judge(token, time.Now())
	if err == nil {
		return nil
	}
	select {
	case <-late.C:
	case <-ctx.Done():
	}
	return err
}

// judge compares a token with the users. Its error is for the server's own eyes.
func (g *Gate) judge(token string, now time.Time) error {
	text, err := g.Users()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotAuthorized, err)
	}
	users, err := ParseUsers(text)
	if err != nil {
		return fmt.Errorf("%w: users: %w", ErrNotAuthorized, err)
	}
	l, opened := g.open(token)
	told := sha256.Sum256([]byte("{" + l.User + "}" + l.Password))
	name := sha256.Sum256([]byte(l.User))
	right := 0
	for _, u := range users {
		known := sha256.Sum256([]byte(u.Name))
		right |= subtle.ConstantTimeCompare(name[:], known[:]) & subtle.ConstantTimeCompare(told[:], u.Hash[:])
	}
	skew := now.Sub(l.At).Abs()
	switch {
	case token == "":
		return fmt.Errorf("%w: no user was named", ErrNotAuthorized)
	case !opened:
		return fmt.Errorf("%w: the token does not open with this key and padding", ErrNotAuthorized)
	case right != 1:
		return fmt.Errorf("%w: user or password is wrong", ErrNotAuthorized)
	case skew > cmp.Or(g.Skew, defaultSkew):
		return fmt.Errorf("%w: the clocks are %v apart", ErrNotAuthorized, skew.Round(time.Second))
	}
	return nil
}

// open decrypts a token; ok is false for anything that is no login.
func (g *Gate) open(token string) (l Login, ok bool) {
	sealed, err := base64.StdEncoding.DecodeString(token)
	if err != nil || len(sealed) != g.Key.Size() {
		return l, false
	}
	var text []byte
	if g.PKCS1 {
		//lint:ignore SA1019 clients before iperf3 3.17 send nothing else; passes hides whether it was well-formed
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
