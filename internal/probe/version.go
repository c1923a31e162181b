package probe

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// Versions of the protocol (docs/protocol.md) that this program supports. Additions without a new version are
// announced in Hello. Unknown keys are ignored.
const (
	Version    = 1
	minVersion = 1
)

// Versions is the range of versions that an end supports.
type Versions struct {
	Least int `json:"least"`
	Most  int `json:"most"`
}

// supportedVersions are this program's versions.
var supportedVersions = Versions{minVersion, Version}

// common returns the highest common version.
func (v Versions) common(other Versions) (version int, ok bool) {
	version = min(v.Most, other.Most)
	return version, version >= max(v.Least, other.Least)
}

func (v Versions) String() string {
	if v.Least == v.Most {
		return fmt.Sprintf("version %d", v.Most)
	}
	return fmt.Sprintf("versions %d to %d", v.Least, v.Most)
}

// versions returns the versions of a hello. Old servers announce a single one.
func (h *Hello) versions() Versions {
	if h.Versions == nil {
		return Versions{h.Version, h.Version}
	}
	return *h.Versions
}

// versionError reports that two ends have no common version.
type versionError struct {
	theirs   Versions
	software string
}

func (v *versionError) Error() string {
	return fmt.Sprintf("the server supports %v of the protocol (fullpipe %.60s), this client %v", v.theirs,
		v.software, supportedVersions)
}

// try names the end to update.
func (v *versionError) try() string {
	if v.theirs.Most < supportedVersions.Least {
		return "a newer fullpipe there"
	}
	return "a newer fullpipe here"
}

var errBadVersion = errors.New("an offer in a version that this server does not speak")

// KeyID identifies a key without revealing it. A server with several keys learns from it which one the client will
// prove.
type KeyID [8]byte

// ID returns the first eight bytes of the SHA-256 of a label and the key.
func (k Key) ID() KeyID {
	sum := sha256.Sum256(append([]byte("fullpipe key id"), k[:]...))
	return KeyID(sum[:8])
}

// String returns the ID as 16 hexadecimal digits, as in TLS's server name and hello.
func (id KeyID) String() string { return hex.EncodeToString(id[:]) }
