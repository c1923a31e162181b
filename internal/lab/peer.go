package lab

import "os"

const (
	// Prefix begins a PEER that is a lab.
	Prefix = "lab:"
	// PeerVariable tells a command that runs inside a lab what its user called the peer.
	PeerVariable = "FULLPIPE_LAB"
)

// PeerName returns what the user called the peer.
func PeerName(text string) string {
	if name := os.Getenv(PeerVariable); name != "" {
		return name
	}
	return text
}
