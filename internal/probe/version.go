package probe

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// Version of the protocol that this program speaks, and the least that it still speaks;
// docs/protocol.md describes it. What is added without a new version is announced in
// Hello, and keys that an end does not know are ignored.
const (
	Version      = 1
	leastVersion = 1
)

// Versions are those that an end speaks.
type Versions struct {
	Least int `json:"least"`
	Most  int `json:"most"`
}

// speaks are this program's.
var speaks = Versions{leastVersion, Version}

// with is the highest version that both ends speak.
func (v Versions) with(other Versions) (version int, ok bool) {
	version = min(v.Most, other.Most)
	return version, version >= max(v.Least, other.Least)
}

func (v Versions) String() string {
	if v.Least == v.Most {
		return fmt.Sprintf("version %d", v.Most)
	}
	return fmt.Sprintf("versions %d to %d", v.Least, v.Most)
}

// versions are those of a hello; ends from before there were several name one.
func (h *Hello) versions() Versions {
	if h.Versions == nil {
		return Versions{h.Version, h.Version}
	}
	return *h.Versions
}

// versionError says that two ends have no version in common.
type versionError struct {
	theirs   Versions
	software string
}

func (v *versionError) Error() string {
	return fmt.Sprintf("the server speaks %v of the protocol (fullpipe %.60s), this one %v", v.theirs, v.software, speaks)
}

// try says which end to bring up to date.
func (v *versionError) try() string {
	if v.theirs.Most < speaks.Least {
		return "a newer fullpipe there"
	}
	return "a newer fullpipe here"
}

var errBadVersion = errors.New("an offer in a version that this server does not speak")

// KeyID names a key without giving it away: a server with several tells by it which one
// a client will prove.
type KeyID [8]byte

// ID is the first eight bytes of SHA-256 over a label and the key.
func (k Key) ID() KeyID {
	sum := sha256.Sum256(append([]byte("fullpipe key id"), k[:]...))
	return KeyID(sum[:8])
}

// String is the ID as it travels in TLS's server name and in hello: 16 hexadecimal digits.
func (id KeyID) String() string { return hex.EncodeToString(id[:]) }
