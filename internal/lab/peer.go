package lab

import "os"

const (
	// Prefix begins a PEER that is a lab.
	Prefix = "lab:"
	// PeerVariable contains the user's name of the peer, for a command that runs inside a lab.
	PeerVariable = "FULLPIPE_LAB"
)

// PeerName returns the user's name of the peer.
func PeerName(text string) string {
	if name := os.Getenv(PeerVariable); name != "" {
		return name
	}
	return text
}
